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
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.kernels.expr.cast import cast_value
from penstock.kernels.records.values import BadValue, checker_of

_Kind = TypeVar("_Kind")
MAX_DEPTH = 500
"""How deep lists and objects of JSON may lie in each other here; Spark allows 1,000, for which Python has not the stack."""
ESCAPES = (ValueError, TypeError, ArithmeticError, LookupError, RecursionError, MemoryError, csv.Error)
"""Whatever gets out of a parser makes a bad record, not a failed batch."""
DOUBLES = ("NaN", "Infinity", "+INF", "-Infinity", "-INF", "INF")


class Unreadable(ValueError):
    """A text that is not a record of the schema; the message says why."""


@dataclass(frozen=True)
class Unread:
    """A record that a source could not read: its bytes, its position, and why."""

    raw: bytes
    position: str
    cause: str

    @property
    def text(self) -> str:
        """The record as people see it."""
        return self.raw.decode(errors="backslashreplace")


def read_json(text: str, schema: Schema) -> tuple[Any, ...]:
    """The values of a text that is a JSON object. What stands after it is not looked at, as in Spark.

    Raises:
        Unreadable: The text is no JSON object, or a field does not fit; the message names the field.
    """
    found = _parsed(text)
    if not isinstance(found, dict):
        raise Unreadable(f"a JSON object is needed, got {type(found).__name__}")
    return tuple(_field(found.get(f.name), f) for f in schema.fields)


def _parsed(text: str) -> object:
    if depth_of(text) > MAX_DEPTH:
        raise Unreadable(f"not JSON that can be read: nested deeper than {MAX_DEPTH}")
    try:
        return json.JSONDecoder(object_pairs_hook=_Object.of).raw_decode(text.strip())[0]
    except ESCAPES as error:
        raise Unreadable(f"not JSON: {_said(error)}") from None


def depth_of(text: str) -> int:
    """How deep lists and objects lie in each other, at most; looked at closely only where there are many.

    >>> depth_of('{"a": [1]}'), depth_of("[" * 2000), depth_of('{"a": "' + "[" * 2000 + '"}')
    (2, 2000, 1)
    """
    if (many := text.count("[") + text.count("{")) <= MAX_DEPTH:
        return min(many, 2) if many else 0
    depth = deepest = 0
    for bracket in re.findall(r"[\[{\]}]", _STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        deepest = max(deepest, depth)
    return deepest


_STRINGS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL)


class _Object(dict[str, Any]):
    """An object of JSON that knows a key which it has twice."""

    twice: str | None = None

    @classmethod
    def of(cls, pairs: list[tuple[str, Any]]) -> _Object:
        made = cls(pairs)
        if len(made) < len(pairs):
            names = [name for name, _ in pairs]
            made.twice = next(name for at, name in enumerate(names) if name in names[:at])
        return made


def _said(error: BaseException) -> str:
    """What a parser says; those that run out of something say nothing useful."""
    if isinstance(error, RecursionError):
        return "nested too deep"
    return str(error) or type(error).__name__


def _field(value: object, field: t.Field) -> object:
    try:
        return _value(value, field.type)
    except ESCAPES as error:
        raise Unreadable(f"field {field.name!r}: {_said(error)}") from None


def _value(value: Any, kind: t.DataType) -> object:
    if value is None:
        return None
    if isinstance(kind, t.Array):
        return [_value(v, kind.item) for v in _expected(value, list, kind)]
    if isinstance(kind, t.Map):
        found = _expected(value, dict, kind)
        twice = getattr(found, "twice", None)
        if twice is not None:
            raise ValueError(f"the key {twice!r} occurs twice")
        return {k: _value(v, kind.value) for k, v in found.items()}
    if isinstance(kind, t.Struct):
        found = _expected(value, dict, kind)
        return tuple(_value(found.get(f.name), f.type) for f in kind.fields)
    return _plain(value, kind)


def _expected(value: object, kind: type[_Kind], target: t.DataType) -> _Kind:
    if not isinstance(value, kind):
        raise ValueError(f"{target} needs a {'list' if kind is list else 'JSON object'}, got {value!r}")
    return value


def _plain(value: object, kind: t.DataType) -> object:
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
    try:
        found = next(csv.reader([line]), [])
    except csv.Error as error:
        raise Unreadable(f"not CSV: {error}") from None
    if len(found) != len(schema.fields):
        raise Unreadable(f"{len(schema.fields)} fields are needed ({', '.join(schema.names)}), got {len(found)}")
    return tuple(_cell(text, f) for text, f in zip(found, schema.fields, strict=True))


def _cell(text: str, field: t.Field) -> object:
    if text == "":
        return None
    if field.type in t.INTEGERS and text != text.strip():
        raise Unreadable(f"field {field.name!r}: {text!r} is no {field.type}")
    try:
        return cast_value(t.STRING, field.type)(text)
    except ESCAPES as error:
        raise Unreadable(f"field {field.name!r}: {_said(error)}") from None


def read_text(text: str, schema: Schema) -> tuple[Any, ...]:
    """A text is a record as it is."""
    return (text,)


READERS: dict[str, Callable[[str, Schema], tuple[Any, ...]]] = {"json": read_json, "csv": read_csv, "text": read_text}


def decoded(raw: bytes) -> str:
    """Bytes as text.

    Raises:
        Unreadable: They are not UTF-8.
    """
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: {error.reason} at byte {error.start}") from None


def why_unread(form: str, raw: bytes, schema: Schema) -> str:
    """Why a record could not be read. Values of JSON Schema have five bytes in front, which are right where this is asked."""
    try:
        text = decoded(raw[5 if form == "json_schema" else 0 :])
        if not text.strip():
            return "it is empty"
        READERS.get(form, read_json)(text, schema)
    except Unreadable as error:
        return str(error)
    return f"it does not fit the schema ({schema})"
