"""Expressions over Arrow arrays, where Arrow means what Spark means; all others are evaluated row by row.

>>> from penstock.graph.expr import parse
>>> from penstock.graph.schema import schema_of
>>> few = compile_arrays(parse("n > 1 or n is null"), schema_of("n int"))
>>> few(pa.record_batch({"n": pa.array([1, 2, None], pa.int32())})).to_pylist()
[False, True, True]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.expr import Expr, resolve
from penstock.graph.expr.coerce import TypedExpr
from penstock.graph.expr.columnar import has_columns
from penstock.graph.schema import Schema
from penstock.kernels.records.arrow import arrow_type


class Columns(Protocol):
    """What expressions read: a record batch, or columns that become arrays when they are asked for."""

    @property
    def num_rows(self) -> int:
        """How many rows there are."""

    def column(self, at: int, /) -> pa.Array:
        """The column of this number."""


Datum: TypeAlias = "pa.Array | pa.Scalar"
ArrayRun = Callable[[Columns], Datum]
ArrayMaker = Callable[[Columns], pa.Array]

_FUNCTIONS: dict[str, Callable[..., Datum]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
    "and": pc.and_kleene,
    "or": pc.or_kleene,
    "not": pc.invert,
    "isnull": pc.is_null,
    "isnotnull": pc.is_valid,
}


def compile_arrays(expr: Expr, schema: Schema, *, numbers: bool = False) -> ArrayMaker | None:
    """A function of a record batch that returns the values of an expression; None where only rows can be asked (`graph/expr/columnar.py`).

    With `numbers` the caller knows that every float is a number. The function raises `pa.ArrowInvalid` where some row has no value, as with a sum that does not fit its type. `compile_expr` knows which row it
    is, and what Spark says of it.
    """
    node = resolve(expr, schema)
    if not has_columns(node, numbers=numbers):
        return None
    run, kind = _compile(node), arrow_type(node.type)

    def column(batch: Columns) -> pa.Array:
        made = run(batch)
        whole = pa.repeat(made, batch.num_rows) if isinstance(made, pa.Scalar) else made
        return whole if whole.type == kind else whole.cast(kind)

    return column


def _compile(node: TypedExpr) -> ArrayRun:
    return _COMPILERS[node.kind](node)


def _column(node: TypedExpr) -> ArrayRun:
    at = node.value
    return lambda batch: batch.column(at)


def _literal(node: TypedExpr) -> ArrayRun:
    value = pa.scalar(node.value, arrow_type(node.type))
    return lambda batch: value


def _cast(node: TypedExpr) -> ArrayRun:
    inner, kind = _compile(node.args[0]), arrow_type(node.type)
    return lambda batch: inner(batch).cast(kind)


def _call(node: TypedExpr) -> ArrayRun:
    function, runs = _FUNCTIONS[node.value], [_compile(arg) for arg in node.args]
    return lambda batch: function(*(run(batch) for run in runs))


_COMPILERS: dict[str, Callable[[TypedExpr], ArrayRun]] = {
    "column": _column,
    "literal": _literal,
    "cast": _cast,
    "call": _call,
}
