"""Flows written as SQL: what Python calls."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from penstock.errors import FlowError
from penstock.frontends.streams.flow import Flow
from penstock.frontends.streams.stream import Stream
from penstock.graph.nodes import Endpoint

if TYPE_CHECKING:
    from penstock.frontends.sql.plan.statements.statements import Script

TableLike: TypeAlias = Endpoint | Stream
"""What a name may stand for: an endpoint that is read or written, or a stream of the flow."""


def sql_flow(
    text: str,
    tables: Mapping[str, TableLike] | None = None,
    *,
    name: str = "sql",
    functions: Iterable[Any] = (),
    origin: str = "",
) -> Flow:
    """A flow from statements of SQL: each INSERT INTO is a sink, and a query on its own is shown on the console, as sink `result`.

    Args:
        text: the statements, with semicolons between them.
        tables: what names stand for, beside the tables that the text creates: endpoints, or streams of one flow, to which the steps are added.
        name: the name of the flow, where no stream says it.
        functions: Python functions that the statements may call: made with `@ps.function`, or aggregates.
        origin: the file of the text, for errors.

    Returns:
        The flow.

    Raises:
        SqlError: a statement cannot be read or planned; the message has the line, the column and what was expected.
        FlowError: the streams among the tables are of several flows, or a table is neither an endpoint nor a stream.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> words = ps.items(["a", "b", "a"], "word string")
    >>> flow = ps.sql_flow("SELECT word, count(*) AS n FROM words GROUP BY word", {"words": words})
    >>> run_local(flow)["result"]
    [Row(word='a', n=2), Row(word='b', n=1)]
    """
    script = _script(text, tables or {}, name, functions, origin)
    from penstock.frontends.sql.text.reader import read_statements  # it loads sqlglot

    script.run(read_statements(script.text))
    flow: Flow = script.flow
    return flow


def sql_query(
    text: str, tables: Mapping[str, TableLike], *, name: str = "query", functions: Iterable[Any] = ()
) -> Stream:
    """The stream of a query over streams: its steps are added to their flow.

    Args:
        text: one query; statements that define views, tables and functions may stand before it.
        tables: the streams by the names that the query has for them, of one flow; and endpoints.
        name: how the names of its steps begin.
        functions: Python functions that the query may call.

    Returns:
        The stream.

    Raises:
        SqlError: the query cannot be read or planned; the message has the line, the column and what was expected.
        FlowError: there is no stream among the tables, or they are of several flows.

    >>> import penstock as ps
    >>> words = ps.Flow("demo").source("words", ps.items([], "word string"))
    >>> ps.sql_query("SELECT upper(word) AS word FROM words", {"words": words})
    Stream('query.select': word string)
    """
    from penstock.frontends.sql.plan.statements.scripts import plan_last  # it loads sqlglot

    script = _script(text, tables, name, functions, "")
    return Stream(script.flow, plan_last(script, name))


def _script(text: str, tables: Mapping[str, TableLike], name: str, functions: Iterable[Any], origin: str) -> Script:
    from penstock.frontends.sql.plan.statements.scripts import script_of  # it loads sqlglot

    if not isinstance(text, str):
        raise FlowError(f"SQL is a text, got {text!r}")
    return script_of(text, tables, _flow_of(tables, name), functions, origin)


def _flow_of(tables: Mapping[str, TableLike], name: str) -> Flow:
    flows = {id(t.flow): t.flow for t in tables.values() if isinstance(t, Stream)}
    if len(flows) > 1:
        raise FlowError(f"the streams of a query are of one flow, got {', '.join(f.name for f in flows.values())}")
    return next(iter(flows.values()), None) or Flow(name)
