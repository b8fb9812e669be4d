"""Records out of lines of text, with Spark's meaning: for the runtime without a JVM, and to say why Spark could not read one.

>>> from penstock.graph.schema import schema_of
>>> read_json('{"n": 7}', schema_of("n bigint, s string"))
(7, None)
>>> why_unread("json", b'{"n": "x"}', schema_of("n bigint"))
"field 'n': bigint needs a whole number, got 'x'"
"""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.kernels.expr.cast import cast_value
from penstock.kernels.records.values import BadValue, checker_of

DOUBLES = ("NaN", "Infinity", "+INF", "-Infinity", "-INF", "INF")


class Unreadable(ValueError):
    """A text that is not a record of the schema; the message says why."""


@dataclass(frozen=True)
class Unread:
    """A record that a source could not read: as it came, where it came from, and why."""

    raw: bytes
    position: str
    cause: str

    @property
    def text(self) -> str:
        """The record as people see it."""
        return self.raw.decode(errors="backslashreplace")


def read_json(text: str, schema: Schema) -> tuple[Any, ...]:
    """The values of a line of JSON. What stands behind its first value is not looked at, as in Spark."""
    try:
        found, _ = json.JSONDecoder().raw_decode(text.strip())
    except ValueError as error:
        raise Unreadable(f"not JSON: {error}") from None
    if not isinstance(found, dict):
        raise Unreadable(f"a JSON object is needed, got {type(found).__name__}")
    return tuple(_field(found.get(f.name), f) for f in schema.fields)


def _field(value: Any, field: t.Field) -> Any:
    try:
        return _value(value, field.type)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise Unreadable(f"field {field.name!r}: {error}") from None


def _value(value: Any, kind: t.DataType) -> Any:
    if value is None:
        return None
    if isinstance(kind, t.Array):
        return [_value(v, kind.item) for v in _expected(value, list, kind)]
    if isinstance(kind, t.Map):
        return {k: _value(v, kind.value) for k, v in _expected(value, dict, kind).items()}
    if isinstance(kind, t.Struct):
        found = _expected(value, dict, kind)
        return tuple(_value(found.get(f.name), f.type) for f in kind.fields)
    return _plain(value, kind)


def _expected(value: Any, kind: type, target: t.DataType) -> Any:
    if not isinstance(value, kind):
        raise ValueError(f"{target} needs a {'list' if kind is list else 'JSON object'}, got {value!r}")
    return value


def _plain(value: Any, kind: t.DataType) -> Any:
    if kind == t.STRING:
        return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))
    if isinstance(value, str) and kind in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return cast_value(t.STRING, kind)(value)
    if isinstance(kind, t.Decimal) and isinstance(value, int | float) and not isinstance(value, bool):
        return cast_value(t.STRING, kind)(repr(value))
    if isinstance(value, str) and kind == t.BINARY:
        return base64.b64decode(value)
    if isinstance(value, str) and kind in (t.FLOAT, t.DOUBLE) and value in DOUBLES:
        return float(value.replace("INF", "inf"))
    try:
        return checker_of(kind)([value])[0]
    except BadValue as error:
        raise ValueError(str(error)) from None


def read_csv(line: str, schema: Schema) -> tuple[Any, ...]:
    """The values of a line of CSV, by position."""
    found = next(csv.reader([line]))
    if len(found) != len(schema.fields):
        raise Unreadable(f"{len(schema.fields)} fields are needed ({', '.join(schema.names)}), got {len(found)}")
    return tuple(_cell(text, f) for text, f in zip(found, schema.fields, strict=True))


def _cell(text: str, field: t.Field) -> Any:
    if text == "":
        return None
    if field.type in t.INTEGERS and text != text.strip():
        raise Unreadable(f"field {field.name!r}: {text!r} is no {field.type}")
    try:
        return cast_value(t.STRING, field.type)(text)
    except (ValueError, ArithmeticError) as error:
        raise Unreadable(f"field {field.name!r}: {error}") from None


def read_text(text: str, schema: Schema) -> tuple[Any, ...]:
    """A text is a record as it is."""
    return (text,)


READERS: dict[str, Callable[[str, Schema], tuple[Any, ...]]] = {"json": read_json, "csv": read_csv, "text": read_text}


def why_unread(form: str, raw: bytes, schema: Schema) -> str:
    """Why a record could not be read. Values of JSON Schema have five bytes in front, which are right where this is asked."""
    try:
        text = raw[5 if form == "json_schema" else 0 :].decode()
    except UnicodeDecodeError as error:
        return f"not UTF-8: {error.reason} at byte {error.start}"
    if not text.strip():
        return "it is empty"
    try:
        READERS.get(form, read_json)(text, schema)
    except Unreadable as error:
        return str(error)
    return f"it does not fit the schema ({schema})"
