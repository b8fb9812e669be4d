"""`penstock jobs`: the jobs of a server, and what can be done with them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from penstock.cli.duration import seconds
from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.cli.output.listing import show, show_json, span
from penstock.cli.tools.server import Data
from penstock.client import Client
from penstock.jobs.manager.manager import default_root

group = typer.Typer(name="jobs", help="Look at the jobs of a server, and change them.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="JOB", help="The name of the job.", show_default=False)]
Server = Annotated[
    str,
    option(metavar="URL", envvar="PENSTOCK_SERVER", help="A server elsewhere.", show_default="the one of this machine"),
]
TokenFile = Annotated[Path | None, option(metavar="FILE", help="The token for a server elsewhere.")]
Json = Annotated[bool, option("--json", help="Print JSON, for programs.")]


def client_of(data: Path | None, server: str, token_file: Path | None) -> Client:
    """The client of the server that the options name."""
    return Client.found(data or default_root(), server, token_file)


@contextmanager
def asked(data: Path | None, server: str, token_file: Path | None) -> Iterator[Client]:
    """The client that a command speaks through; what goes wrong ends the command with a message."""
    with handled(runs=False):
        yield client_of(data, server, token_file)


@group.command("list")
def list_jobs(data: Data = None, server: Server = "", token_file: TokenFile = None, as_json: Json = False) -> None:
    """List the jobs."""
    with asked(data, server, token_file) as client:
        found = client.jobs()
        show_json(found) if as_json else show([row_of(job) for job in found], "no jobs")


@group.command("top")
def top(
    interval: Annotated[str, option(metavar="SPAN", help="Time between two looks.")] = "2s",
    data: Data = None,
    server: Server = "",
    token_file: TokenFile = None,
) -> None:
    """Show the jobs again and again, in place; Ctrl-C ends it."""
    wait, console = seconds(interval), Console()
    with asked(data, server, token_file) as client, suppress(KeyboardInterrupt):
        while True:
            found = client.jobs()
            console.clear()
            typer.echo(f"{client.url}  {time.strftime('%H:%M:%S')}  {_phases(found)}\n")
            show([row_of(job) for job in found], "no jobs")
            time.sleep(wait)


def _phases(jobs: list[dict[str, Any]]) -> str:
    """How many jobs are in which phase."""
    counts = Counter(job["phase"] for job in jobs)
    return ", ".join(f"{number} {phase}" for phase, number in counts.most_common()) or "no jobs"


@group.command("show")
def show_job(
    name: Name, data: Data = None, server: Server = "", token_file: TokenFile = None, as_json: Json = False
) -> None:
    """Show a job, and what happened to it."""
    with asked(data, server, token_file) as client:
        job, events = client.job(name), client.events(name)
        if as_json:
            show_json({**job, "events": events})
            return
        for field, value in job.items():
            if value not in (None, "", {}):
                typer.echo(f"{field:14} {json.dumps(value) if isinstance(value, dict) else value}")
        for event in events[:10]:
            moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(event["time"]))
            typer.echo(f"{moment}  {event['what']} {event['detail']}".rstrip())


@group.command("logs")
def logs(
    name: Name,
    lines: Annotated[int, option("--lines", "-n", min=1, max=10_000, help="How many lines at most.")] = 100,
    search: Annotated[str, option(metavar="TEXT", help="Only lines that have this text.")] = "",
    data: Data = None,
    server: Server = "",
    token_file: TokenFile = None,
) -> None:
    """Print the end of the log of a job."""
    with asked(data, server, token_file) as client:
        typer.echo(client.log(name, lines, search), nl=False)


def _add(action: str, about: str) -> None:
    def command(
        name: Name, data: Data = None, server: Server = "", token_file: TokenFile = None, as_json: Json = False
    ) -> None:
        with asked(data, server, token_file) as client:
            _tell(client.act(name, action), as_json=as_json)

    command.__doc__ = about
    group.command(action)(command)


_add("stop", "Stop a job after its batch. It keeps its checkpoint; `resume` has it go on.")
_add("kill", "Stop a job at once, without waiting for its batch; nothing is lost, the batch runs again later.")
_add("pause", "Have a job read nothing. Its state stays; `resume` has it go on.")
_add("resume", "Have a job run that is paused, stopped, held or finished.")
_add("restart", "End the driver of a job after its batch and start another.")


@group.command("rescale")
def rescale(
    name: Name,
    tasks: Annotated[int, typer.Argument(min=1, help="Tasks of keyed steps.", show_default=False)],
    data: Data = None,
    server: Server = "",
    token_file: TokenFile = None,
    as_json: Json = False,
) -> None:
    """Give the keyed steps of a job another number of tasks; its state moves along."""
    with asked(data, server, token_file) as client:
        _tell(client.act(name, "rescale", {"tasks": tasks}), as_json=as_json)


@group.command("savepoint")
def savepoint(
    name: Name,
    savepoint: Annotated[str, typer.Argument(help="A name.", show_default="version and time")] = "",
    data: Data = None,
    server: Server = "",
    token_file: TokenFile = None,
) -> None:
    """Take a savepoint of a job, while it runs or after."""
    with asked(data, server, token_file) as client:
        show_json(client.act(name, "savepoints", {"name": savepoint}))


@group.command("remove")
def remove(name: Name, data: Data = None, server: Server = "", token_file: TokenFile = None) -> None:
    """Forget a job that has stopped, and delete what it kept."""
    with asked(data, server, token_file) as client:
        client.remove(name)
        typer.echo(f"removed {name}", err=True)


def _tell(job: dict[str, Any], *, as_json: bool) -> None:
    show_json(job) if as_json else show([row_of(job)], "")


def row_of(job: dict[str, Any]) -> dict[str, Any]:
    """A job as a row of the list."""
    lag = ", ".join(f"{source} {waiting}" for source, waiting in job["lag"].items())
    since = span(int(max(time.time() - job["since"], 0.0)) * 1000) if job["since"] else None
    return {
        "job": job["name"],
        "phase": job["phase"],
        "since": since,
        "owner": job["owner"],
        "batches": job["batches"],
        "rows": job["rows"],
        "rate": job["rate"],
        "lag": lag,
        "restarts": job["restarts"],
        "reason": job["reason"] if job["phase"] in ("held", "waiting") else None,
    }
