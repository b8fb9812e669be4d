"""The command line: `penstock run`, `describe`, `state` and the other commands."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from penstock.version import __version__

COMMANDS = {
    "run": "flows.run",
    "submit": "jobs.submit",
    "jobs": "jobs.jobs",
    "pools": "jobs.pools",
    "alerts": "jobs.alerts",
    "tokens": "jobs.tokens",
    "audit": "jobs.audit",
    "server": "tools.server",
    "console": "tools.console",
    "pack": "flows.pack",
    "savepoint": "flows.savepoint",
    "demo": "tools.demo",
    "describe": "flows.describe",
    "export": "flows.export",
    "flow-schema": "flows.flow_schema",
    "doctor": "tools.doctor",
    "bench": "tools.bench",
    "verify": "tools.verify",
    "version": "tools.version",
    "produce": "log.produce",
    "consume": "log.consume",
    "dlq": "flows.dlq",
    "topology": "flows.topology",
    "state": "flows.state",
    "topics": "log.topics",
    "groups": "log.groups",
    "rules": "log.rules",
    "sql": "sql.command",
    "queries": "sql.queries",
    "bridge": "log.bridge",
    "drpc": "log.drpc",
    "kafka": "tools.kafka",
    "postgres": "tools.postgres",
}
"""The module of each command under `penstock.cli`. A module is imported when its command is called: together they take a second."""


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands, by default with all of them.

    Args:
        names: Names of commands; see `COMMANDS`.

    Returns:
        The application that `penstock` calls.
    """
    app = typer.Typer(
        name="penstock",
        help="Distributed stream processing for Python, on Apache Spark.",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "auto_envvar_prefix": "PENSTOCK"},
    )
    app.callback()(_root)
    for name in names:
        _add(app, name)
    return app


def _add(app: typer.Typer, name: str) -> None:
    """Adds a command: a group of its module, or the function of its name."""
    module = importlib.import_module(f"penstock.cli.{COMMANDS[name]}")
    group = getattr(module, "group", None)
    if isinstance(group, typer.Typer):
        app.add_typer(group)
    else:
        app.command(epilog=getattr(module, "EXAMPLES", None))(getattr(module, name.replace("-", "_")))


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Distributed stream processing for Python, on Apache Spark."""


def main() -> None:
    """What the `penstock` script calls."""
    named = sys.argv[1] if len(sys.argv) > 1 else ""
    make_app([named] if named in COMMANDS else COMMANDS)()


if __name__ == "__main__":
    main()
