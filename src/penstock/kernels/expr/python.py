"""Python functions of expressions, called for one record by the rules of null."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from penstock.graph.expr import ScalarFunction
from penstock.kernels.records.brief import brief

Values: TypeAlias = list[object]
One = Callable[..., object]
"""A call for one record: its arguments in, its result out."""


def misfit(function: ScalarFunction, value: object) -> TypeError:
    """What is wrong with a result of another type than the function says."""
    return TypeError(
        f"{function.name} says that it returns {function.returns}, got {brief(value)} ({type(value).__name__})"
    )


def call_of(function: ScalarFunction) -> One:
    """A call by the function's rules of null; the type of what it returns is not looked at."""

    def one(*values: object) -> object:
        made = function.function(*values)
        if made is None and not function.nullable:
            raise ValueError(
                f"{function.name} returned None, as a function does whose return is missing; "
                f"one that means null says so in its annotation, such as -> float | None"
            )
        return made

    return skipping_nulls(one) if function.null_on_null else one


def skipping_nulls(one: One) -> One:
    """A call that is null where an argument is."""
    return lambda *values: None if None in values else one(*values)
