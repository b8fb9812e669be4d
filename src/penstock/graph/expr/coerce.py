"""How types meet: Spark's ANSI rules for common types, implicit casts and decimals.

>>> str(common_type(t.INT, t.Decimal(4, 2)))
'decimal(12,2)'
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.graph import types as t

_NUMBERS = (*t.INTEGERS, t.FLOAT, t.DOUBLE)
_MOMENTS = (t.DATE, t.TIMESTAMP_NTZ, t.TIMESTAMP)
_DIGITS = {t.TINYINT: 3, t.SMALLINT: 5, t.INT: 10, t.BIGINT: 20}
_LARGEST = 38
_KEPT_SCALE = 6


@dataclass(frozen=True)
class TypedExpr:
    """An expression with its type, after every implicit cast has been written out.

    `kind` is column, literal, call, cast, case, field, item or raw; `value` is what that kind needs: the
    position of a column, a constant, the name of a function or a field.
    """

    kind: str
    type: t.DataType
    args: tuple[TypedExpr, ...] = ()
    value: Any = None


def cast_to(arg: TypedExpr, kind: t.DataType) -> TypedExpr:
    """The value as another type; a value that has it already stays as it is."""
    return arg if arg.type == kind else TypedExpr("cast", kind, (arg,), False)


def is_integer(kind: t.DataType) -> bool:
    """Whether it is a whole number of fixed size."""
    return kind in t.INTEGERS


def is_simple(kind: t.DataType) -> bool:
    """Whether it has no parts (a decimal counts as simple)."""
    return isinstance(kind, t.Decimal) or (isinstance(kind, t.Simple) and not str(kind).startswith("interval"))


def decimal_for(kind: t.DataType) -> t.Decimal | None:
    """The decimal that holds every value of a whole-number type."""
    return t.Decimal(_DIGITS[kind], 0) if kind in _DIGITS else kind if isinstance(kind, t.Decimal) else None


def bounded(precision: int, scale: int) -> t.Decimal:
    """A decimal cut to what fits, from both ends."""
    return t.Decimal(min(precision, _LARGEST), min(scale, _LARGEST))


def adjusted(precision: int, scale: int) -> t.Decimal:
    """A decimal cut to 38 digits; digits after the point go first, but six are kept."""
    if precision <= _LARGEST:
        return t.Decimal(precision, scale)
    whole = precision - scale
    return t.Decimal(_LARGEST, max(_LARGEST - whole, min(scale, _KEPT_SCALE)))


def decimal_result(name: str, a: t.Decimal, b: t.Decimal) -> t.Decimal:
    """The decimal that an operator makes of two."""
    if name in ("+", "-"):
        scale = max(a.scale, b.scale)
        return adjusted(max(a.precision - a.scale, b.precision - b.scale) + scale + 1, scale)
    if name == "*":
        return adjusted(a.precision + b.precision + 1, a.scale + b.scale)
    if name == "/":
        scale = max(_KEPT_SCALE, a.scale + b.precision + 1)
        return adjusted(a.precision - a.scale + b.scale + scale, scale)
    scale = max(a.scale, b.scale)
    return adjusted(min(a.precision - a.scale, b.precision - b.scale) + scale, scale)


def wider_decimal(a: t.Decimal, b: t.Decimal) -> t.Decimal:
    """The decimal that holds every value of both."""
    scale = max(a.scale, b.scale)
    whole = max(a.precision - a.scale, b.precision - b.scale)
    return bounded(whole + scale, scale)


def common_type(a: t.DataType, b: t.DataType) -> t.DataType | None:
    """The type both can take without a cast being asked for, or None; texts become what they meet."""
    return tight_type(a, b) or _with_text(a, b) or _with_text(b, a) or _inside(a, b, common_type)


def tight_type(a: t.DataType, b: t.DataType) -> t.DataType | None:
    """The type both can take, or None; texts stay texts."""
    if b in (a, t.NULL):
        return a
    if a == t.NULL:
        return b
    if t.is_numeric(a) and t.is_numeric(b):
        return _number(a, b)
    if a in _MOMENTS and b in _MOMENTS:
        return max(a, b, key=_MOMENTS.index)
    return _inside(a, b, tight_type)


def _number(a: t.DataType, b: t.DataType) -> t.DataType:
    x, y = decimal_for(a), decimal_for(b)
    if isinstance(a, t.Decimal) or isinstance(b, t.Decimal):
        return wider_decimal(x, y) if x and y else t.DOUBLE
    wider = max(a, b, key=_NUMBERS.index)
    return t.DOUBLE if wider == t.FLOAT else wider


def _with_text(text: t.DataType, other: t.DataType) -> t.DataType | None:
    if text != t.STRING or not is_simple(other):
        return None
    if is_integer(other):
        return t.BIGINT
    return t.DOUBLE if t.is_numeric(other) else other


Meet = Callable[[t.DataType, t.DataType], "t.DataType | None"]


def _inside(a: t.DataType, b: t.DataType, meet: Meet) -> t.DataType | None:
    if isinstance(a, t.Array) and isinstance(b, t.Array):
        item = meet(a.item, b.item)
        return t.Array(item) if item else None
    if isinstance(a, t.Map) and isinstance(b, t.Map):
        key, value = meet(a.key, b.key), meet(a.value, b.value)
        return t.Map(key, value) if key and value else None
    return _structs(a, b, meet) if isinstance(a, t.Struct) and isinstance(b, t.Struct) else None


def _structs(a: t.Struct, b: t.Struct, meet: Meet) -> t.DataType | None:
    if [f.name for f in a.fields] != [f.name for f in b.fields]:
        return None
    kinds = [meet(x.type, y.type) for x, y in zip(a.fields, b.fields, strict=True)]
    if any(k is None for k in kinds):
        return None
    return t.Struct(tuple(t.Field(f.name, k) for f, k in zip(a.fields, kinds, strict=True) if k))


def common_of(kinds: Iterable[t.DataType], meet: Meet = common_type) -> t.DataType | None:
    """The type all of them can take, found from left to right as Spark does."""
    found: t.DataType | None = t.NULL
    for kind in kinds:
        found = meet(found, kind) if found else None
    return found


def implicit(arg: TypedExpr, target: t.DataType) -> TypedExpr | None:
    """The argument as the type a function takes, when Spark would cast it unasked; else None."""
    kind = arg.type
    if kind == target:
        return arg
    allowed = kind == t.NULL or (is_simple(kind) and is_simple(target) and _implicit(kind, target))
    return cast_to(arg, target) if allowed else None


def _implicit(kind: t.DataType, target: t.DataType) -> bool:
    if t.STRING in (kind, target):
        return True
    if t.is_numeric(kind) and t.is_numeric(target):
        return True
    return kind in _MOMENTS and target in _MOMENTS


def can_cast(kind: t.DataType, target: t.DataType) -> bool:
    """Whether CAST is allowed between the two at all."""
    if kind in (target, t.NULL):
        return True
    if isinstance(kind, t.Array) and isinstance(target, t.Array):
        return can_cast(kind.item, target.item)
    if isinstance(kind, t.Map) and isinstance(target, t.Map):
        return can_cast(kind.key, target.key) and can_cast(kind.value, target.value)
    if isinstance(kind, t.Struct) and isinstance(target, t.Struct):
        pairs = zip(kind.fields, target.fields, strict=False)
        return len(kind.fields) == len(target.fields) and all(can_cast(x.type, y.type) for x, y in pairs)
    if target == t.STRING:
        return not str(kind).startswith("interval")
    return is_simple(kind) and is_simple(target) and _can_cast(kind, target)


def _can_cast(kind: t.DataType, target: t.DataType) -> bool:
    if kind == t.STRING:
        return True
    if t.is_numeric(kind):
        return t.is_numeric(target) or target in (t.BOOLEAN, t.TIMESTAMP)
    if kind in (t.BOOLEAN, t.TIMESTAMP):
        return t.is_numeric(target) or (kind == t.TIMESTAMP and target in _MOMENTS)
    return kind in _MOMENTS and target in _MOMENTS
