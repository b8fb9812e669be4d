"""Values of a schema as JSON and back, with nothing lost: what JSON lacks is text that the type gives a meaning.

>>> import decimal
>>> from penstock.graph.schema import schema_of
>>> kinds = schema_of("n bigint, price decimal(5,2), tags array<string>")
>>> made = to_json((7, decimal.Decimal("1.50"), ["a"]), kinds)
>>> made
{'n': 7, 'price': '1.50', 'tags': ['a']}
>>> from_json(made, kinds)
(7, Decimal('1.50'), ['a'])
"""

from __future__ import annotations

import base64
import datetime
import decimal
import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.kernels.records.values import BadValue, checker_of

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


class NotTheType(ValueError):
    """JSON that is no value of its type; the message names the field."""


def to_json(values: Sequence[object], schema: Schema) -> dict[str, Json]:
    """The values of a record by the names of its fields."""
    return {f.name: value_to_json(v, f.type) for f, v in zip(schema.fields, values, strict=True)}


def from_json(record: object, schema: Schema) -> tuple[object, ...]:
    """The values of a record, in the order of the schema; a field that is missing is null, one that is unknown is refused."""
    if not isinstance(record, Mapping):
        raise NotTheType(f"a record is a JSON object with the fields {', '.join(schema.names)}, got {record!r}")
    unknown = [name for name in record if name not in schema.names]
    if unknown:
        raise NotTheType(f"the schema has no field {unknown[0]!r}; it has {', '.join(schema.names)}")
    return tuple(_field_from_json(record.get(f.name), f) for f in schema.fields)


def _field_from_json(value: object, field: t.Field) -> object:
    try:
        return value_from_json(value, field.type)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise NotTheType(f"field {field.name!r}: {error}") from None


def value_to_json(value: object, kind: t.DataType) -> Json:
    """One value as JSON."""
    if value is None:
        return None
    if isinstance(kind, t.Array):
        return [value_to_json(v, kind.item) for v in _items(value)]
    if isinstance(kind, t.Map):
        return _map_to_json(value, kind)
    if isinstance(kind, t.Struct):
        return {f.name: value_to_json(v, f.type) for f, v in zip(kind.fields, _parts(value, kind), strict=True)}
    return _plain_to_json(value)


def _items(value: object) -> Sequence[object]:
    return list(value)  # type: ignore[call-overload, no-any-return]  # of an array


def _map_to_json(value: object, kind: t.Map) -> Json:
    """An object if its keys are text, else a list of pairs."""
    pairs = dict(value)  # type: ignore[call-overload]  # of a map
    if kind.key == t.STRING:
        return {str(k): value_to_json(v, kind.value) for k, v in pairs.items()}
    return [[value_to_json(k, kind.key), value_to_json(v, kind.value)] for k, v in pairs.items()]


def _parts(value: object, kind: t.Struct) -> Sequence[object]:
    """The values of a struct in order, of a dict, a tuple or a Row."""
    if isinstance(value, Mapping):
        return [value.get(f.name) for f in kind.fields]
    return value if isinstance(value, tuple) else [getattr(value, f.name) for f in kind.fields]


def _plain_to_json(value: object) -> Json:
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, decimal.Decimal):
        return str(value)
    return value if isinstance(value, bool | int | str) else str(value)


def value_from_json(value: object, kind: t.DataType) -> object:
    """One value of a type; raises ValueError for what is none."""
    if value is None:
        return None
    if isinstance(kind, t.Array):
        return [value_from_json(v, kind.item) for v in _list(value, kind)]
    if isinstance(kind, t.Map):
        return _map_from_json(value, kind)
    if isinstance(kind, t.Struct):
        return _struct_from_json(value, kind)
    return _plain_from_json(value, kind)


def _list(value: object, kind: t.DataType) -> list[object]:
    if not isinstance(value, list):
        raise ValueError(f"{kind} is a list, got {value!r}")
    return value


def _struct_from_json(value: object, kind: t.Struct) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError(f"{kind} is a JSON object, got {value!r}")
    return {f.name: value_from_json(value.get(f.name), f.type) for f in kind.fields}


def _map_from_json(value: object, kind: t.Map) -> dict[object, object]:
    pairs = list(value.items()) if isinstance(value, dict) else [tuple(_list(p, kind)) for p in _list(value, kind)]
    return {value_from_json(k, kind.key): value_from_json(v, kind.value) for k, v in pairs}


def _plain_from_json(value: object, kind: t.DataType) -> object:
    made = _read_text(value, kind) if isinstance(value, str) else value
    try:
        return checker_of(kind)([made])[0]
    except BadValue as error:
        raise ValueError(str(error)) from None


def _read_text(text: str, kind: t.DataType) -> object:
    """What a text stands for where JSON has no such value."""
    if kind == t.BINARY:
        return base64.b64decode(text, validate=True)
    if kind == t.DATE:
        return datetime.date.fromisoformat(text)
    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return datetime.datetime.fromisoformat(text)
    if isinstance(kind, t.Decimal):
        return decimal.Decimal(text)
    return float(text) if kind in (t.FLOAT, t.DOUBLE) else text
