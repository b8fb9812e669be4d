"""A text of statements with the tables that Python gives it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from penstock.errors import FlowError
from penstock.frontends.sql.catalog.catalog import Catalog, StreamTable, Table
from penstock.frontends.sql.plan.context import Session
from penstock.frontends.sql.plan.queries.exact import exact
from penstock.frontends.sql.plan.queries.query import plan_query
from penstock.frontends.sql.plan.statements import every as _every  # noqa: F401 - each family says what its statements do
from penstock.frontends.sql.plan.statements.statements import Script, planned
from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.reader import read_statements
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.streams.flow import Flow
from penstock.frontends.streams.stream import Stream
from penstock.graph.nodes import Endpoint, Port


def script_of(
    text: str, tables: Mapping[str, Any], flow: Flow, functions: Iterable[Any] = (), origin: str = ""
) -> Script:
    """A script over a flow, with tables and functions by name."""
    catalog = Catalog()
    for name, given in tables.items():
        catalog.define(_named(name, given))
    for function in functions:
        catalog.functions[function.name.lower()] = function
    catalog.functions.update(flow.builder.functions)
    return Script(Session(flow.builder, catalog), SqlText(text, origin), flow=flow)


def _named(name: str, given: object) -> Table | StreamTable:
    if isinstance(given, Stream):
        return StreamTable(name, given.port)
    if isinstance(given, Endpoint):
        return Table(name, endpoint=given)
    raise FlowError(f"table {name!r} is an endpoint such as ps.files(...), or a stream, got {given!r}")


def plan_last(script: Script, name: str) -> Port:
    """The stream of the query that stands last; what stands before it defines names."""
    statements = read_statements(script.text)
    last = statements[-1] if statements else None
    if not isinstance(last, s.Select):
        at = len(script.text.text) if last is None else last.at
        raise script.text.error(at, "expected a query as the last statement")
    script.run(statements[:-1])
    with planned(script.text, last.at):
        planning = script.planning(name)
        return exact(planning, plan_query(planning, last.query), last.query).port
