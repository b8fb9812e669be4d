"""Questions to a flow that runs, or has run: a query over the last committed version of what its steps keep.

One manifest names the files of all steps, so tables of several steps fit together. Nothing of the flow is stopped, locked or run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlglot import exp

from penstock.errors import CheckpointError
from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.lookups import asked_values, tables_in
from penstock.frontends.sql.text.reader import read_statements
from penstock.frontends.sql.text.source import SqlText
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint, JoinStatic
from penstock.jobs.load import load_flow
from penstock.jobs.sql.answers import Answer, AskLimits, answer
from penstock.jobs.sql.kept_tables import KeptTables
from penstock.jobs.sql.session import SqlSession
from penstock.location import Address, address_of, is_url
from penstock.state.one_version import ReadLimits, Snapshot
from penstock.state.reader import OpenState


@dataclass(frozen=True)
class FlowAnswer:
    """The answer of a flow, and the version of its state that it is of."""

    version: int
    answer: Answer


@dataclass(frozen=True)
class AskedFlow:
    """A flow that is asked: where its state is, and its tables that need none.

    Args:
        folder: its checkpoint.
        tables: bounded sources and static tables of the flow, by the names of their steps, where the flow itself is at hand.
    """

    folder: Address
    tables: Mapping[str, Endpoint] = field(default_factory=dict)

    def ask(
        self,
        query: str,
        version: int | None = None,
        limits: AskLimits | None = None,
        reads: ReadLimits | None = None,
    ) -> FlowAnswer:
        """Answers a query from one version of the state, the newest if none is given.

        Raises:
            SqlError: the query cannot be read or planned.
            StateError: a table is none of the flow, or keeps more than may be read.
            Impossible: the query takes more than the limits allow.
        """
        statement = _only(SqlText(query))
        state = OpenState(self.folder)

        def action(number: int) -> FlowAnswer:
            tables = KeptTables(Snapshot.of(state, number), reads or ReadLimits())
            return FlowAnswer(number, self._answer(query, statement, tables, limits or AskLimits()))

        return state.of_version(version, action)

    def _answer(self, query: str, statement: s.Select, kept: KeptTables, limits: AskLimits) -> Answer:
        wanted, given = asked_values(statement.query), dict[str, Endpoint]()
        known = {name.lower(): endpoint for name, endpoint in self.tables.items()}
        for name in tables_in(statement.query):
            own = name.lower() in known and name.lower() not in kept.names()
            given[name] = known[name.lower()] if own else kept.endpoint(name, wanted.get(name.lower(), {}))
        whole = replace(statement, query=_in_order(statement.query, limits.records))
        return answer(SqlSession(given).graph_of(SqlText(query), whole), limits=limits)

    def names(self, version: int | None = None) -> list[str]:
        """The names of the tables that can be asked for, as a query can write them."""
        state = OpenState(self.folder)
        kept = state.of_version(version, lambda number: KeptTables(Snapshot.of(state, number), ReadLimits()))
        return sorted({*kept.shown(), *self.tables})


def _in_order(query: Any, most: int) -> Any:
    """A query whose ORDER BY needs no LIMIT: all rows are there."""
    if query.args.get("order") is None or query.args.get("limit") is not None:
        return query
    made = query.copy()
    made.set("limit", exp.Limit(expression=exp.Literal.number(most)))
    return made


def _only(text: SqlText) -> s.Select:
    statements = read_statements(text)
    if len(statements) != 1 or not isinstance(statements[0], s.Select):
        at = statements[1].at if len(statements) > 1 else 0
        raise text.error(at, "expected one query; a flow is asked with SELECT alone")
    return statements[0]


def asked_flow(target: str, checkpoint: str | None = None) -> AskedFlow:
    """The flow that a name, a file or a checkpoint stands for.

    Args:
        target: `FILE.py[:flow]`, `package.module[:flow]`, `FILE.sql`, the name of a flow that runs from this directory, a checkpoint directory or a URL.
        checkpoint: its checkpoint, where that is not `.penstock/NAME`.

    Raises:
        CheckpointError: there is no checkpoint.
        FlowError: the file has no flow.
    """
    named = Path(".penstock") / target
    if target and (is_url(target) or Path(target).is_dir()):
        return AskedFlow(_there(address_of(checkpoint or target)))
    if target and checkpoint is None and "/" not in target and named.is_dir():
        return AskedFlow(_there(named))
    if not target:
        return AskedFlow(_there(address_of(checkpoint or "")))
    graph = load_flow(target).graph
    return AskedFlow(_there(address_of(checkpoint) if checkpoint else Path(".penstock") / graph.name), tables_of(graph))


def tables_of(graph: Graph) -> dict[str, Endpoint]:
    """The tables of a flow that can be read without it: bounded sources, and static tables of joins."""
    sources = {n.name: n.endpoint for n in graph.sources if n.endpoint.bounded and n.endpoint.schema is not None}
    return sources | {n.name: n.table for n in graph.nodes if isinstance(n, JoinStatic)}


def _there(folder: Address) -> Address:
    if isinstance(folder, Path) and not (folder / "state").is_dir():
        raise CheckpointError(
            f"{folder} has no state: the flow has not run here, or keeps nothing. --checkpoint names its checkpoint"
        )
    return folder.absolute()
