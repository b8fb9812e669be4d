"""`penstock jobs`: the jobs of a server, and what can be done with them."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import suppress
from typing import Annotated

import typer
from rich.console import Console

from penstock.cli.duration import seconds
from penstock.cli.jobs.connection import Json, Name, asking, removing, row_of, tell
from penstock.cli.jobs.upgrade import upgrade
from penstock.cli.options import option
from penstock.cli.output.listing import show, show_json
from penstock.client import Client
from penstock.client.answers import JobView

group = typer.Typer(name="jobs", help="Look at the jobs of a server, and change them.", no_args_is_help=True)


@group.command("list")
@asking
def list_jobs(client: Client, as_json: Json = False) -> None:
    """List the jobs."""
    found = client.jobs()
    show_json(found) if as_json else show([row_of(job) for job in found], "no jobs")


@group.command("top")
@asking
def top(
    client: Client,
    interval: Annotated[str, option(metavar="SPAN", help="Time between two looks.")] = "2s",
) -> None:
    """Show the jobs again and again, in place; Ctrl-C ends it."""
    wait, console = seconds(interval), Console()
    with suppress(KeyboardInterrupt):
        while True:
            found = client.jobs()
            console.clear()
            typer.echo(f"{client.url}  {time.strftime('%H:%M:%S')}  {_phases(found)}\n")
            show([row_of(job) for job in found], "no jobs")
            time.sleep(wait)


def _phases(jobs: list[JobView]) -> str:
    """How many jobs are in which phase."""
    counts = Counter(job["phase"] for job in jobs)
    return ", ".join(f"{number} {phase}" for phase, number in counts.most_common()) or "no jobs"


@group.command("show")
@asking
def show_job(client: Client, name: Name, as_json: Json = False) -> None:
    """Show a job, and what happened to it."""
    job, events = client.job(name), client.events(name)
    if as_json:
        show_json({**job, "events": events})
        return
    for field, value in job.items():
        if field != "etag" and value not in (None, "", {}, []):
            typer.echo(f"{field:14} {_shown(field, value)}")
    for event in events[:10]:
        typer.echo(f"{_moment(event['time'])}  {event['what']} {event['detail']}".rstrip())


def _shown(field: str, value: object) -> str:
    """A field of a job as a person reads it."""
    if field in ("since", "created") and isinstance(value, float):
        return _moment(value)
    if field in ("cores", "memory") and value == 0:
        return "not asked for"
    return json.dumps(value) if isinstance(value, dict | list) else str(value)


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


@group.command("logs")
@asking
def logs(
    client: Client,
    name: Name,
    lines: Annotated[int, option("--lines", "-n", min=1, max=10_000, help="How many lines at most.")] = 100,
    search: Annotated[str, option(metavar="TEXT", help="Only lines that have this text.")] = "",
) -> None:
    """Print the end of the log of a job."""
    typer.echo(client.log(name, lines, search), nl=False)


@group.command("log-level")
@asking
def log_level(
    client: Client,
    name: Name,
    level: Annotated[str, typer.Argument(help="debug, info, warning, error or default.", show_default=False)] = "",
    logger: Annotated[
        str, option(metavar="NAME", help="A logger of Python's; 'spark' is Spark's own, 'root' all without a level.")
    ] = "penstock",
) -> None:
    """Show how much a job logs, or change it while the job runs."""
    show_json(client.set_log_level(name, level, logger) if level else client.list_log_levels(name))  # type: ignore[arg-type]  # the server refuses others


def _add(action: str, about: str) -> None:
    def command(client: Client, name: Name, as_json: Json = False) -> None:
        tell(client.act(name, action), as_json=as_json)

    command.__doc__ = about
    group.command(action)(asking(command))


_add("stop", "Stop a job after its batch. It keeps its checkpoint; `resume` has it go on.")
_add("kill", "Stop a job at once, without waiting for its batch; nothing is lost, the batch runs again later.")
_add("pause", "Have a job read nothing. Its state stays; `resume` has it go on.")
_add("resume", "Have a job run that is paused, stopped, held or finished.")
_add("restart", "End the driver of a job after its batch and start another.")


group.command("upgrade")(upgrade)


@group.command("rescale")
@asking
def rescale(
    client: Client,
    name: Name,
    tasks: Annotated[int, typer.Argument(min=1, help="Tasks of keyed steps.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Give the keyed steps of a job another number of tasks; its state moves along."""
    tell(client.rescale_job(name, tasks), as_json=as_json)


@group.command("savepoint")
@asking
def savepoint(
    client: Client,
    name: Name,
    savepoint: Annotated[str, typer.Argument(help="A name.", show_default="version and time")] = "",
) -> None:
    """Take a savepoint of a job, while it runs or after."""
    show_json(client.take_savepoint(name, savepoint))


group.command("remove")(removing("job", "Forget a job that has stopped, and delete what it kept.", Client.remove_job))
