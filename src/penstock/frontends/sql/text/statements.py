"""Statements as they are read: one frozen record for each kind."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TypeAlias

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


@dataclass(frozen=True)
class CreateStandingQuery(Statement):
    """CREATE STANDING QUERY name AS query [UNTIL moment] INTO table."""

    name: str
    query: Query
    sink: str
    until: datetime.datetime | None = None


@dataclass(frozen=True)
class Drop(Statement):
    """DROP TABLE, VIEW or FUNCTION."""

    kind: str
    name: str
    if_exists: bool = False


@dataclass(frozen=True)
class InsertInto(Statement):
    """INSERT INTO table [(columns)] query."""

    table: str
    columns: tuple[str, ...]
    query: Query


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
    """DESCRIBE table."""

    name: str


@dataclass(frozen=True)
class Show(Statement):
    """SHOW TABLES, VIEWS, FUNCTIONS, CREATE TABLE name ..."""

    what: str
    name: str = ""


@dataclass(frozen=True)
class SetOption(Statement):
    """SET 'name' = 'value'; without a name all options are asked for. RESET has no value."""

    name: str = ""
    value: str | None = None


@dataclass(frozen=True)
class BeginSet(Statement):
    """BEGIN STATEMENT SET."""


@dataclass(frozen=True)
class EndSet(Statement):
    """END."""
