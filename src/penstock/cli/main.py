"""The command line: `penstock run`, `describe`, `state` and the other commands."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable
from typing import Annotated

import typer

from penstock.cli.options import option
from penstock.version import __version__

PANELS = {
    "Flows": {
        "run": "flows.run",
        "describe": "flows.describe",
        "sql": "sql.command",
        "demo": "tools.demo",
        "state": "flows.state",
        "savepoint": "flows.savepoint",
        "dlq": "flows.dlq",
        "topology": "flows.topology",
        "export": "flows.export",
        "flow-schema": "flows.flow_schema",
        "pack": "flows.pack",
    },
    "Jobs: flows that a server keeps running": {
        "server": "tools.server",
        "submit": "jobs.submit",
        "jobs": "jobs.jobs",
        "console": "tools.console",
        "pools": "jobs.pools",
        "alerts": "jobs.alerts",
        "tokens": "jobs.tokens",
        "audit": "jobs.audit",
    },
    "The log: topics on this machine, and what flows read from them": {
        "topics": "log.topics",
        "produce": "log.produce",
        "consume": "log.consume",
        "groups": "log.groups",
        "bridge": "log.bridge",
        "rules": "log.rules",
        "queries": "sql.queries",
        "drpc": "log.drpc",
    },
    "This machine": {
        "doctor": "tools.doctor",
        "kafka": "tools.kafka",
        "postgres": "tools.postgres",
        "verify": "tools.verify",
        "bench": "tools.bench",
        "version": "tools.version",
    },
}
"""The commands as the help groups them, each with its module under `penstock.cli`. A module is imported when its command is called: together they take a second."""
COMMANDS = {name: module for panel in PANELS.values() for name, module in panel.items()}


def make_app(names: Iterable[str] = COMMANDS) -> typer.Typer:
    """The command line with these commands, by default with all of them.

    Args:
        names: Names of commands; see `PANELS`.

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
    """Adds a command to its panel: a group of its module, or the function of its name."""
    panel = next(title for title, commands in PANELS.items() if name in commands)
    module = importlib.import_module(f"penstock.cli.{COMMANDS[name]}")
    group = getattr(module, "group", None)
    if isinstance(group, typer.Typer):
        app.add_typer(group, rich_help_panel=panel)
    else:
        epilog = getattr(module, "EXAMPLES", None)
        app.command(epilog=epilog, rich_help_panel=panel)(getattr(module, name.replace("-", "_")))


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"penstock {__version__}")
        raise typer.Exit


def _root(
    _version: Annotated[
        bool, option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Distributed stream processing for Python, on Apache Spark."""


def main() -> None:
    """What the `penstock` script calls."""
    named = sys.argv[1] if len(sys.argv) > 1 else ""
    make_app([named] if named in COMMANDS else COMMANDS)()


if __name__ == "__main__":
    main()
