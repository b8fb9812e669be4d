"""Casts between types, as Spark makes them in ANSI mode: what does not fit raises.

>>> cast_value(t.STRING, t.INT)(" 42 ")
42
"""

from __future__ import annotations

import datetime
import decimal
import math
import re

from penstock.errors import ExpressionError
from penstock.graph import types as t
from penstock.graph.expr.literals import to_date, to_timestamp
from penstock.kernels.expr.text import text_of
from penstock.kernels.expr.values import EXACT, Value, fit_decimal, fit_integer, single

_TRUE = frozenset({"t", "true", "y", "yes", "1"})
_FALSE = frozenset({"f", "false", "n", "no", "0"})
_BLANKS = "".join(map(chr, range(0x21))) + "\x7f"
_WHOLE = re.compile(r"[-+]?\d+", re.ASCII)
_REAL = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)[dDfF]?", re.ASCII)
_EXACT = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?", re.ASCII)
_SPECIAL = re.compile(r"([-+]?)(inf(?:inity)?|nan)", re.IGNORECASE)
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_MICRO = datetime.timedelta(microseconds=1)
_LAST_MICROS = 2**63


def micros_of(value: datetime.datetime) -> int:
    """Microseconds since 1970."""
    return (value - _EPOCH) // _MICRO


def moment_of(micros: int) -> datetime.datetime:
    """The moment that many microseconds after 1970."""
    try:
        return _EPOCH + datetime.timedelta(microseconds=micros)
    except OverflowError:
        raise OverflowError(f"a timestamp lies between the years 1 and 9999, got {micros} microseconds") from None


def cast_value(kind: t.DataType, target: t.DataType) -> Value:
    """What turns a value (never None) of one type into another."""
    if kind == target:
        return lambda value: value
    if target == t.STRING:
        return text_of(kind)
    if isinstance(kind, t.Array) and isinstance(target, t.Array):
        return _array(cast_or_null(kind.item, target.item))
    if isinstance(kind, t.Map) and isinstance(target, t.Map):
        return _map(cast_or_null(kind.key, target.key), cast_or_null(kind.value, target.value))
    if isinstance(kind, t.Struct) and isinstance(target, t.Struct):
        return _struct(kind, target)
    return _simple(kind, target)


def cast_or_null(kind: t.DataType, target: t.DataType) -> Value:
    """The same for a value that may be None."""
    cast = cast_value(kind, target)
    return lambda value: None if value is None else cast(value)


def _array(item: Value) -> Value:
    return lambda value: [item(v) for v in value]


def _map(key: Value, value: Value) -> Value:
    return lambda given: {key(k): value(v) for k, v in given.items()}


def _struct(kind: t.Struct, target: t.Struct) -> Value:
    pairs = zip(kind.fields, target.fields, strict=True)
    casts = [(x.name, y.name, cast_or_null(x.type, y.type)) for x, y in pairs]
    return lambda value: {new: cast(value[old]) for old, new, cast in casts}


def _simple(kind: t.DataType, target: t.DataType) -> Value:
    if kind == t.STRING:
        return _from_text(target)
    if target == t.BOOLEAN:
        return lambda value: value != 0
    if kind == t.BOOLEAN:
        kind, before = t.INT, int
        after = cast_value(kind, target)
        return lambda value: after(before(value))
    if target in (t.TIMESTAMP, t.TIMESTAMP_NTZ, t.DATE):
        return _to_moment(kind, target)
    if kind == t.TIMESTAMP:
        return _from_moment(target)
    return _number(kind, target)


def _from_text(target: t.DataType) -> Value:
    if target in t.INTEGERS:
        return lambda value: _text_to_int(value, target)
    if isinstance(target, t.Decimal):
        return lambda value: _text_to_decimal(value, target)
    return _TEXT_TO[target]


def _malformed(value: str, target: object) -> ValueError:
    return ValueError(
        f"the text {value!r} cannot be cast to {target} because it is malformed; try_cast returns null instead"
    )


def _text_to_int(value: str, target: t.DataType) -> int:
    trimmed = value.strip(_BLANKS)
    if not _WHOLE.fullmatch(trimmed):
        raise _malformed(value, target)
    try:
        return fit_integer(int(trimmed), target)
    except OverflowError:
        raise _malformed(value, target) from None


def _text_to_decimal(value: str, target: t.Decimal) -> decimal.Decimal:
    trimmed = value.strip(_BLANKS)
    if not _EXACT.fullmatch(trimmed):
        raise _malformed(value, target)
    return fit_decimal(decimal.Decimal(trimmed), target)


def _text_to_double(value: str) -> float:
    trimmed = value.strip(_BLANKS)
    found = _REAL.fullmatch(trimmed) or _SPECIAL.fullmatch(trimmed)
    if not found:
        raise _malformed(value, t.DOUBLE)
    return float(found[1]) if found.re is _REAL else float(trimmed)


def _text_to_boolean(value: str) -> bool:
    trimmed = value.strip(_BLANKS).lower()
    if trimmed in _TRUE:
        return True
    if trimmed in _FALSE:
        return False
    raise _malformed(value, t.BOOLEAN)


def _text_to_date(value: str) -> datetime.date:
    try:
        return to_date(value)
    except ExpressionError:
        raise _malformed(value, t.DATE) from None


def _text_to_timestamp(value: str) -> datetime.datetime:
    try:
        return to_timestamp(value)
    except ExpressionError:
        raise _malformed(value, t.TIMESTAMP) from None


_TEXT_TO: dict[t.DataType, Value] = {
    t.BOOLEAN: _text_to_boolean,
    t.DOUBLE: _text_to_double,
    t.FLOAT: lambda value: single(_text_to_double(value)),
    t.BINARY: lambda value: value.encode(),
    t.DATE: _text_to_date,
    t.TIMESTAMP: _text_to_timestamp,
    t.TIMESTAMP_NTZ: lambda value: _text_to_timestamp(value).replace(tzinfo=None),
}


def _to_moment(kind: t.DataType, target: t.DataType) -> Value:
    if target == t.DATE:
        return lambda value: value.date()
    zone = datetime.UTC if target == t.TIMESTAMP else None
    if kind == t.DATE:
        return lambda value: datetime.datetime(value.year, value.month, value.day, tzinfo=zone)
    if kind in (t.TIMESTAMP, t.TIMESTAMP_NTZ):
        return lambda value: value.replace(tzinfo=zone)
    return seconds_to_moment


def seconds_to_moment(value: float | decimal.Decimal) -> datetime.datetime:
    """A number of seconds since 1970 as a moment; less than a microsecond is dropped."""
    if isinstance(value, float):
        if not math.isfinite(value):
            raise OverflowError(f"{value} seconds make no timestamp")
        return moment_of(int(value * 1_000_000))
    return moment_of(int(EXACT.multiply(decimal.Decimal(value), 1_000_000)))


def _from_moment(target: t.DataType) -> Value:
    if target in t.INTEGERS:
        return lambda value: fit_integer(micros_of(value) // 1_000_000, target)
    if isinstance(target, t.Decimal):
        return lambda value: fit_decimal(decimal.Decimal(micros_of(value)).scaleb(-6, EXACT), target)
    after = single if target == t.FLOAT else float
    return lambda value: after(micros_of(value) / 1_000_000)


def _number(kind: t.DataType, target: t.DataType) -> Value:
    if target in t.INTEGERS:
        return _to_integer(kind, target)
    if target == t.DOUBLE:
        return float
    if target == t.FLOAT:
        return lambda value: single(float(value))
    assert isinstance(target, t.Decimal)
    if kind in (t.FLOAT, t.DOUBLE):
        return lambda value: _float_to_decimal(value, target)
    return lambda value: fit_decimal(decimal.Decimal(value), target)


def _to_integer(kind: t.DataType, target: t.DataType) -> Value:
    if kind in t.INTEGERS:
        return lambda value: fit_integer(value, target)
    return lambda value: _real_to_integer(value, target)


def _real_to_integer(value: float | decimal.Decimal, target: t.DataType) -> int:
    if isinstance(value, float) and not math.isfinite(value):
        raise OverflowError(f"{value} does not fit in {target}")
    return fit_integer(int(value), target)


def _float_to_decimal(value: float, target: t.Decimal) -> decimal.Decimal | None:
    return fit_decimal(decimal.Decimal(repr(value)), target) if math.isfinite(value) else None
