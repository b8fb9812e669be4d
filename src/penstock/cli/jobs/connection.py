"""What the commands share that speak to the server of jobs: its address, the token, and how a job is shown."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.cli.output.listing import show, show_json, span
from penstock.cli.tools.server import Data
from penstock.client import Client
from penstock.client.answers import JobView
from penstock.jobs.manager.manager import default_root

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


def asking(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options that say which server it asks; it takes the client as its first argument."""
    own = [*inspect.signature(command, eval_str=True).parameters.values()][1:]
    added = {"data": (Data, None), "server": (Server, ""), "token_file": (TokenFile, None)}

    def asks(*, data: Path | None, server: str, token_file: Path | None, **given: object) -> None:
        with asked(data, server, token_file) as client:
            command(client, **given)

    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in added.items()
    ]
    whole = [*(p.replace(kind=p.KEYWORD_ONLY) for p in own), *options]
    asks.__signature__ = inspect.Signature(whole)  # type: ignore[attr-defined]  # what typer looks at
    asks.__annotations__ = {p.name: p.annotation for p in whole} | {"return": None}
    asks.__doc__, asks.__name__ = command.__doc__, command.__name__
    return asks


def removing(noun: str, about: str, remove: Callable[[Client, str], None]) -> Callable[..., None]:
    """A command that forgets something by its name."""

    def command(client: Client, name: str) -> None:
        remove(client, name)
        typer.echo(f"removed {name}", err=True)

    argument = typer.Argument(metavar=noun.upper(), help=f"The name of the {noun}.", show_default=False)
    command.__annotations__["name"] = Annotated[str, argument]
    command.__doc__ = about
    return asking(command)


def tell(job: JobView, *, as_json: bool) -> None:
    """Shows what became of a job."""
    show_json(job) if as_json else show([row_of(job)], "")


def row_of(job: JobView) -> dict[str, object]:
    """A job as a row of the list."""
    lag = ", ".join(
        f"{source} {many} {unit}" for source, waiting in job["lag"].items() for unit, many in waiting.items()
    )
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
        "reason": job["reason"] if _has_reason(job) else None,
    }


def _has_reason(job: JobView) -> bool:
    """Whether there is something to say of why a job does not run: nobody wants it to, or the server has stopped it."""
    return job["phase"] in ("held", "waiting", "queued") or (job["phase"] == "stopped" and job["health"] == "bad")
