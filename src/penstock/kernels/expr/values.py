"""Values of streams as expressions see them: brought into one form, ordered, rounded.

Numbers are int, float and Decimal, timestamps are datetimes in UTC, arrays lists, maps and structs dicts.
"""

from __future__ import annotations

import datetime
import decimal
import struct
from collections.abc import Callable, Mapping
from typing import Any

from penstock.graph import types as t

Value = Callable[[Any], Any]

RANGES = {t.TINYINT: 2**7, t.SMALLINT: 2**15, t.INT: 2**31, t.BIGINT: 2**63}
"""How many values of each sign a whole-number type holds."""

EXACT = decimal.Context(prec=120, rounding=decimal.ROUND_HALF_UP)
"""Room for any product of two decimals, rounded as Spark rounds."""

_FLOAT = struct.Struct("f")


def single(value: float) -> float:
    """The nearest number of four bytes."""
    try:
        return float(_FLOAT.unpack(_FLOAT.pack(value))[0])
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def fit_decimal(value: decimal.Decimal, kind: t.Decimal) -> decimal.Decimal:
    """The number rounded to the type's scale, zero without a sign; an OverflowError when it has too many digits."""
    rounded = value.quantize(decimal.Decimal((0, (1,), -kind.scale)), context=EXACT)
    if rounded.adjusted() >= kind.precision - kind.scale and rounded:
        raise OverflowError(f"{value} does not fit in {kind}; cast to a wider decimal")
    return EXACT.plus(rounded)


def fit_integer(value: int, kind: t.DataType) -> int:
    """The number itself; an OverflowError when the type cannot hold it."""
    limit = RANGES[kind]  # type: ignore[index]
    if -limit <= value < limit:
        return value
    raise OverflowError(f"{value} does not fit in {kind}; cast to a wider type")


def loader(kind: t.DataType) -> Value | None:
    """What brings a value of a record into the form used here; None when it has it already."""
    if kind == t.TIMESTAMP:
        return _nullable(_utc)
    if kind == t.TIMESTAMP_NTZ:
        return _nullable(_local)
    if kind == t.FLOAT:
        return _nullable(single)
    if isinstance(kind, t.Decimal):
        return _nullable(lambda value: fit_decimal(decimal.Decimal(value), kind))
    if isinstance(kind, t.Array):
        return _nullable(_list_loader(loader(kind.item)))
    if isinstance(kind, t.Map):
        return _nullable(_map_loader(loader(kind.key), loader(kind.value)))
    return _nullable(_struct_loader(kind)) if isinstance(kind, t.Struct) else None


def _nullable(load: Value) -> Value:
    return lambda value: None if value is None else load(value)


def _utc(value: datetime.datetime) -> datetime.datetime:
    zone = value.tzinfo
    if zone is datetime.UTC:
        return value
    return value.replace(tzinfo=datetime.UTC) if zone is None else value.astimezone(datetime.UTC)


def _local(value: datetime.datetime) -> datetime.datetime:
    return value if value.tzinfo is None else value.astimezone(datetime.UTC).replace(tzinfo=None)


def _list_loader(item: Value | None) -> Value:
    if item is None:
        return lambda value: value if type(value) is list else list(value)
    return lambda value: [item(v) for v in value]


def _map_loader(key: Value | None, value: Value | None) -> Value:
    if key is None and value is None:
        return lambda given: given if type(given) is dict else dict(given)
    on_key, on_value = key or _same, value or _same
    return lambda given: {on_key(k): on_value(v) for k, v in dict(given).items()}


def _same(value: object) -> object:
    return value


def _struct_loader(kind: t.Struct) -> Value:
    readers = [(f.name, field_reader(kind, f.name)) for f in kind.fields]
    return lambda value: {name: read(value) for name, read in readers}


def field_reader(kind: t.Struct, name: str) -> Value:
    """What reads a field of a struct that may be a mapping, an object with attributes, or a plain tuple."""
    index = [f.name for f in kind.fields].index(name)
    load = loader(kind.fields[index].type) or _same

    def read(value: Any) -> object:
        if isinstance(value, Mapping):
            return load(value.get(name))
        return load(value[index] if type(value) in (tuple, list) else getattr(value, name))

    return read


def sort_key(kind: t.DataType) -> Value | None:
    """What maps a value to a key that can be hashed and that sorts as Spark sorts; None when the value is such a key."""
    if kind in (t.FLOAT, t.DOUBLE):
        return lambda value: (1, 0.0) if value != value else (0, value)
    if isinstance(kind, t.Array):
        return _items_key(sort_key(kind.item) or _same)
    if isinstance(kind, t.Struct):
        return _fields_key([(f.name, sort_key(f.type) or _same) for f in kind.fields])
    return None


def _items_key(item: Value) -> Value:
    return lambda value: tuple((0,) if v is None else (1, item(v)) for v in value)


def _fields_key(fields: list[tuple[str, Value]]) -> Value:
    return lambda value: tuple((0,) if value[n] is None else (1, key(value[n])) for n, key in fields)
