"""The Python functions of a flow, by the names that expression text has for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from penstock.errors import ExpressionError
from penstock.graph.expr.model import Call, Expr
from penstock.graph.expr.python import PythonCall, ScalarFunction
from penstock.graph.expr.python_aggregates import AggregateFunction, AggregateFunctionCall
from penstock.graph.expr.rewrite import rewritten

PythonFunction: TypeAlias = ScalarFunction | AggregateFunction
Registry = Mapping[str, PythonFunction]
"""Functions by the names that expression text has for them."""


def registry_of(functions: Iterable[PythonFunction]) -> Registry:
    """Functions by name.

    Raises:
        ExpressionError: one is no function for expressions, or two have one name.
    """
    made: dict[str, PythonFunction] = {}
    for each in functions:
        if not isinstance(each, ScalarFunction | AggregateFunction):
            raise ExpressionError(
                f"functions of a flow are made with @ps.function or @ps.aggregate_function, got {each!r}"
            )
        if made.setdefault(each.name, each) is not each:
            raise ExpressionError(f"two functions are called {each.name!r}; say name='another name' of one")
    return made


def with_functions(expr: Expr, functions: Registry) -> Expr:
    """An expression in which calls by name are calls of these functions."""

    def swap(node: Expr) -> Expr | None:
        own = functions.get(node.name) if isinstance(node, Call) and not node.star else None
        if not isinstance(node, Call) or own is None or (node.distinct and isinstance(own, ScalarFunction)):
            return None
        args = tuple(rewritten(arg, swap) for arg in node.args)
        if isinstance(own, ScalarFunction):
            return PythonCall(own, args)
        only = None if node.condition is None else rewritten(node.condition, swap)
        return AggregateFunctionCall(own.name, args, node.distinct, condition=only, function=own)

    return rewritten(expr, swap)
