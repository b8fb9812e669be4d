"""The command line: `penstock run`, `state`, `savepoint`, `topics`, `produce`, `consume`, `groups`, `bridge`, `demo`, `describe`, `doctor`, `bench`, `verify`, `version`."""

from __future__ import annotations

import importlib.metadata
import platform
from typing import Annotated

import typer

from penstock.cli.flows.describe import describe
from penstock.cli.flows.dlq import app as dlq
from penstock.cli.flows.run import run
from penstock.cli.flows.savepoint import savepoint
from penstock.cli.flows.state import app as state
from penstock.cli.log import consume, produce
from penstock.cli.log.bridge import app as bridge
from penstock.cli.log.groups import app as groups
from penstock.cli.log.topics import app as topics
from penstock.cli.tools.bench import bench
from penstock.cli.tools.demo import demo
from penstock.cli.tools.doctor import doctor
from penstock.cli.tools.kafka import app as kafka
from penstock.cli.tools.postgres import app as postgres
from penstock.cli.tools.verify import verify
from penstock.version import __version__

app = typer.Typer(
    name="penstock",
    help="Distributed stream processing for Python, on Apache Spark.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "PENSTOCK"},
)


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Distributed stream processing for Python, on Apache Spark."""


def version() -> None:
    """Show the versions of Penstock, Python and Spark."""
    typer.echo(f"penstock {__version__}")
    typer.echo(f"python   {platform.python_version()}")
    for package in ("pyspark", "pyarrow"):
        typer.echo(f"{package:8} {_version_of(package)}")


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "not installed"


for _command in (run, savepoint, demo, describe, doctor, bench, verify, version):
    app.command()(_command)
for _group in (dlq, state, topics, groups, bridge, kafka, postgres):
    app.add_typer(_group)
for _module in (produce, consume):
    _module.register(app)


def main() -> None:
    """What the `penstock` script calls."""
    app()


if __name__ == "__main__":
    main()
