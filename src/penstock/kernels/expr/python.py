"""Python functions of expressions, called for one record: the rules of null, and the check of what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from penstock.graph.expr import ScalarFunction
from penstock.kernels.records.brief import brief
from penstock.kernels.records.values import BadValue, checker_of

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

    return _skipping(one) if function.null_on_null else one


def _skipping(one: One) -> One:
    return lambda *values: None if None in values else one(*values)


def checked_call(function: ScalarFunction) -> One:
    """A call for one record, checked; of a function of arrays with arrays of one value each."""
    if function.vectorized:
        from penstock.kernels.expr.python_arrays import with_arrays  # pyarrow is loaded where a function wants it

        one = with_arrays(function)
        return _skipping(one) if function.null_on_null else one
    call, check = call_of(function), checker_of(function.returns)

    def checked(*values: object) -> object:
        made = call(*values)
        try:
            return check([made])[0]
        except BadValue:
            raise misfit(function, made) from None

    return checked
