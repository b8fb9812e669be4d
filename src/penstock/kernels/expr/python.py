"""Python functions of expressions, called for one record: the rules of null, and the check of what comes back."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import pyarrow as pa

from penstock.graph.expr import ScalarFunction
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import values_of
from penstock.graph.types import DataType, Field
from penstock.kernels.records.arrow import arrow_type, to_batch
from penstock.kernels.records.values import BadValue, checker_of

Array: TypeAlias = "pa.Array[pa.Scalar]"
Values: TypeAlias = list[object]
One = Callable[..., object]
"""A call for one record: its arguments in, its result out."""


def array_of(values: Values, kind: DataType) -> Array:
    """Python values as an Arrow array."""
    return to_batch([values], Schema((Field("value", kind),))).column(0)


def misfit(function: ScalarFunction, value: object) -> TypeError:
    """What is wrong with a result of another type than the function says."""
    return TypeError(f"{function.name} says that it returns {function.returns}, got {value!r} ({type(value).__name__})")


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


def call_arrays(function: ScalarFunction, arrays: list[Array], many: int) -> Array:
    """A call for arrays of so many values, and the check of the array that comes back.

    Raises:
        TypeError: it is no array, or one of another type than the function says.
        ValueError: it is of another length.
    """
    made = function.function(*arrays)
    whole = made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
    kind = arrow_type(function.returns)
    if not isinstance(whole, pa.Array):
        raise TypeError(f"{function.name} must return a pyarrow array, got {type(made).__name__}")
    if whole.type != kind:
        raise TypeError(f"{function.name} says that it returns {kind}, got an array of {whole.type}")
    if len(whole) != many:
        raise ValueError(f"{function.name} got {many} values and returned {len(whole)}")
    return whole


def checked_call(function: ScalarFunction) -> One:
    """A call for one record, checked; of a function of arrays with arrays of one value each."""
    if function.vectorized:
        one = _with_arrays(function)
        return _skipping(one) if function.null_on_null else one
    call, check = call_of(function), checker_of(function.returns)

    def checked(*values: object) -> object:
        made = call(*values)
        try:
            return check([made])[0]
        except BadValue:
            raise misfit(function, made) from None

    return checked


def _with_arrays(function: ScalarFunction) -> One:
    def one(*values: object) -> object:
        arrays = [array_of([value], kind) for value, kind in zip(values, function.takes, strict=False)]
        return values_of(call_arrays(function, arrays, 1))[0]

    return one
