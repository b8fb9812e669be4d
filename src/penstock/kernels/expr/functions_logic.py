"""Comparison, three-valued logic, and choice between values."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from penstock.graph import types as t
from penstock.graph.expr.coerce import TypedExpr
from penstock.kernels.expr.values import Value, sort_key

Run = Callable[[Any], Any]

_ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def comparison(name: str) -> Callable[[TypedExpr], Callable[..., bool]]:
    """The maker of a comparison, which depends on the type of both sides."""
    compare = _ORDER[name]

    def make(node: TypedExpr) -> Callable[..., bool]:
        key = sort_key(node.args[0].type)
        return compare if key is None else lambda left, right: compare(key(left), key(right))

    return make


def _and(node: TypedExpr, runs: list[Run]) -> Run:
    left, right = runs

    def run(row: Sequence[Any]) -> bool | None:
        first = left(row)
        if first is False:
            return False
        second = right(row)
        return False if second is False else None if first is None or second is None else True

    return run


def _or(node: TypedExpr, runs: list[Run]) -> Run:
    left, right = runs

    def run(row: Sequence[Any]) -> bool | None:
        first = left(row)
        if first is True:
            return True
        second = right(row)
        return True if second is True else None if first is None or second is None else False

    return run


def _not(node: TypedExpr) -> Callable[[Any], bool]:
    return operator.not_


def _null_safe(node: TypedExpr, runs: list[Run]) -> Run:
    left, right = runs
    equal = comparison("=")(node)

    def run(row: Sequence[Any]) -> bool:
        first, second = left(row), right(row)
        return first is second if first is None or second is None else equal(first, second)

    return run


def _in(node: TypedExpr, runs: list[Run]) -> Run:
    key = sort_key(node.args[0].type) or _same
    if all(arg.kind == "literal" for arg in node.args[1:]):
        return _in_set(runs[0], key, [arg.value for arg in node.args[1:]])
    return _in_list(runs[0], key, runs[1:])


def _in_set(subject: Run, key: Value, values: list[Any]) -> Run:
    members = frozenset(key(v) for v in values if v is not None)
    missing = None if None in values else False

    def run(row: Sequence[Any]) -> bool | None:
        value = subject(row)
        return None if value is None else True if key(value) in members else missing

    return run


def _in_list(subject: Run, key: Value, others: list[Run]) -> Run:
    def run(row: Sequence[Any]) -> bool | None:
        value = subject(row)
        if value is None:
            return None
        wanted, missing = key(value), False
        for other in others:
            candidate = other(row)
            if candidate is None:
                missing = True
            elif key(candidate) == wanted:
                return True
        return None if missing else False

    return run


def _same(value: object) -> object:
    return value


def _is_null(node: TypedExpr, runs: list[Run]) -> Run:
    (only,) = runs
    return lambda row: only(row) is None


def _is_not_null(node: TypedExpr, runs: list[Run]) -> Run:
    (only,) = runs
    return lambda row: only(row) is not None


def _is_nan(node: TypedExpr, runs: list[Run]) -> Run:
    (only,) = runs

    def run(row: Sequence[Any]) -> bool:
        value = only(row)
        return value is not None and value != value

    return run


def _coalesce(node: TypedExpr, runs: list[Run]) -> Run:
    def run(row: Sequence[Any]) -> object:
        for part in runs:
            value = part(row)
            if value is not None:
                return value
        return None

    return run


def _if(node: TypedExpr, runs: list[Run]) -> Run:
    given, then, otherwise = runs
    return lambda row: then(row) if given(row) else otherwise(row)


def _nvl2(node: TypedExpr, runs: list[Run]) -> Run:
    given, then, otherwise = runs
    return lambda row: then(row) if given(row) is not None else otherwise(row)


def _nullif(node: TypedExpr, runs: list[Run]) -> Run:
    value, left, right = runs
    equal = comparison("=")(TypedExpr("call", t.BOOLEAN, node.args[1:]))

    def run(row: Sequence[Any]) -> object:
        first, second = left(row), right(row)
        return None if first is not None and second is not None and equal(first, second) else value(row)

    return run


def _extreme(pick: Callable[..., Any]) -> Callable[[TypedExpr, list[Run]], Run]:
    def make(node: TypedExpr, runs: list[Run]) -> Run:
        key = sort_key(node.type)

        def run(row: Sequence[Any]) -> object:
            values = [v for part in runs if (v := part(row)) is not None]
            return pick(values, key=key) if values else None

        return run

    return make


TYPED: dict[str, Callable[[TypedExpr], Callable[..., Any]]] = {
    **{name: comparison(name) for name in _ORDER},
    "not": _not,
}

LAZY: dict[str, Callable[[TypedExpr, list[Run]], Run]] = {
    "<=>": _null_safe,
    "and": _and,
    "or": _or,
    "in": _in,
    "isnull": _is_null,
    "isnotnull": _is_not_null,
    "isnan": _is_nan,
    "coalesce": _coalesce,
    "nvl": _coalesce,
    "nvl2": _nvl2,
    "nullif": _nullif,
    "if": _if,
    "greatest": _extreme(max),
    "least": _extreme(min),
}
