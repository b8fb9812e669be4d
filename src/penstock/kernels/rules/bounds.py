"""What an index can use of a condition: bounds of single fields. The rest is a residual, which is computed.

>>> from penstock.graph.expr import parse
>>> from penstock.graph.schema import schema_of
>>> found = bounds_of(parse("kind = 'call' and n > 3 and n <= 9 and n % 2 = 0"), schema_of("kind string, n bigint"))
>>> [(b.column, b.op, b.value) for b in found.bounds], len(found.residual)
([(0, '=', ('call',)), (1, '>', (3,)), (1, '<=', (9,))], 1)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import pyarrow as pa

from penstock.graph import types as t
from penstock.graph.expr import Call, Expr, resolve
from penstock.graph.expr.coerce import TypedExpr
from penstock.graph.schema import Schema
from penstock.kernels.expr.evaluate import compile_typed
from penstock.kernels.records.arrow import arrow_type

Constant: TypeAlias = int | float | str
WHOLE, REAL, TEXT, ANY = "whole", "real", "text", "any"
"""How the values of a field are compared; of ANY it counts only whether there is one."""
NULL = "null"
"""The comparison of a field that is to have no value."""
MOST_CHOICES = 256
"""A condition stands in the index once for each combination of its choices; lists that would make more than these are residuals."""

_ARITHMETIC = ("+", "-", "*", "negative")
_PREFIXES = ("like", "startswith")
_FLIPPED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_WHOLE = frozenset((*t.INTEGERS, t.DATE, t.TIMESTAMP, t.TIMESTAMP_NTZ, t.BOOLEAN))
_REAL = frozenset((t.FLOAT, t.DOUBLE))


@dataclass(frozen=True)
class Bound:
    """A field against constants: `=` with one of them, an order with the only one, or NULL, with none."""

    column: int
    kind: str
    op: str
    value: tuple[Constant, ...]


@dataclass(frozen=True)
class Bounds:
    """A condition in two halves; both must hold. `is_never` says that it cannot."""

    bounds: tuple[Bound, ...]
    residual: tuple[Expr, ...]
    is_never: bool = False


def bounds_of(condition: Expr | None, schema: Schema) -> Bounds:
    """The bounds of a condition, and what is left of it."""
    bounds: list[Bound] = []
    residual: list[Expr] = []
    many = 1
    for part in () if condition is None else _parts(condition, "and"):
        found = _bounds(part, schema)
        choices = max((len(each.value) for each in found), default=0)
        if not found or many * choices > MOST_CHOICES:
            residual.append(part)
        else:
            many *= max(choices, 1)
            bounds += found
    return Bounds(tuple(bounds), tuple(residual), any(not b.value for b in bounds))


def alternatives_of(condition: Expr | None, schema: Schema) -> list[Bounds]:
    """A condition as alternatives that have bounds each, where it has none of its own; else as one.

    >>> from penstock.graph.expr import parse
    >>> from penstock.graph.schema import schema_of
    >>> [len(each.bounds) for each in alternatives_of(parse("kind = 'a' or n > 3"), schema_of("kind string, n int"))]
    [1, 1]
    """
    whole = bounds_of(condition, schema)
    if condition is None or whole.bounds:
        return [whole]
    for part in whole.residual:
        rest = tuple(each for each in whole.residual if each is not part)
        made = [bounds_of(conjunction((each, *rest)), schema) for each in _parts(part, "or")]
        if len(made) <= MOST_CHOICES and all(each.bounds for each in made):
            return made
    return [whole]


def conjunction(parts: tuple[Expr, ...]) -> Expr:
    """One condition of several."""
    made = parts[0]
    for part in parts[1:]:
        made = Call("and", (made, part))
    return made


def _parts(condition: Expr, operator: str) -> Iterator[Expr]:
    """What stands between `and`, or between `or`; a stack, since a condition may be nested deeply."""
    waiting = [condition]
    while waiting:
        plain = waiting.pop().plain()
        if isinstance(plain, Call) and plain.name == operator:
            waiting += reversed(plain.args)
        else:
            yield plain


def _bounds(part: Expr, schema: Schema) -> tuple[Bound, ...]:
    """What a part says of one field; nothing where it says something else."""
    if not isinstance(part, Call):
        return ()
    if part.name == "or":
        found = _choice([_compared(each, schema) for each in _parts(part, "or")])
    elif part.name in _PREFIXES:
        return _prefixed(part, schema)
    else:
        found = _missing(part, schema) if part.name == "isnull" else _compared(part, schema)
    return () if found is None else (found,)


def _missing(part: Call, schema: Schema) -> Bound | None:
    column = _column(resolve(part.args[0], schema))
    return None if column is None else Bound(column, ANY, NULL, (0,))


def _prefixed(part: Call, schema: Schema) -> tuple[Bound, ...]:
    """A text that begins with a constant lies between it and the first text after all that begin with it."""
    typed = resolve(part, schema)
    column = _column(typed.args[0]) if typed.kind == "call" else None
    prefix = typed.args[1].value if typed.kind == "call" and typed.args[1].kind == "literal" else None
    if column is None or typed.args[0].type != t.STRING or not isinstance(prefix, str):
        return ()
    if part.name == "like":
        if not prefix.endswith("%") or any(each in prefix[:-1] for each in "%_\\"):
            return ()
        prefix = prefix[:-1]
    end = after_prefix(prefix)
    upper = () if end is None else (Bound(column, TEXT, "<", (end,)),)
    return (Bound(column, TEXT, ">=", (prefix,)), *upper) if prefix else ()


def after_prefix(prefix: str) -> str | None:
    """The first text after all that begin with a prefix; None where there is none.

    >>> after_prefix("ab"), after_prefix("a" + chr(0x10FFFF)), after_prefix(chr(0x10FFFF))
    ('ac', 'b', None)
    """
    kept = prefix.rstrip(chr(0x10FFFF))
    if not kept:
        return None
    following = ord(kept[-1]) + 1
    return kept[:-1] + chr(0xE000 if 0xD800 <= following < 0xE000 else following)


def _choice(found: list[Bound | None]) -> Bound | None:
    """Equality of one field with one constant or another; None where the parts say something else."""
    equal = [each for each in found if each is not None and each.op == "="]
    if len(equal) < len(found) or len({(each.column, each.kind) for each in equal}) != 1:
        return None
    return replace(equal[0], value=tuple(dict.fromkeys(value for each in equal for value in each.value)))


def _compared(part: Expr, schema: Schema) -> Bound | None:
    if not isinstance(part, Call) or part.name not in (*_FLIPPED, "in"):
        return None
    typed = resolve(part, schema)
    if typed.kind != "call" or typed.value not in (*_FLIPPED, "in"):
        return None
    left, *right = typed.args
    op = str(typed.value)
    if op != "in" and _column(left) is None:
        left, right, op = right[0], [left], _FLIPPED[op]
    column, kind = _column(left), _kind(left.type)
    if column is None or kind is None:
        return None
    values = [_constant(each, kind) for each in right]
    if any(value is _UNKNOWN for value in values):
        return None
    known = tuple(dict.fromkeys(v for v in values if v is not None))
    return Bound(column, kind, "=" if op == "in" else op, known)  # type: ignore[arg-type]  # what is unknown is out


def _column(node: TypedExpr) -> int | None:
    """The field that a value is, be it under a cast that keeps the order and every value."""
    while node.kind == "cast" and not node.value and _keeps(node.args[0].type, node.type):
        node = node.args[0]
    return int(node.value) if node.kind == "column" else None


def _keeps(kind: t.DataType, wider: t.DataType) -> bool:
    if kind in t.INTEGERS:
        return wider in t.INTEGERS and t.INTEGERS.index(kind) <= t.INTEGERS.index(wider)
    return kind == t.FLOAT and wider == t.DOUBLE


def _kind(kind: t.DataType) -> str | None:
    if kind in _WHOLE:
        return WHOLE
    return REAL if kind in _REAL else TEXT if kind == t.STRING else None


class _Unknown:
    """What is no constant."""


_UNKNOWN = _Unknown()


def _constant(node: TypedExpr, kind: str) -> Constant | _Unknown | None:
    """The value of a constant as the index compares it; None for null, with which nothing compares."""
    if node.kind != "literal" and _is_constant(node):
        node = _folded(node)
    if node.kind != "literal":
        return _UNKNOWN
    if node.value is None:
        return None
    if kind == TEXT:
        return str(node.value)
    if kind == REAL:
        return _UNKNOWN if math.isnan(node.value) else float(node.value)
    if isinstance(node.value, int):
        return int(node.value)
    return int(as_whole(pa.array([node.value], arrow_type(node.type)))[0].as_py())


def _is_constant(node: TypedExpr) -> bool:
    """Whether a value is made of constants alone, by casts and plain arithmetic."""
    is_made = node.kind == "cast" or (node.kind == "call" and node.value in _ARITHMETIC)
    return node.kind == "literal" or (is_made and all(map(_is_constant, node.args)))


def _folded(node: TypedExpr) -> TypedExpr:
    try:
        return TypedExpr("literal", node.type, (), compile_typed(node)(()))
    except Exception:  # a constant that does not fit fails on the record, as without an index
        return node


def as_whole(column: pa.Array) -> pa.Array:
    """Whole numbers, dates, times and booleans as numbers of 64 bits."""
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    return column.cast(pa.int64())
