"""Arithmetic in Spark's types, and functions of numbers."""

from __future__ import annotations

import calendar
import datetime
import decimal
import math
import operator
from collections.abc import Callable
from typing import Any

from penstock.graph import types as t
from penstock.graph.expr.coerce import TypedExpr
from penstock.graph.expr.model import INTERVAL_MONTH
from penstock.kernels.expr.values import EXACT, RANGES, fit_decimal, fit_integer, single

Binary = Callable[[Any, Any], Any]

_DIVIDE = decimal.Context(prec=60, rounding=decimal.ROUND_DOWN)
_DAY = datetime.timedelta(days=1)


def months_later(moment: Any, months: int) -> Any:
    """A date or a moment some months later; a day that the month does not have is its last."""
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    last = calendar.monthrange(year, month + 1)[1]
    return moment.replace(year=year, month=month + 1, day=min(moment.day, last))


def _by_zero() -> ZeroDivisionError:
    return ZeroDivisionError("division by zero; nullif(divisor, 0) returns null instead")


def _whole_remainder(a: int, b: int) -> int:
    if b == 0:
        raise _by_zero()
    rest = abs(a) % abs(b)
    return -rest if a < 0 else rest


def _real_remainder(a: float, b: float) -> float:
    if b == 0:
        raise _by_zero()
    return math.nan if math.isinf(a) else math.fmod(a, b)


def _exact_remainder(a: decimal.Decimal, b: decimal.Decimal) -> decimal.Decimal:
    if not b:
        raise _by_zero()
    return EXACT.remainder(a, b)


def _positive(remainder: Binary, add: Binary) -> Binary:
    def pmod(a: Any, b: Any) -> Any:
        rest = remainder(a, b)
        return remainder(add(rest, b), b) if rest < 0 else rest

    return pmod


def _real_divide(a: float, b: float) -> float:
    if b == 0:
        raise _by_zero()
    return a / b


def _exact_divide(a: decimal.Decimal, b: decimal.Decimal) -> decimal.Decimal:
    if not b:
        raise _by_zero()
    return _DIVIDE.divide(a, b)


_WHOLE: dict[str, Binary] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "%": _whole_remainder,
    "pmod": _positive(_whole_remainder, operator.add),
}
_REAL: dict[str, Binary] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _real_divide,
    "%": _real_remainder,
    "pmod": _positive(_real_remainder, operator.add),
}
_EXACT: dict[str, Binary] = {
    "+": EXACT.add,
    "-": EXACT.subtract,
    "*": EXACT.multiply,
    "/": _exact_divide,
    "%": _exact_remainder,
    "pmod": _positive(_exact_remainder, EXACT.add),
}


def _arithmetic(name: str) -> Callable[[TypedExpr], Binary]:
    def make(node: TypedExpr) -> Binary:
        kind = node.type
        if kind in (t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ):
            return _shift(name, node)
        if isinstance(kind, t.Decimal):
            return _fitted_decimal(_EXACT[name], kind)
        if kind in RANGES:
            return _fitted(name, _WHOLE[name], kind)
        plain = _REAL[name]
        return plain if kind == t.DOUBLE else lambda a, b: single(plain(a, b))

    return make


def _fitted(name: str, plain: Binary, kind: t.DataType) -> Binary:
    limit = RANGES[kind]  # type: ignore[index]

    def run(a: int, b: int) -> int:
        value: int = plain(a, b)
        if -limit <= value < limit:
            return value
        raise OverflowError(f"{a} {name} {b} does not fit in {kind}; cast to a wider type")

    return run


def _fitted_decimal(plain: Binary, kind: t.Decimal) -> Binary:
    return lambda a, b: fit_decimal(plain(a, b), kind)


def _shift(name: str, node: TypedExpr) -> Binary:
    move = operator.add if name == "+" else operator.sub
    if node.args[1].type == INTERVAL_MONTH:
        sign = 1 if name == "+" else -1
        return lambda moment, months: months_later(moment, sign * months)
    if node.args[1].type in t.INTEGERS:
        return lambda moment, days: move(moment, days * _DAY)
    return move


def _whole_division(node: TypedExpr) -> Binary:
    def div(a: Any, b: Any) -> int:
        if not b:
            raise _by_zero()
        if isinstance(a, int):
            whole = abs(a) // abs(b)
            return fit_integer(-whole if (a < 0) != (b < 0) else whole, t.BIGINT)
        return fit_integer(int(EXACT.divide_int(a, b)), t.BIGINT)

    return div


def _negative(node: TypedExpr) -> Callable[[Any], Any]:
    kind = node.type
    if isinstance(kind, t.Decimal):
        return EXACT.minus
    return (lambda value: fit_integer(-value, kind)) if kind in RANGES else operator.neg


def _abs(node: TypedExpr) -> Callable[[Any], Any]:
    kind = node.type
    if isinstance(kind, t.Decimal):
        return EXACT.abs
    return (lambda value: fit_integer(abs(value), kind)) if kind in RANGES else abs


def _whole(towards: Callable[[Any], int], rounding: str) -> Callable[[TypedExpr], Callable[[Any], Any]]:
    def make(node: TypedExpr) -> Callable[[Any], Any]:
        if isinstance(node.type, t.Decimal):
            return lambda value: EXACT.plus(value.to_integral_value(rounding))
        return lambda value: value if isinstance(value, int) else _bounded(value, towards)

    return make


def _bounded(value: float, towards: Callable[[Any], int]) -> int:
    if value != value:
        return 0
    if math.isinf(value):
        raise OverflowError(f"{value} does not fit in bigint")
    return fit_integer(towards(value), t.BIGINT)


def _round(rounding: str) -> Callable[[TypedExpr], Binary]:
    def make(node: TypedExpr) -> Binary:
        kind = node.type
        if isinstance(kind, t.Decimal):
            return lambda value, digits: fit_decimal(_cut(value, digits, rounding), kind)
        if kind in RANGES:
            return lambda value, digits: (
                value if digits >= 0 else fit_integer(int(_cut(decimal.Decimal(value), digits, rounding)), kind)
            )
        after = single if kind == t.FLOAT else float
        return lambda value, digits: after(_round_real(value, digits, rounding))

    return make


def _cut(value: decimal.Decimal, digits: int, rounding: str) -> decimal.Decimal:
    return value.quantize(decimal.Decimal((0, (1,), -digits)), rounding, EXACT)


def _round_real(value: float, digits: int, rounding: str) -> float:
    if not math.isfinite(value):
        return value
    exact = decimal.Decimal(repr(value))
    rounded = exact if int(exact.as_tuple().exponent) >= -digits else _cut(exact, digits, rounding)
    return float(rounded) + 0.0


def _sqrt(value: float) -> float:
    return math.sqrt(value) if value >= 0 else math.nan


def _pow(base: float, power: float) -> float:
    if power != power:
        return math.nan
    if abs(base) == 1 and math.isinf(power):
        return math.nan
    try:
        return math.pow(base, power)
    except OverflowError:
        return -math.inf if base < 0 and power % 2 == 1 else math.inf
    except ValueError:
        if base == 0:
            return -math.inf if math.copysign(1, base) < 0 and power % 2 == 1 else math.inf
        return math.nan


def _exp(value: float) -> float:
    try:
        return math.exp(value)
    except OverflowError:
        return math.inf


def _log(plain: Callable[[float], float]) -> Callable[[float], float | None]:
    return lambda value: None if value <= 0 else plain(value)


def _sign(value: float) -> float:
    return value if value == 0 or value != value else math.copysign(1.0, value)


def _anywhere(plain: Callable[..., float]) -> Callable[..., float]:
    """A function that is not a number where it is not defined, and infinite where it is too large."""

    def run(*values: float) -> float:
        try:
            return plain(*values)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.copysign(math.inf, values[0]) if plain is math.sinh else math.inf

    return run


def _cot(value: float) -> float:
    slope = math.tan(value)
    return 1.0 / slope if slope else math.copysign(math.inf, slope)


PLAIN: dict[str, Callable[..., Any]] = {
    **{name: _anywhere(getattr(math, name)) for name in ("sin", "cos", "tan", "asin", "acos", "atan", "atan2")},
    **{name: _anywhere(getattr(math, name)) for name in ("sinh", "cosh", "tanh", "degrees", "radians")},
    "cot": _anywhere(_cot),
    "bin": lambda value: f"{value % 2**64:b}",
    "sqrt": _sqrt,
    "pow": _pow,
    "exp": _exp,
    "ln": _log(math.log),
    "log10": _log(math.log10),
    "log2": _log(math.log2),
    "sign": _sign,
}

TYPED: dict[str, Callable[[TypedExpr], Callable[..., Any]]] = {
    **{name: _arithmetic(name) for name in ("+", "-", "*", "/", "%", "pmod")},
    "div": _whole_division,
    "negative": _negative,
    "abs": _abs,
    "ceil": _whole(math.ceil, decimal.ROUND_CEILING),
    "floor": _whole(math.floor, decimal.ROUND_FLOOR),
    "round": _round(decimal.ROUND_HALF_UP),
    "bround": _round(decimal.ROUND_HALF_EVEN),
}
