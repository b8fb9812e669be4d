"""Records as JSON text, with Spark's meaning: for hosts without a JVM.

>>> from penstock.graph.schema import schema_of
>>> json_writer(schema_of("n bigint, s string, x double"))((7, None, 0.5))
'{"n":7,"s":null,"x":0.5}'
"""

from __future__ import annotations

import base64
import datetime
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.kernels.expr.text import text_of

Write = Callable[[Any], str]
"""A function from a value of the type at hand to its text."""


def json_writer(schema: Schema) -> Callable[[Sequence[object]], str]:
    """A function from the values of a record to a JSON object; nulls are written."""
    return _object([(f.name, json_value(f.type)) for f in schema.fields])


def _object(fields: list[tuple[str, Write]]) -> Callable[[Sequence[object]], str]:
    parts = [(f"{_quoted(name)}:", write) for name, write in fields]

    def written(values: Sequence[object]) -> str:
        return "{" + ",".join(name + write(v) for (name, write), v in zip(parts, values, strict=True)) + "}"

    return written


def json_value(kind: t.DataType) -> Write:
    """A function from a value of a type to its JSON."""
    known = _known(kind)
    return lambda value: "null" if value is None else known(value)


def _known(kind: t.DataType) -> Write:
    if isinstance(kind, t.Array):
        item = json_value(kind.item)
        return lambda value: "[" + ",".join(map(item, value)) + "]"
    if isinstance(kind, t.Map):
        key, each = text_of(kind.key), json_value(kind.value)
        return lambda value: "{" + ",".join(f"{_quoted(key(k))}:{each(v)}" for k, v in value.items()) + "}"
    if isinstance(kind, t.Struct):
        names, whole = [f.name for f in kind.fields], _object([(f.name, json_value(f.type)) for f in kind.fields])
        return lambda value: whole([value[n] for n in names] if isinstance(value, dict) else value)
    return _PLAIN.get(kind, text_of(kind))


def _number(kind: t.DataType) -> Write:
    text = text_of(kind)
    return lambda value: text(value) if math.isfinite(value) else _quoted(text(value))


def _moment(value: datetime.datetime) -> str:
    """Milliseconds, as Spark's `to_json` writes them."""
    zone = "Z" if value.tzinfo is not None else ""
    return _quoted(f"{value.replace(tzinfo=None).isoformat(timespec='milliseconds')}{zone}")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


_PLAIN: dict[t.DataType, Write] = {
    t.STRING: _quoted,
    t.BINARY: lambda value: _quoted(base64.b64encode(value).decode()),
    t.DATE: lambda value: _quoted(value.isoformat()),
    t.TIMESTAMP: lambda value: _moment(value.astimezone(datetime.UTC)),
    t.TIMESTAMP_NTZ: _moment,
    t.FLOAT: _number(t.FLOAT),
    t.DOUBLE: _number(t.DOUBLE),
}
