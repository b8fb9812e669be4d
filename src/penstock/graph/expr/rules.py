"""What functions and operators take and give: rules from the types of arguments to casts and a result type."""

from __future__ import annotations

import decimal
from collections.abc import Callable

from penstock.graph import types as t
from penstock.graph.expr.coerce import (
    Meet,
    TypedExpr,
    bounded,
    cast_to,
    common_of,
    common_type,
    decimal_for,
    decimal_result,
    implicit,
    is_integer,
    tight_type,
)
from penstock.graph.expr.model import INTERVAL, INTERVAL_DAY, INTERVAL_MONTH, decimal_type

Args = tuple[TypedExpr, ...]
Rule = Callable[[Args], tuple[Args, t.DataType]]


class Misfit(Exception):
    """An argument that does not fit; the message says which and why."""


def fit(args: Args, index: int, kind: t.DataType) -> TypedExpr:
    """The argument at an index (from 0) as the type the function takes there."""
    fitting = implicit(args[index], kind)
    if fitting is None:
        raise Misfit(f"argument {index + 1} must be {kind}, got {args[index].type}; cast it")
    return fitting


def takes(*kinds: t.DataType, returns: t.DataType) -> Rule:
    """A function of these types; the last stands for all further arguments."""

    def rule(args: Args) -> tuple[Args, t.DataType]:
        return tuple(fit(args, i, kinds[min(i, len(kinds) - 1)]) for i in range(len(args))), returns

    return rule


def meet_all(args: Args, meet: Meet = common_type) -> tuple[Args, t.DataType]:
    """The arguments as the one type they share."""
    kind = common_of((a.type for a in args), meet)
    if kind is None:
        raise Misfit(f"all arguments must share a type, got {', '.join(str(a.type) for a in args)}; cast them")
    return tuple(cast_to(a, kind) for a in args), kind


def alike(args: Args) -> tuple[Args, t.DataType]:
    """All arguments share a type, which is the result's."""
    return meet_all(args)


def extreme(args: Args) -> tuple[Args, t.DataType]:
    """For greatest and least: as `alike`, but a text meets only texts."""
    args, kind = meet_all(args, tight_type)
    return args, ordered(kind)


def ordered(kind: t.DataType) -> t.DataType:
    """The type, if its values have an order."""
    if isinstance(kind, t.Map):
        raise Misfit("maps cannot be compared")
    return kind


def compared(args: Args) -> tuple[Args, t.DataType]:
    """The arguments share a type; the result is a truth value."""
    args, kind = meet_all(_literal_decimals(args))
    ordered(kind)
    return args, t.BOOLEAN


def logical(args: Args) -> tuple[Args, t.DataType]:
    """Truth values."""
    for index, arg in enumerate(args, 1):
        if arg.type not in (t.BOOLEAN, t.NULL):
            raise Misfit(
                f"side {index} must be boolean, got {arg.type}" if len(args) > 1 else f"{arg.type} is no boolean"
            )
    return tuple(cast_to(a, t.BOOLEAN) for a in args), t.BOOLEAN


def _literal_decimals(args: Args) -> Args:
    """Whole-number constants beside a decimal take as few digits as they need (but not a tinyint)."""
    if not any(isinstance(a.type, t.Decimal) for a in args) or len(args) != 2:
        return args
    return tuple(_slim(a) for a in args)


def _slim(arg: TypedExpr) -> TypedExpr:
    if arg.kind != "literal" or arg.type not in (t.SMALLINT, t.INT, t.BIGINT):
        return arg
    value = decimal.Decimal(arg.value)
    return TypedExpr("literal", decimal_type(value), (), value)


def arithmetic(name: str) -> Rule:
    """+ - * / % and pmod: numbers, and for + and - also dates, timestamps and intervals."""

    def rule(args: Args) -> tuple[Args, t.DataType]:
        if name in ("+", "-") and any(a.type in _TIMES for a in args):
            return _shift(name, args)
        return _numbers(name, args)

    return rule


_TIMES = (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ, INTERVAL, INTERVAL_DAY, INTERVAL_MONTH)


def _numbers(name: str, args: Args) -> tuple[Args, t.DataType]:
    for index, arg in enumerate(args, 1):
        if not (t.is_numeric(arg.type) or arg.type in (t.STRING, t.NULL)):
            raise Misfit(f"side {index} must be a number, got {arg.type}")
    if all(a.type in (t.STRING, t.NULL) for a in args):
        raise Misfit("one side must be a number, not both texts; cast them")
    args = _literal_decimals(args)
    x, y = (decimal_for(a.type) for a in args)
    if x and y and any(isinstance(a.type, t.Decimal) for a in args):
        return (cast_to(args[0], x), cast_to(args[1], y)), decimal_result(name, x, y)
    with_null = any(a.type == t.NULL for a in args)
    args, kind = meet_all(args)
    if isinstance(kind, t.Decimal) and not (with_null and name == "/"):
        return args, decimal_result(name, kind, kind)
    if name == "/":
        return tuple(cast_to(a, t.DOUBLE) for a in args), t.DOUBLE
    return args, kind


def _shift(name: str, args: Args) -> tuple[Args, t.DataType]:
    left, right = args
    if name == "+" and right.type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
        left, right = right, left
    if left.type in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ) and right.type == INTERVAL_MONTH:
        return (left, right), left.type
    if left.type == t.DATE and right.type in (t.TINYINT, t.SMALLINT, t.INT, INTERVAL_DAY):
        return (left, right), t.DATE
    if left.type == t.DATE and right.type == INTERVAL:
        return (cast_to(left, t.TIMESTAMP), right), t.TIMESTAMP
    if left.type in (t.TIMESTAMP, t.TIMESTAMP_NTZ) and right.type in (INTERVAL, INTERVAL_DAY):
        return (left, right), left.type
    hint = (
        "; for the days between dates use datediff, for seconds subtract unix_timestamp values" if name == "-" else ""
    )
    raise Misfit(f"{args[0].type} {name} {args[1].type} makes no value a stream can hold{hint}")


def whole_division(args: Args) -> tuple[Args, t.DataType]:
    """div: whole numbers or decimals to bigint."""
    args, kind = meet_all(_literal_decimals(args))
    if is_integer(kind):
        return tuple(cast_to(a, t.BIGINT) for a in args), t.BIGINT
    if not isinstance(kind, t.Decimal):
        raise Misfit(f"div needs whole numbers or decimals, got {args[0].type}")
    return args, t.BIGINT


def number(args: Args) -> tuple[Args, t.DataType]:
    """One number, whose type the result has; a text counts as double."""
    arg = fit(args, 0, t.DOUBLE) if args[0].type in (t.STRING, t.NULL) else args[0]
    if not t.is_numeric(arg.type):
        raise Misfit(f"a number must come, got {arg.type}")
    return (arg,), arg.type


def whole(args: Args) -> tuple[Args, t.DataType]:
    """For ceil and floor: bigint, or a decimal without a scale."""
    (arg,), kind = number(args)
    if isinstance(kind, t.Decimal):
        return (arg,), bounded(kind.precision - kind.scale + 1, 0) if kind.scale else kind
    if kind == t.FLOAT:
        return (cast_to(arg, t.DOUBLE),), t.BIGINT
    return (cast_to(arg, t.BIGINT) if is_integer(kind) else arg,), t.BIGINT


def rounded(args: Args) -> tuple[Args, t.DataType]:
    """For round and bround: the number's own type; a decimal loses digits after the point."""
    (arg,), kind = number(args[:1])
    scale = TypedExpr("literal", t.INT, (), 0) if len(args) == 1 else args[1]
    if scale.kind != "literal" or not isinstance(scale.value, int):
        raise Misfit("the number of digits must be a constant whole number")
    if isinstance(kind, t.Decimal):
        kind = _rounded_decimal(kind, scale.value)
    return (arg, scale), kind


def _rounded_decimal(kind: t.Decimal, scale: int) -> t.Decimal:
    digits = kind.precision - kind.scale + 1
    if scale < 0:
        return bounded(max(digits, -scale + 1), 0)
    return bounded(digits + min(kind.scale, scale), min(kind.scale, scale))


def first(args: Args) -> tuple[Args, t.DataType]:
    """nullif: compares both, returns the first."""
    (left, right), _ = compared(args)
    return (args[0], left, right), args[0].type


def chosen(args: Args) -> tuple[Args, t.DataType]:
    """if: a condition and two values of one type."""
    (condition,), _ = logical(args[:1])
    values, kind = meet_all(args[1:])
    return (condition, *values), kind


def picked(args: Args) -> tuple[Args, t.DataType]:
    """nvl2: any value, then two values of one type."""
    values, kind = meet_all(args[1:])
    return (args[0], *values), kind


def anything(returns: t.DataType) -> Rule:
    """Arguments of any type."""
    return lambda args: (args, returns)


def joined(args: Args) -> tuple[Args, t.DataType]:
    """concat: texts, bytes or arrays."""
    if any(isinstance(a.type, t.Array) for a in args):
        args, kind = meet_all(args)
        return args, kind
    kind = t.BINARY if all(a.type == t.BINARY for a in args) else t.STRING
    return tuple(fit(args, i, kind) for i in range(len(args))), kind


def joined_with(args: Args) -> tuple[Args, t.DataType]:
    """concat_ws: a separator, then texts and arrays of texts."""
    texts = t.Array(t.STRING)
    rest = tuple(a if a.type == texts else fit(args, i, t.STRING) for i, a in enumerate(args[1:], 1))
    return (fit(args, 0, t.STRING), *rest), t.STRING


def text_or_bytes(returns: t.DataType | None = None) -> Rule:
    """A text or bytes first; the result has the same type unless another is given."""

    def rule(args: Args) -> tuple[Args, t.DataType]:
        arg = args[0] if args[0].type == t.BINARY else fit(args, 0, t.STRING)
        return (arg, *(fit(args, i, t.INT) for i in range(1, len(args)))), returns or arg.type

    return rule


def digest(returns: t.DataType) -> Rule:
    """Bytes, or a text as its UTF-8 bytes; perhaps a whole number after it."""

    def rule(args: Args) -> tuple[Args, t.DataType]:
        if args[0].type not in (t.BINARY, t.STRING, t.NULL):
            raise Misfit(f"argument 1 must be string or binary, got {args[0].type}; cast it")
        return (cast_to(args[0], t.BINARY), *(fit(args, i, t.INT) for i in range(1, len(args)))), returns

    return rule


def hexed(args: Args) -> tuple[Args, t.DataType]:
    """hex: a whole number, a text or bytes."""
    kind = args[0].type
    return (args[0] if kind in (t.BINARY, t.STRING) else fit(args, 0, t.BIGINT),), t.STRING


def turned(args: Args) -> tuple[Args, t.DataType]:
    """reverse: a text, bytes or an array."""
    kept = isinstance(args[0].type, t.Array) or args[0].type == t.BINARY
    arg = args[0] if kept else fit(args, 0, t.STRING)
    return (arg,), arg.type
