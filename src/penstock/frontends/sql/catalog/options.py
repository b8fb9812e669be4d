"""The options in WITH: which connector, and the endpoint that they describe."""

from __future__ import annotations

from penstock.errors import PenstockError, nearest
from penstock.frontends.sql.catalog.connectors import CONNECTORS, Given, Maker
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.statements import CreateTable
from penstock.graph.nodes import Endpoint
from penstock.graph.schema import Schema


def source_of(text: SqlText, definition: CreateTable, schema: Schema) -> Endpoint:
    """The endpoint that reads a table.

    Raises:
        SqlError: an option is unknown, missing or wrong; with its place.
    """
    given, maker = _given(text, definition, schema)
    if maker.reads is None:
        raise text.error(definition.at, f"connector {given.kind!r} writes tables, and cannot read one")
    return _made(given, maker.reads)


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
    kind, at = options.pop("connector")
    if kind.lower() not in CONNECTORS:
        raise text.error(at, f"no connector {kind!r}; {nearest(kind.lower(), CONNECTORS)}")
    metadata = tuple(c.metadata for c in definition.columns if c.metadata)
    if metadata and kind.lower() not in ("kafka", "upsert-kafka"):
        raise text.error(definition.at, f"connector {kind!r} has no metadata columns; that of kafka has")
    key, by = definition.key, definition.partitioned
    given = Given(text, definition.at, kind.lower(), options, schema, key, by, metadata)
    return given, CONNECTORS[kind.lower()]


def _made(given: Given, make: object) -> Endpoint:
    try:
        endpoint: Endpoint = make(given)  # type: ignore[operator]
    except PenstockError as error:
        if getattr(error, "column", 0):
            raise
        raise given.text.error(given.at, str(error)) from None
    given.check_all_used()
    return endpoint
