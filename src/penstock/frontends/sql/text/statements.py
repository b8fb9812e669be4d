"""Statements as they are read: one frozen record for each kind."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import Any, TypeAlias

from sqlglot import exp

from penstock.graph import types as t

Query: TypeAlias = exp.Expr
"""The syntax tree of a query, as sqlglot makes it."""
Options: TypeAlias = tuple[tuple[str, str, int], ...]
"""Options in WITH: name, value, and where they stand."""


@dataclass(frozen=True)
class Statement:
    """A statement: `at` and `end` are where it begins and ends in the text."""

    at: int
    end: int


@dataclass(frozen=True)
class ColumnDefinition:
    """A column of CREATE TABLE: of a type, or computed, or read from what the connector knows of a record."""

    name: str
    at: int
    type: t.DataType | None = None
    computed: Query | None = None
    metadata: str = ""
    nullable: bool = True


@dataclass(frozen=True)
class WatermarkDefinition:
    """WATERMARK FOR column AS expression."""

    column: str
    expression: Query
    at: int


@dataclass(frozen=True)
class CreateTable(Statement):
    """CREATE TABLE, with or without a query."""

    name: str
    columns: tuple[ColumnDefinition, ...] = ()
    watermark: WatermarkDefinition | None = None
    key: tuple[str, ...] = ()
    partitioned: tuple[str, ...] = ()
    options: Options = ()
    query: Query | None = None
    if_not_exists: bool = False
    like: str = ""
    like_parts: Options = ()
    """INCLUDING and the like, of which part of the other table, and where that stands."""


@dataclass(frozen=True)
class CreateView(Statement):
    """CREATE VIEW name [(columns)] AS query."""

    name: str
    columns: tuple[str, ...]
    query: Query
    if_not_exists: bool = False
    replace: bool = False


@dataclass(frozen=True)
class CreateFunction(Statement):
    """CREATE FUNCTION name AS 'module.name' LANGUAGE PYTHON."""

    name: str
    target: str
    if_not_exists: bool = False


@dataclass(frozen=True, eq=False)
class StandingForm:
    """What standing queries have in common that differ in constants alone.

    Args:
        query: the query, with the constants of the one that was parsed.
        sink: the table into which results go.
        when: the condition in WHEN.
        until: the condition in UNTIL.
        repeats: whether there is EVERY.
        by_proctime: whether EVERY goes by processing time.
        snapshot: whether there is WITH SNAPSHOT.
        has_moment: whether UNTIL names a moment.
    """

    query: Query
    sink: str
    when: Any = None
    until: Any = None
    repeats: bool = False
    by_proctime: bool = False
    snapshot: bool = False
    has_moment: bool = False

    @property
    def ends(self) -> bool:
        """Whether queries end by themselves."""
        return self.until is not None or self.has_moment

    @property
    def emits_changes_of_snapshot(self) -> bool:
        """Whether a query begins with the present answer, and then emits what changes."""
        return self.snapshot and not self.repeats and self.when is None


@dataclass(frozen=True)
class CreateStandingQuery(Statement):
    """CREATE STANDING QUERY name AS query [EVERY span | WHEN condition] [WITH SNAPSHOT] [UNTIL moment | condition] INTO table.

    Args:
        name: its name.
        form: what it has in common with others.
        constants: what it has for itself: the constants of its conditions, each with a letter for its kind.
        every: how often it fires, in microseconds.
        until: the moment at which it ends.
    """

    name: str
    form: StandingForm
    constants: tuple[str, ...]
    every: int | None = None
    until: datetime.datetime | None = None


@dataclass(frozen=True)
class Drop(Statement):
    """DROP TABLE, VIEW or FUNCTION."""

    kind: str
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class Alteration:
    """One change of a table.

    Args:
        verb: RENAME, RENAME COLUMN, ADD, MODIFY, DROP, SET or RESET.
        rename: the new name of the table or the column.
        names: columns or options that are meant, and where they stand.
        columns: columns that are added or modified, each with the column after which it comes: empty for the first, None where nothing is said.
        watermark: the watermark that is added or modified.
        key: the primary key that is added or modified.
        options: options that are set.
        parts: what else is dropped: PRIMARY KEY or WATERMARK.
    """

    verb: str
    rename: str = ""
    names: tuple[tuple[str, int], ...] = ()
    columns: tuple[tuple[ColumnDefinition, tuple[str, int] | None], ...] = ()
    watermark: WatermarkDefinition | None = None
    key: tuple[str, ...] = ()
    options: Options = ()
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlterTable(Statement):
    """ALTER TABLE name change."""

    name: str
    if_exists: bool
    change: Alteration


@dataclass(frozen=True)
class AlterView(Statement):
    """ALTER VIEW name RENAME TO other, or AS query."""

    name: str
    if_exists: bool
    rename: str = ""
    query: Query | None = None


@dataclass(frozen=True)
class InsertInto(Statement):
    """INSERT INTO table [/*+ OPTIONS(...) */] [(columns)] query."""

    table: str
    columns: tuple[str, ...]
    query: Query
    options: Options = ()


@dataclass(frozen=True)
class Select(Statement):
    """A query on its own."""

    query: Query


@dataclass(frozen=True)
class Explain(Statement):
    """EXPLAIN [details] statement."""

    statement: Statement
    details: tuple[str, ...] = ()


@dataclass(frozen=True)
class Describe(Statement):
    """DESCRIBE table, and SHOW COLUMNS FROM table [LIKE pattern]."""

    name: str
    like: str = ""


@dataclass(frozen=True)
class Show(Statement):
    """SHOW TABLES, VIEWS, FUNCTIONS, CREATE TABLE name ..."""

    what: str
    name: str = ""
    like: str = ""


@dataclass(frozen=True)
class SetOption(Statement):
    """SET 'name' = 'value'; without a name all options are asked for. RESET has no value, and without a name it means all options."""

    name: str = ""
    value: str | None = None
    resets: bool = False


CATALOG, DATABASE = "default_catalog", "default_database"
"""The names that may stand before that of a table, as Flink has them."""


@dataclass(frozen=True)
class Use(Statement):
    """USE CATALOG name and USE name: there is one of each."""

    name: str


@dataclass(frozen=True)
class BeginSet(Statement):
    """BEGIN STATEMENT SET."""


@dataclass(frozen=True)
class EndSet(Statement):
    """END."""
