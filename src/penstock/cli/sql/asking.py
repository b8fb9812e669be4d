"""`penstock sql --flow`: queries to a flow that runs, one after the other, or a list of its tables."""

from __future__ import annotations

import typer

from penstock.cli.sql.runner import Runner
from penstock.jobs.sql.answers import AskLimits
from penstock.jobs.sql.asking import asked_flow
from penstock.jobs.sql.session import SqlSession


def ask_flow(
    flow: str, checkpoint: str | None, version: int | None, queries: list[str], limits: AskLimits, *, as_json: bool
) -> None:
    """Answers queries from what a flow keeps; without one its tables are listed."""
    asked, runner = asked_flow(flow, checkpoint), Runner(SqlSession(), as_json=as_json, limits=limits)
    if not queries:
        runner.rows(("table",), [(name,) for name in asked.names(version)])
    for query in queries:
        found = asked.ask(query, version, limits)
        runner.rows(found.answer.names, found.answer.rows, found.answer.seconds)
        if not as_json:
            typer.echo(f"version {found.version}", err=True)
