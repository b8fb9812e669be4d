"""`penstock audit`: who changed what, and whether nobody has changed that."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from penstock.cli.jobs.connection import Json, asking
from penstock.cli.options import option
from penstock.cli.output.listing import count, show, show_json
from penstock.client import Client

group = typer.Typer(name="audit", help="See who changed what, and whether that was changed.", no_args_is_help=True)


@group.command("list")
@asking
def list_audit(
    client: Client,
    limit: Annotated[int, option(metavar="N", help="How many, the newest first; at most 1000.")] = 100,
    as_json: Json = False,
) -> None:
    """List the newest changes, with who made them."""
    found = client.list_audit(limit=limit)["entries"]
    rows = [
        {
            "time": time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(each["time"])),
            "who": each["actor"],
            "action": each["action"],
            "object": each["object"],
            "detail": each["detail"],
        }
        for each in found
    ]
    show_json(found) if as_json else show(rows, "no changes")


@group.command("verify")
@asking
def verify(
    client: Client,
    noted: Annotated[
        str, option(metavar="HEAD", help="The head that an earlier look printed, kept elsewhere.", show_default=False)
    ] = "",
    as_json: Json = False,
) -> None:
    """Look at every entry: one that was edited, dropped or moved is named. Prints the head of the audit, to be kept elsewhere."""
    found = client.verify_audit(noted)
    if as_json:
        show_json(found)
    else:
        cut = f", {count(found['cut'], 'older one')} cut" if found["cut"] else ""
        typer.echo(f"{count(found['entries'], 'change')}{cut}: {'intact' if found['is_whole'] else 'NOT as written'}")
        for fault in found["faults"]:
            typer.echo(f"  {fault}", err=True)
        typer.echo(f"head {found['head']}" if found["head"] else "no head yet")
    if not found["is_whole"]:
        raise typer.Exit(1)
