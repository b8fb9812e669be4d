"""The expressions in the settings of a step, whatever the step is."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import TypeVar

from penstock.graph.aggregates.aggregate import FilteredAggregator
from penstock.graph.aggregates.calls import AggregateCall
from penstock.graph.expr import Call, Expr, PythonCall, Raw, to_text
from penstock.graph.expr.rewrite import each_of

T = TypeVar("T")
_DERIVED = ("outputs", "aggregates", "results")
"""Settings that follow from others."""


def expressions_of(step: object) -> Iterator[Expr]:
    """The expressions that a step was given."""
    for name in _settings(step):
        yield from _expressions(getattr(step, name))


def _settings(step: object) -> list[str]:
    return [f.name for f in dataclasses.fields(step) if f.name not in _DERIVED]  # type: ignore[arg-type]  # steps are dataclasses


def _expressions(part: object) -> Iterator[Expr]:
    if isinstance(part, Expr):
        yield part
    elif isinstance(part, tuple):
        for each in part:
            yield from _expressions(each)
    elif isinstance(part, AggregateCall):
        yield from _expressions(part.call)
    elif isinstance(part, FilteredAggregator):
        yield part.condition


def with_expressions(step: T, change: Callable[[Expr], Expr]) -> T:
    """The step with its expressions changed; the same one where none is."""
    made = {name: _changed(getattr(step, name), change) for name in _settings(step)}
    new = {name: value for name, value in made.items() if value is not getattr(step, name)}
    return dataclasses.replace(step, **new) if new else step  # type: ignore[type-var]  # steps are dataclasses


def _changed(part: object, change: Callable[[Expr], Expr]) -> object:
    if isinstance(part, Expr):
        return change(part)
    if isinstance(part, tuple) and not hasattr(part, "_fields"):
        made = tuple(_changed(each, change) for each in part)
        return part if all(a is b for a, b in zip(made, part, strict=True)) else made
    if isinstance(part, AggregateCall):
        call = _changed(part.call, change)
        return part if call is part.call else dataclasses.replace(part, call=call)  # type: ignore[arg-type]  # of the same kind
    if isinstance(part, FilteredAggregator):
        condition = change(part.condition)
        return part if condition is part.condition else dataclasses.replace(part, condition=condition)
    return part


VARYING = frozenset({
    "current_date", "current_time", "current_timestamp", "localtime", "localtimestamp", "monotonically_increasing_id", "now", "proctime",
    "rand", "randn", "random", "shuffle", "uuid",
})  # fmt: skip
"""Functions that may not answer the same twice; of Python functions and Spark's own SQL nobody knows."""


def varying_in(expr: Expr) -> list[str]:
    """The calls in an expression that may not answer the same twice, as they are written.

    >>> from penstock.graph.expr import as_expr
    >>> varying_in(as_expr("upper(a)"))
    []
    """
    return [to_text(each) for each in each_of(expr) if _varies(each)]


def _varies(expr: Expr) -> bool:
    if isinstance(expr, PythonCall):
        return not expr.function.deterministic
    return isinstance(expr, Raw) or (isinstance(expr, Call) and expr.name.lower() in VARYING)


def calls_in(expr: Expr) -> list[PythonCall]:
    """The calls of Python functions in an expression, those inside of others too."""
    return [each for each in each_of(expr) if isinstance(each, PythonCall)]
