"""Statements one after the other, as a shell, a script or a cell of a notebook gives them: what each of them asks for."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from penstock.compiler.describe import describe
from penstock.errors import PenstockError, SqlError
from penstock.frontends.sql.catalog.catalog import Catalog, Table, View, statements_of
from penstock.frontends.sql.plan.context import Session
from penstock.frontends.sql.plan.statements import every as _every  # noqa: F401 - each family says what its statements do
from penstock.frontends.sql.plan.statements.settings import WITHOUT_EFFECT, checked_setting
from penstock.frontends.sql.plan.statements.statements import RESULT, Script, planned
from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.reader import read_statements
from penstock.frontends.sql.text.source import SqlText, without_secrets
from penstock.frontends.streams.flow import Flow
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint
from penstock.graph.picture.describe import Description


@dataclass(frozen=True)
class Said:
    """A statement was carried out: what a person reads of it."""

    text: str


@dataclass(frozen=True)
class Listed:
    """Rows that a statement shows of the session itself: names of columns, and values."""

    names: tuple[str, ...]
    rows: list[tuple[object, ...]]


@dataclass(frozen=True)
class Explained:
    """What a statement would do."""

    described: Description


@dataclass(frozen=True)
class Asked:
    """A query whose result is to be shown: the graph, with a sink of the name `result`."""

    graph: Graph


@dataclass(frozen=True)
class Written:
    """An INSERT, or several of a statement set: a graph that is to be run."""

    graph: Graph


Outcome = Said | Listed | Explained | Asked | Written


@dataclass
class SqlSession:
    """What the statements before have defined and set.

    Args:
        tables: endpoints by the names that statements have for them.
        functions: functions by name.
    """

    tables: Mapping[str, Endpoint] = field(default_factory=dict)
    functions: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.catalog, self.settings = Catalog(), dict[str, str]()
        for name, endpoint in self.tables.items():
            self.catalog.define(Table(name, endpoint=endpoint))
        self.catalog.functions.update(self.functions)
        self._set: Script | None = None

    def run(self, text: str, origin: str = "") -> Iterator[Outcome]:
        """What the statements of a text ask for, one after the other; all of them are read before the first is carried out.

        Raises:
            SqlError: a statement cannot be read or planned; with its place.
        """
        source = SqlText(text, origin)
        for statement in read_statements(source):
            with planned(source, statement.at):
                made = self._one(source, statement)
            if made is not None:
                yield made

    def _one(self, source: SqlText, statement: s.Statement) -> Outcome | None:
        do = _ACTIONS.get(type(statement))
        if do is not None:
            return do(self, source, statement)
        if self._set is not None and isinstance(statement, s.InsertInto):
            self._set.text = source
            self._set.run_one(statement)
            return Said("added to the statement set")
        script = self._script(source)
        script.run_one(statement)
        if script.session.builder.nodes:
            return Written(script.flow.graph)
        return Said(_done(statement))

    def _script(self, source: SqlText) -> Script:
        """A flow of its own, which sees and fills the catalog of the session."""
        flow = Flow(RESULT)
        return Script(Session(flow.builder, self.catalog, self.settings), source, flow=flow)

    def graph_of(self, source: SqlText, statement: s.Statement) -> Graph:
        """The graph of a query or an INSERT alone; what the statement defines is forgotten."""
        script = self._script(source)
        script.session.catalog = self.catalog.child()
        script.run_one(statement)
        graph: Graph = script.flow.graph
        return graph

    def columns(self, name: str) -> list[tuple[str, str]]:
        """The columns of a table or view, each with its type; empty where they are not known."""
        source = SqlText(f"SELECT * FROM `{name.replace('`', '')}`")  # noqa: S608 - read by the parser alone, as one quoted name
        try:
            (statement,) = read_statements(source)
            graph = self.graph_of(source, statement)
        except (SqlError, PenstockError):
            return _defined(self.catalog.find(name))
        (sink,) = graph.sinks
        return [(f.name, str(f.type)) for f in graph.output(sink.inputs[0]).schema.fields]


def _defined(found: object) -> list[tuple[str, str]]:
    """The columns that CREATE TABLE says, of a table that can be written alone."""
    definition = found.definition if isinstance(found, Table) else None
    return [] if definition is None else [(c.name, str(c.type or "")) for c in definition.columns]


def _done(statement: s.Statement) -> str:
    name = getattr(statement, "name", "")
    if isinstance(statement, s.CreateTable):
        return f"table {name} is defined"
    if isinstance(statement, s.CreateView):
        return f"view {name} is defined"
    if isinstance(statement, s.CreateFunction):
        return f"function {name} is defined"
    if isinstance(statement, s.AlterTable | s.AlterView):
        return f"{'table' if isinstance(statement, s.AlterTable) else 'view'} {name} is altered"
    return f"{statement.kind.lower()} {name} is dropped" if isinstance(statement, s.Drop) else "done"


def _ask(session: SqlSession, source: SqlText, statement: s.Select) -> Outcome:
    return Asked(session.graph_of(source, statement))


def _explain(session: SqlSession, source: SqlText, statement: s.Explain) -> Outcome:
    return Explained(describe(session.graph_of(source, statement.statement)))


def _refuse_standing(session: SqlSession, source: SqlText, statement: s.CreateStandingQuery) -> Outcome:
    raise source.error(
        statement.at,
        "a standing query belongs to a flow that runs: write it into a file for penstock run, or say penstock queries add TOPIC 'CREATE STANDING QUERY ...'",
    )


def _describe(session: SqlSession, source: SqlText, statement: s.Describe) -> Outcome:
    session.catalog.table(source, statement.name, statement.at)
    return Listed(
        ("column", "type"), [each for each in session.columns(statement.name) if _like(each[0], statement.like)]
    )


def _like(name: str, pattern: str) -> bool:
    """Whether a name fits the pattern of LIKE; all do where there is none."""
    signs = "".join({"%": ".*", "_": "."}.get(sign, re.escape(sign)) for sign in pattern)
    return not pattern or re.fullmatch(signs, name, re.IGNORECASE) is not None


def _show(session: SqlSession, source: SqlText, statement: s.Show) -> Outcome:
    names, catalog = sorted(n for n in session.catalog.names() if _like(n, statement.like)), session.catalog
    if statement.what in ("CATALOGS", "DATABASES"):
        return Listed(("name",), [(s.CATALOG if statement.what == "CATALOGS" else s.DATABASE,)])
    if statement.what.upper().startswith("FUNCTION"):
        return Listed(("function",), [(n,) for n in sorted(catalog.all_functions()) if _like(n, statement.like)])
    if statement.what.upper().startswith("CREATE"):
        found = catalog.table(source, statement.name, statement.at)
        return Listed(("statement",), [(_text_of(found),)])
    if statement.what.upper().startswith("VIEW"):
        names = [name for name in names if isinstance(catalog.find(name), View)]
    return Listed(("name", "kind"), [(name, _kind(catalog.find(name))) for name in names])


def _kind(found: object) -> str:
    return "view" if isinstance(found, View) else "table"


def _text_of(found: object) -> str:
    """The statement that defines a table, without its passwords."""
    said = statements_of(found) if isinstance(found, Table | View) else ()
    return without_secrets(";\n".join(said)) if said else "given from Python"


def _set_option(session: SqlSession, source: SqlText, statement: s.SetOption) -> Outcome:
    if statement.resets and not statement.name:
        session.settings.clear()
        return Said("no option is set")
    if not statement.name:
        return Listed(("option", "value"), sorted(session.settings.items()))
    if statement.value is None:
        session.settings.pop(statement.name, None)
        return Said(f"{statement.name} is not set")
    checked_setting(source, statement)
    session.settings[statement.name] = statement.value
    without = " (it changes nothing here)" if statement.name in WITHOUT_EFFECT else ""
    return Said(f"{statement.name} is {statement.value!r}{without}")


def _use(session: SqlSession, source: SqlText, statement: s.Use) -> Outcome:
    return Said(f"{statement.name} is all there is")


def _begin(session: SqlSession, source: SqlText, statement: s.BeginSet) -> Outcome:
    if session._set is not None:
        raise source.error(statement.at, "expected END before another statement set begins")
    session._set = session._script(source)
    return Said("a statement set begins; END runs it")


def _end(session: SqlSession, source: SqlText, statement: s.EndSet) -> Outcome:
    script, session._set = session._set, None
    if script is None:
        raise source.error(statement.at, "expected BEGIN STATEMENT SET before END")
    return Written(script.flow.graph)


_ACTIONS: dict[type, Callable[[SqlSession, SqlText, Any], Outcome]] = {
    s.Select: _ask,
    s.Explain: _explain,
    s.CreateStandingQuery: _refuse_standing,
    s.Describe: _describe,
    s.Show: _show,
    s.SetOption: _set_option,
    s.BeginSet: _begin,
    s.EndSet: _end,
    s.Use: _use,
}
"""What a session does for each statement itself; the others change the catalog, or make a flow."""
