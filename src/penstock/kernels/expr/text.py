"""Values as the texts Spark makes of them.

>>> text_of(t.DOUBLE)(1e7), text_of(t.Array(t.INT))([1, None])
('1.0E7', '[1, null]')
"""

from __future__ import annotations

import datetime
import math

from penstock.graph import types as t
from penstock.kernels.expr.values import Value, single


def text_of(kind: t.DataType) -> Value:
    """What turns a value (never None) of the type into text."""
    if isinstance(kind, t.Decimal):
        return lambda value: f"{value:f}"
    if isinstance(kind, t.Array):
        return _array_text(_part(kind.item))
    if isinstance(kind, t.Map):
        return _map_text(_part(kind.key), _part(kind.value))
    if isinstance(kind, t.Struct):
        return _struct_text([(f.name, _part(f.type)) for f in kind.fields])
    return _SIMPLE[kind]


def double_text(value: float) -> str:
    """A double as Java prints it."""
    return _java(value, repr(value))


def float_text(value: float) -> str:
    """A float of four bytes as Java prints it."""
    if not math.isfinite(value):
        return _java(value, repr(value))
    shortest = next(text for digits in range(1, 10) if single(float(text := f"{value:.{digits}g}")) == value)
    return _java(value, repr(float(shortest)))


def _java(value: float, text: str) -> str:
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return text if "e" not in text else f"{value:f}"
    digits, exponent = _scientific(text)
    if digits.endswith(".0"):  # Java has two digits at least, and those next to the value: 4.9E-324
        digits, exponent = _scientific(f"{value:.1e}")
    return f"{digits}E{exponent}"


def _scientific(text: str) -> tuple[str, int]:
    sign = "-" if text.startswith("-") else ""
    mantissa, _, power = text.lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    fraction = "" if fraction == "0" else fraction
    digits = (whole + fraction).lstrip("0")
    exponent = int(power or 0) + len(whole) - 1 - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0") or "0"
    return f"{sign}{digits[0]}.{digits[1:] or '0'}", exponent


def timestamp_text(value: datetime.datetime) -> str:
    """A timestamp without its zone and without zeros at the end of the fraction."""
    text = value.replace(tzinfo=None).isoformat(" ")
    return text.rstrip("0") if value.microsecond else text


def _part(kind: t.DataType) -> Value:
    text = text_of(kind)
    return lambda value: "null" if value is None else text(value)


def _array_text(item: Value) -> Value:
    return lambda value: f"[{', '.join(item(v) for v in value)}]"


def _map_text(key: Value, value: Value) -> Value:
    return lambda given: f"{{{', '.join(f'{key(k)} -> {value(v)}' for k, v in given.items())}}}"


def _struct_text(fields: list[tuple[str, Value]]) -> Value:
    return lambda value: f"{{{', '.join(text(value[name]) for name, text in fields)}}}"


def _bytes_text(value: bytes) -> str:
    return bytes(value).decode("utf-8", "replace")


_SIMPLE: dict[t.DataType, Value] = {
    t.BOOLEAN: lambda value: "true" if value else "false",
    t.TINYINT: str,
    t.SMALLINT: str,
    t.INT: str,
    t.BIGINT: str,
    t.FLOAT: float_text,
    t.DOUBLE: double_text,
    t.STRING: lambda value: value,
    t.BINARY: _bytes_text,
    t.DATE: lambda value: value.isoformat(),
    t.TIMESTAMP: timestamp_text,
    t.TIMESTAMP_NTZ: timestamp_text,
    t.NULL: lambda value: "null",
}
