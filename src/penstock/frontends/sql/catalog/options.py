"""The options in WITH: which connector, and the endpoint that they describe."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from penstock.errors import FlowError, PenstockError, nearest
from penstock.frontends.sql.catalog.connectors import CONNECTORS, Given, LookedUp, Maker
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.statements import CreateTable
from penstock.graph.nodes import Endpoint, OnError, on_error_of
from penstock.graph.nodes.policy import SKIP
from penstock.graph.schema import Schema

T = TypeVar("T")
PARTITION_OPTION = "watermark.partition"
"""The option that names the column whose values have a watermark each, such as the partition of a topic."""
ON_ERROR = "on-error"
"""What happens to a record that cannot be read, or a row that a server refuses; in WITH of a table, and in SET for all steps."""
_IGNORES = ("json.ignore-parse-errors", "csv.ignore-parse-errors")


def policy_of(text: SqlText, definition: CreateTable) -> OnError | None:
    """What the options of a table say of records that cannot be read; None where they say nothing.

    Raises:
        SqlError: there is no such policy; with its place.
    """
    given = {name.lower(): (value, at) for name, value, at in definition.options}
    if ON_ERROR in given:
        value, at = given[ON_ERROR]
        return checked_policy(text, value, at)
    for name in _IGNORES:
        value, at = given.get(name, ("false", 0))
        if value.lower() not in ("true", "false"):
            raise text.error(at, f"option {name!r}: expected 'true' or 'false', got {value!r}")
        if value.lower() == "true":
            return OnError(SKIP)
    return None


def checked_policy(text: SqlText, value: str, at: int) -> OnError:
    """A policy by its name.

    Raises:
        SqlError: there is no such policy; with its place.
    """
    try:
        return on_error_of(value.replace("-", "_"))
    except FlowError:
        raise text.error(at, f"{ON_ERROR!r}: expected 'fail', 'dead_letter' or 'skip', got {value!r}") from None


def source_of(text: SqlText, definition: CreateTable, schema: Schema) -> Endpoint:
    """The endpoint that reads a table.

    Raises:
        SqlError: an option is unknown, missing or wrong; with its place.
    """
    given, maker = _given(text, definition, schema)
    if maker.reads is None:
        raise text.error(definition.at, f"connector {given.kind!r} writes tables, and cannot read one")
    return _made(given, maker.reads)


def looked_up_of(text: SqlText, definition: CreateTable, schema: Schema) -> LookedUp | None:
    """What a look-up reads of a table whose connector has a way of its own for it; None where it has none."""
    given, maker = _given(text, definition, schema)
    return None if maker.looks_up is None else _made(given, maker.looks_up)


def sink_of(text: SqlText, definition: CreateTable, schema: Schema) -> Endpoint:
    """The endpoint that writes a table."""
    given, maker = _given(text, definition, schema)
    if maker.writes is None:
        raise text.error(definition.at, f"connector {given.kind!r} reads tables, and cannot write one")
    return _made(given, maker.writes)


def _given(text: SqlText, definition: CreateTable, schema: Schema) -> tuple[Given, Maker]:
    options = {name.lower(): (value, at) for name, value, at in definition.options}
    if "connector" not in options:
        raise text.error(
            definition.at,
            f"table {definition.name!r} must say its connector: WITH ('connector' = '...'), or be given in tables={{...}}; "
            f"there are: {', '.join(sorted(CONNECTORS))}",
        )
    options.pop(PARTITION_OPTION, None)
    kind, at = options.pop("connector")
    for name in (ON_ERROR, *_IGNORES):
        options.pop(name, None)
    if kind.lower() not in CONNECTORS:
        raise text.error(at, f"no connector {kind!r}; {nearest(kind.lower(), CONNECTORS)}")
    metadata = tuple(c.metadata for c in definition.columns if c.metadata)
    if metadata and kind.lower() not in ("kafka", "upsert-kafka"):
        raise text.error(definition.at, f"connector {kind!r} has no metadata columns; that of kafka has")
    key, by = definition.key, definition.partitioned
    given = Given(text, definition.at, kind.lower(), options, schema, key, by, metadata)
    return given, CONNECTORS[kind.lower()]


def _made(given: Given, make: Callable[[Given], T]) -> T:
    try:
        made = make(given)
    except PenstockError as error:
        if getattr(error, "column", 0):
            raise
        raise given.text.error(given.at, str(error)) from None
    given.check_all_used()
    return made
