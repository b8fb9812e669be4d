"""What each statement does: it defines a name, sets an option, or adds steps to the flow."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.errors import PenstockError, SqlError, nearest
from penstock.frontends.sql.catalog.catalog import StreamTable, Table, View
from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan import families as _families  # noqa: F401 - each family says how it is planned
from penstock.frontends.sql.plan.context import Planning, Session
from penstock.frontends.sql.plan.queries.exact import exact
from penstock.frontends.sql.plan.queries.query import plan_query
from penstock.frontends.sql.plan.statements.likes import liked
from penstock.frontends.sql.plan.statements.settings import checked_setting
from penstock.frontends.sql.plan.statements.sinks import write_table
from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.source import SqlText
from penstock.graph.endpoints.basic import console
from penstock.graph.nodes import Sink

RESULT = "result"
"""The sink of a query that no INSERT writes anywhere."""


@dataclass
class Script:
    """Statements that make one flow.

    Args:
        session: what they share.
        text: their text.
    """

    session: Session
    text: SqlText
    flow: Any = None
    """The flow that is built, as its front end has it."""
    open_set: int | None = field(default=None)
    """Where the statement set begins that is not ended yet."""
    standing: dict[str, s.CreateStandingQuery] = field(default_factory=dict)
    """Standing queries by name, which are planned when all statements are read."""
    topic_queries: Callable[[str], Iterable[SqlText]] = field(default=lambda topic: ())
    """Finds the standing queries in a topic: their shapes are planned, and they themselves are read from there when the flow runs."""
    shapes: dict[str, str] = field(default_factory=dict)
    """The shapes of standing queries by their ids: empty for one that is planned, else why it cannot be."""

    def run(self, statements: list[s.Statement]) -> None:
        """Each statement in turn.

        Raises:
            SqlError: one cannot be planned; with its place.
        """
        for statement in statements:
            with planned(self.text, statement.at):
                self.run_one(statement)
        if self.open_set is not None:
            raise self.text.error(self.open_set, "expected END after the statements of a statement set, got the end")
        for finish in FINISHING:
            with planned(self.text, statements[0].at if statements else 0):
                finish(self)

    def run_one(self, statement: s.Statement) -> None:
        """One statement."""
        do = ACTIONS.get(type(statement))
        if do is None:
            raise self.text.error(statement.at, f"{type(statement).__name__} is not a statement of a flow")
        do(self, statement)

    def planning(self, prefix: str) -> Planning:
        """The planning of a statement whose steps begin with a prefix."""
        return Planning(self.session, self.text, self.session.catalog, prefix)

    def check_new(self, name: str, at: int, replace: bool = False) -> None:
        """Refuses a name that is taken."""
        found = self.session.catalog.tables.get(name.lower())
        if found is not None and not replace and not _is_given(found):
            raise self.text.error(at, f"{name!r} is defined already; DROP it first, or say IF NOT EXISTS")


def _is_given(found: Any) -> bool:
    return isinstance(found, StreamTable) or (isinstance(found, Table) and found.definition is None)


class planned:  # noqa: N801 - it is used as a statement
    """Whatever is wrong inside, the error is one of ours with a place."""

    def __init__(self, text: SqlText, at: int) -> None:
        self.text, self.at = text, at

    def __enter__(self) -> None:
        """Nothing to do yet."""

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SqlError) or error is None:
            return
        if isinstance(error, PenstockError):
            raise self.text.error(self.at, str(error)) from None
        if isinstance(error, RecursionError):
            raise self.text.error(
                self.at, "expected a statement that is nested less deeply; put parts of it into views"
            ) from None
        if isinstance(error, Exception):
            raise self.text.error(
                self.at, f"expected a statement that can be planned, got {type(error).__name__}: {error}"
            ) from error


def create_table(script: Script, statement: s.CreateTable) -> None:
    """CREATE TABLE, and the INSERT of CREATE TABLE AS."""
    known = script.session.catalog.tables.get(statement.name.lower())
    if known is not None and statement.if_not_exists and not _is_given(known):
        return
    script.check_new(statement.name, statement.at)
    given = known.endpoint if isinstance(known, Table) else None
    if isinstance(known, StreamTable):
        return
    if statement.like:
        statement = _like(script, statement)
    script.session.catalog.define(Table(statement.name, statement, given, script.text))
    if statement.query is not None:
        relation = plan_query(script.planning(statement.name), statement.query)
        if not statement.columns:
            relation = exact(script.planning(statement.name), relation, statement.query)
            defined = replace(statement, columns=_columns_of(script, relation))
            script.session.catalog.define(Table(statement.name, defined, given, script.text))
        write_table(script.planning(statement.name), statement.name, (), relation, statement.query)


def _columns_of(script: Script, relation: Relation) -> tuple[s.ColumnDefinition, ...]:
    """The columns of a query as those of the table that it makes."""
    schema = script.session.builder.output(relation.port).schema
    fields = ((c.name, schema.field(c.field)) for c in relation.columns)
    return tuple(s.ColumnDefinition(name, 0, f.type, nullable=f.nullable) for name, f in fields)


def _like(script: Script, statement: s.CreateTable) -> s.CreateTable:
    """CREATE TABLE t (...) WITH (...) LIKE other: what the other has and this one does not say."""
    base = script.session.catalog.table(script.text, statement.like, statement.at)
    if not isinstance(base, Table) or base.definition is None:
        raise script.text.error(
            statement.at, f"expected a table that CREATE TABLE has made after LIKE, got {statement.like!r}"
        )
    return liked(script.text, statement, base.definition)


def create_view(script: Script, statement: s.CreateView) -> None:
    """CREATE VIEW."""
    if statement.if_not_exists and script.session.catalog.find(statement.name) is not None:
        return
    script.check_new(statement.name, statement.at, statement.replace)
    script.session.catalog.define(
        View(statement.name, statement.columns, statement.query, script.text, definition=statement)
    )


def insert(script: Script, statement: s.InsertInto) -> None:
    """INSERT INTO."""
    planning = script.planning(statement.table)
    relation = plan_query(planning, statement.query)
    write_table(planning, statement.table, statement.columns, relation, statement.query, options=statement.options)


def select(script: Script, statement: s.Select) -> None:
    """A query on its own, whose result is shown."""
    planning = script.planning(RESULT)
    relation = exact(planning, plan_query(planning, statement.query), statement.query)
    name = script.session.step(RESULT)
    planning.add(Sink(name, (relation.port,), console()), statement.query)


def drop(script: Script, statement: s.Drop) -> None:
    """DROP."""
    catalog = script.session.catalog
    names = catalog.functions if statement.kind == "FUNCTION" else catalog.tables
    if statement.name.lower() not in names:
        if statement.if_exists:
            return
        raise script.text.error(
            statement.at, f"no {statement.kind.lower()} {statement.name!r}; {nearest(statement.name, names)}"
        )
    del names[statement.name.lower()]
    script.session.relations.pop(("table", statement.name.lower()), None)


def set_option(script: Script, statement: s.SetOption) -> None:
    """SET and RESET."""
    if not statement.name:
        if statement.resets:
            script.session.settings.clear()
            script.session.follow_settings()
        return
    if statement.value is None:
        script.session.settings.pop(statement.name, None)
    else:
        checked_setting(script.text, statement)
        script.session.settings[statement.name] = statement.value
    script.session.follow_settings()


def begin(script: Script, statement: s.BeginSet) -> None:
    """BEGIN STATEMENT SET: all statements of a text are one flow, so nothing changes."""
    if script.open_set is not None:
        raise script.text.error(statement.at, "expected END before another statement set begins")
    script.open_set = statement.at


def end(script: Script, statement: s.EndSet) -> None:
    """END."""
    if script.open_set is None:
        raise script.text.error(statement.at, "expected BEGIN STATEMENT SET before END")
    script.open_set = None


def shown(script: Script, statement: s.Statement) -> None:
    """Statements that only show something do so in the shell; in a flow they change nothing."""


ACTIONS: dict[type, Callable[[Script, Any], None]] = {
    s.CreateTable: create_table,
    s.CreateView: create_view,
    s.InsertInto: insert,
    s.Select: select,
    s.Drop: drop,
    s.SetOption: set_option,
    s.BeginSet: begin,
    s.EndSet: end,
    s.Describe: shown,
    s.Show: shown,
    s.Explain: shown,
    s.Use: shown,
}
"""What is done for each statement. A family of statements adds itself here."""
FINISHING: list[Callable[[Script], None]] = []
"""What is done when all statements of a text are read. A family of statements adds itself here."""
