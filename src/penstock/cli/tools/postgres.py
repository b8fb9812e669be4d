"""`penstock postgres`: a PostgreSQL for development."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.cli.tools.servers import stop_server
from penstock.jobs import postgres

group = typer.Typer(name="postgres", help="A PostgreSQL on this machine, for development.", no_args_is_help=True)

PORT = 5432
Folder = Annotated[Path, option(help="Where it keeps its data.")]
Debug = Annotated[bool, option("--debug", help="Show full tracebacks.")]
_FOLDER = Path(".penstock") / "postgres"


@group.command()
def start(
    folder: Folder = _FOLDER,
    port: Annotated[int, option(min=0, max=65535, help="Where it listens on 127.0.0.1; 0 takes a free port.")] = PORT,
    debug: Debug = False,
) -> None:
    """Start a PostgreSQL and leave it running; prints the URL for ps.postgres. Logical decoding is on."""
    with handled(debug=debug, runs=False):
        running = postgres.running_in(folder)
        if running is not None:
            typer.echo(f"runs already: {running.url} (process {running.pid})")
            return
        made = postgres.start(folder, port)
        typer.echo(f"started: {made.url} (process {made.pid}, log {made.folder / 'server.log'})")


@group.command()
def stop(folder: Folder = _FOLDER, debug: Debug = False) -> None:
    """Stop it; its data stays."""
    with handled(debug=debug, runs=False):
        stop_server(postgres.running_in(folder), "PostgreSQL")


@group.command()
def status(folder: Folder = _FOLDER, debug: Debug = False) -> None:
    """Say whether one runs, and where. Ends with 1 when none does."""
    with handled(debug=debug, runs=False):
        running = postgres.running_in(folder)
        if running is None:
            typer.echo(f"no PostgreSQL runs in {folder}; penstock postgres start")
            raise typer.Exit(1)
        typer.echo(f"runs: {running.url} (process {running.pid})")
