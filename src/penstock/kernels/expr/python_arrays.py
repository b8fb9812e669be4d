"""Python functions of expressions that take and return arrays."""

from __future__ import annotations

from typing import TypeAlias

import pyarrow as pa

from penstock.graph.expr import ScalarFunction
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import values_of
from penstock.graph.types import DataType, Field
from penstock.kernels.expr.python import One, Values
from penstock.kernels.records.arrow import arrow_type, to_batch

Array: TypeAlias = "pa.Array[pa.Scalar]"


def array_of(values: Values, kind: DataType) -> Array:
    """Python values as an Arrow array."""
    return to_batch([values], Schema((Field("value", kind),))).column(0)


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


def with_arrays(function: ScalarFunction) -> One:
    """A call for one record of a function of arrays: with arrays of one value each."""

    def one(*values: object) -> object:
        arrays = [array_of([value], kind) for value, kind in zip(values, function.takes, strict=False)]
        return values_of(call_arrays(function, arrays, 1))[0]

    return one
