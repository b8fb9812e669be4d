"""Messages of topics as records, without a JVM: values as text, JSON or raw bytes."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from penstock.connectors.local import Record
from penstock.graph.nodes import Endpoint
from penstock.graph.row import Row
from penstock.graph.schema import Schema
from penstock.graph.types import BINARY, STRING
from penstock.kernels.expr.cast import cast_value
from penstock.kernels.records.reading import MalformedRecord, Unreadable, read_json
from penstock.kernels.records.writing import json_writer

Headers: TypeAlias = "list[dict[str, str | bytes | None]] | None"
_TEXTS = ("key", "value")


@dataclass(frozen=True)
class Message:
    """A record of a topic, as it is stored."""

    topic: str
    partition: int
    offset: int
    timestamp: datetime.datetime | None
    key: bytes | None
    value: bytes | None
    headers: Headers = field(default=None)

    @property
    def position(self) -> str:
        """Where it is."""
        return f"topic {self.topic}, partition {self.partition}, offset {self.offset}"


ReadBody = Callable[[bytes | None, Schema], tuple[Any, ...]]
"""Makes the fields of a record of a value, or raises Unreadable."""


def message_reader(
    endpoint: Endpoint, schema: Schema, read_body: ReadBody | None = None
) -> Callable[[Message], Record]:
    """A function from messages to records of a schema; a message that is none becomes `MalformedRecord`.

    Values are JSON, unless `read_body` reads them.
    """
    form, also = endpoint.options["format"], tuple(endpoint.options.get("also") or ())
    if form == "raw":
        return lambda message: tuple(getattr(message, name) for name in schema.names)
    read = _read_text if form == "text" else _body_reader(schema, also, read_body or json_body)
    return lambda message: _checked(read, message, schema)


def _checked(read: Callable[[Message, Schema], Record], message: Message, schema: Schema) -> Record:
    try:
        return read(message, schema)
    except Unreadable as error:
        return MalformedRecord(message.value or b"", message.position, str(error))


def _read_text(message: Message, schema: Schema) -> Record:
    return tuple(_beside(message, name) for name in schema.names)


def _body_reader(schema: Schema, also: Sequence[str], read_body: ReadBody) -> Callable[[Message, Schema], Record]:
    body = Schema(tuple(f for f in schema.fields if f.name not in also))

    def read(message: Message, schema: Schema) -> Record:
        found = dict(zip(body.names, read_body(message.value, body), strict=True))
        return tuple(found[n] if n in found else _beside(message, n) for n in schema.names)

    return read


def json_body(value: bytes | None, body: Schema) -> tuple[Any, ...]:
    """The fields of a value that is JSON."""
    text = _text(value, "value")
    if text is not None and not text.strip():
        raise Unreadable("it is empty")
    return (None,) * len(body.fields) if text is None else read_json(text, body)


def _beside(message: Message, name: str) -> Record:
    value = getattr(message, name)
    return _text(value, name) if name in _TEXTS else value


def _text(data: bytes | None, name: str) -> str | None:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        raise Unreadable(f"the {name} is not UTF-8") from None


def json_bytes(schema: Schema, names: Sequence[str]) -> Callable[[Row], bytes]:
    """A function from a row to some of its fields as JSON."""
    write = json_writer(schema.only(tuple(names)))
    return lambda row: write([row[n] for n in names]).encode()


def field_bytes(schema: Schema, name: str) -> Callable[[Row], bytes | None]:
    """A function from a row to a field as the bytes of its text; bytes stay as they are."""
    kind = schema.field(name).type
    if kind == BINARY:
        return lambda row: row[name]
    text = cast_value(kind, STRING)
    return lambda row: None if row[name] is None else text(row[name]).encode()
