"""Expressions compiled to plain Python functions of a row, with Spark's ANSI meaning.

>>> from penstock.graph.expr import parse
>>> from penstock.graph.schema import schema_of
>>> total = compile_expr(parse("coalesce(price, 0) * n"), schema_of("price int, n int"))
>>> total((3, 4)), total((None, 4))
(12, 0)
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from penstock.errors import NotYet
from penstock.graph import types as t
from penstock.graph.expr import Expr, resolve
from penstock.graph.expr.coerce import TypedExpr
from penstock.graph.schema import Schema
from penstock.kernels.expr.cast import cast_value
from penstock.kernels.expr.checked_calls import checked_call
from penstock.kernels.expr.functions import LAZY, PLAIN, TYPED
from penstock.kernels.expr.values import field_reader, loader

Run = Callable[[Any], Any]


def compile_expr(expr: Expr, schema: Schema) -> Run:
    """A function of a row (values in the schema's order) that returns the expression's value.

    NotYet says which part only Spark can run. Missing values are None, structs come out as dicts. What Spark
    refuses raises here as well: OverflowError, ZeroDivisionError, ValueError or IndexError.
    """
    return _compile(resolve(expr, schema))


def compile_typed(node: TypedExpr) -> Run:
    """The function of an expression that is typed already."""
    return _compile(node)


def _compile(node: TypedExpr) -> Run:
    return _COMPILERS[node.kind](node)


def _column(node: TypedExpr) -> Run:
    read = operator.itemgetter(node.value)
    load = loader(node.type)
    return read if load is None else lambda row: load(read(row))


def _literal(node: TypedExpr) -> Run:
    value = node.value
    return lambda row: value


def _raw(node: TypedExpr) -> Run:
    raise NotYet(f"the expression {node.value!r} is Spark SQL; it runs on Spark only, not in the local runtime")


def _python(node: TypedExpr) -> Run:
    """A Python function, called for each row. The compiler takes such calls out of most steps and computes them by columns."""
    runs, call = [_compile(arg) for arg in node.args], checked_call(node.value)
    return lambda row: call(*(run(row) for run in runs))


def _cast(node: TypedExpr) -> Run:
    (inner,) = node.args
    if inner.type == t.NULL:
        return lambda row: None
    cast = cast_value(inner.type, node.type)
    return _folded(node, strict(_tolerant(cast) if node.value else cast, [_compile(inner)]))


def _tolerant(cast: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def attempt(value: object) -> object:
        try:
            return cast(value)
        except (ValueError, ArithmeticError):
            return None

    return attempt


def _call(node: TypedExpr) -> Run:
    name = node.value
    runs = [_compile(arg) for arg in node.args]
    if name in LAZY:
        return _folded(node, LAZY[name](node, runs))
    if name in TYPED:
        return _folded(node, strict(TYPED[name](node), runs))
    if name in PLAIN:
        return _folded(node, strict(PLAIN[name], runs))
    raise NotYet(f"the function {name!r} runs on Spark only, not in the local runtime")


def _folded(node: TypedExpr, run: Run) -> Run:
    """A constant when everything inside is one; what fails is left to fail on a row."""
    if any(arg.kind != "literal" for arg in node.args) or isinstance(node.type, t.Array | t.Map | t.Struct):
        return run
    try:
        value = run(())
    except Exception:
        return run
    return lambda row: value


def strict(function: Callable[..., Any], runs: list[Run]) -> Run:
    """A call that is null as soon as an argument is."""
    if len(runs) == 1:
        return _strict_one(function, runs[0])
    return _strict_two(function, *runs) if len(runs) == 2 else _strict_many(function, runs)


def _strict_one(function: Callable[..., Any], only: Run) -> Run:
    def run(row: Sequence[Any]) -> object:
        value = only(row)
        return None if value is None else function(value)

    return run


def _strict_two(function: Callable[..., Any], first: Run, second: Run) -> Run:
    def run(row: Sequence[Any]) -> object:
        left = first(row)
        if left is None:
            return None
        right = second(row)
        return None if right is None else function(left, right)

    return run


def _strict_many(function: Callable[..., Any], runs: list[Run]) -> Run:
    def run(row: Sequence[Any]) -> object:
        values = []
        for part in runs:
            value = part(row)
            if value is None:
                return None
            values.append(value)
        return function(*values)

    return run


def _case(node: TypedExpr) -> Run:
    runs = [_compile(arg) for arg in node.args]
    whens, otherwise = list(zip(runs[:-1:2], runs[1:-1:2], strict=True)), runs[-1]

    def run(row: Sequence[Any]) -> object:
        for given, then in whens:
            if given(row):
                return then(row)
        return otherwise(row)

    return run


def _field(node: TypedExpr) -> Run:
    (inner,) = node.args
    assert isinstance(inner.type, t.Struct)
    read = field_reader(inner.type, node.value)
    whole = operator.itemgetter(inner.value) if inner.kind == "column" else _compile(inner)
    return _strict_one(read, whole)


def _item(node: TypedExpr) -> Run:
    inner, key = node.args
    pick = _from_map if isinstance(inner.type, t.Map) else _from_array
    return _strict_two(pick, _compile(inner), _compile(key))


def _from_map(value: dict[Any, Any], key: object) -> object:
    return value.get(key)


def _from_array(value: list[Any], index: int) -> object:
    if 0 <= index < len(value):
        return value[index]
    raise IndexError(f"the index {index} is out of bounds; the array has {len(value)} elements, counted from 0")


_COMPILERS: dict[str, Callable[[TypedExpr], Run]] = {
    "column": _column,
    "literal": _literal,
    "call": _call,
    "cast": _cast,
    "case": _case,
    "field": _field,
    "item": _item,
    "raw": _raw,
    "python": _python,
}
