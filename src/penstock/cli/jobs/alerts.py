"""`penstock alerts`: what is watched in jobs, and who gets a notice when it lasts."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from penstock.cli.duration import seconds
from penstock.cli.jobs.connection import Json, asking, removing
from penstock.cli.options import one_of, option
from penstock.cli.output.listing import show, show_json
from penstock.client import Client
from penstock.jobs.manager.alerts.rule import MEASURES, SEVERITIES

group = typer.Typer(name="alerts", help="Get notices when a job is not well.", no_args_is_help=True)
Name = Annotated[str, typer.Argument(metavar="ALERT", help="The name of the alert.", show_default=False)]


@group.command("list")
@asking
def list_alerts(client: Client, as_json: Json = False) -> None:
    """List the alerts, and say which fire."""
    found = client.alerts()
    if as_json:
        show_json(found)
        return
    firing = {notice["rule"] for notice in found["firing"]}
    rows = [
        {
            "alert": rule["name"],
            "measure": rule["measure"],
            "above": f"{rule['above']:g}",
            "for": f"{rule['seconds']:g} s",
            "jobs": rule["jobs"],
            "severity": rule["severity"],
            "to": ", ".join(rule["to"]),
            "fires": "yes" if rule["name"] in firing else None,
        }
        for rule in found["rules"]
    ]
    show(rows, "no alerts")
    for notice in found["firing"]:
        typer.echo(f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(notice['since']))}  {notice['text']}")


@group.command("set")
@asking
def set_alert(  # noqa: PLR0913 - options of a command
    client: Client,
    name: Name,
    measure: Annotated[str, typer.Argument(help=f"{', '.join(MEASURES)}.", show_default=False)],
    above: Annotated[float, typer.Argument(min=0, help="It is a matter above this value.", show_default=False)],
    lasting: Annotated[
        str,
        option(
            "--for", metavar="SPAN", envvar="PENSTOCK_ALERTS_SET_FOR", help="And when it has been so for this time."
        ),
    ] = "0s",
    jobs: Annotated[str, option(metavar="GLOB", help="Of which jobs.")] = "*",
    to: Annotated[
        list[str] | None,
        option(
            metavar="TARGET", help="Where it is sent: log, a URL, mailto:ADDRESS; may be repeated.", show_default="log"
        ),
    ] = None,
    severity: Annotated[str, option(metavar="WORD", help="info, warning or critical.")] = "warning",
    as_json: Json = False,
) -> None:
    """Make an alert, or change one."""
    rule = {
        "measure": one_of("MEASURE", measure, *MEASURES),
        "above": above,
        "seconds": seconds(lasting),
        "jobs": jobs,
        "to": to or ["log"],
        "severity": one_of("--severity", severity, *SEVERITIES),
    }
    made = client.set_alert(name, rule)
    show_json(made) if as_json else typer.echo(f"alert {name}: {measure} above {above:g} of {jobs}", err=True)


group.command("remove")(removing("alert", "Forget an alert.", Client.remove_alert))
