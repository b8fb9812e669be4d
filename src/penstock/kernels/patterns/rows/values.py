"""The rows of a batch as the expressions of a row pattern read them: by column where Arrow can, one by one where it cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph import types as t
from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.expr import Column, Expr, columns_of, type_of_expr
from penstock.graph.nodes import Node
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import values_of
from penstock.kernels.base import RecordFailed
from penstock.kernels.expr.arrays import compile_arrays
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.records.arrow import arrow_type, to_columns

NOTHING = "__nothing"
"""The column of a batch of rows that no expression reads."""
ColumnMaker = Callable[[pa.RecordBatch], pa.Array]


class RowValues:
    """Rows in order, whose columns become Python values when they are asked for."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.number = 0
        """The number of the match that is looked at."""
        self._columns: dict[str, list[Any]] = {}

    def column(self, name: str) -> list[Any]:
        """The values of a column."""
        made = self._columns.get(name)
        if made is None:
            made = self._columns[name] = values_of(self.batch.column(name))
        return made

    def row(self, at: int, names: Sequence[str]) -> list[Any]:
        """Some values of a row."""
        return [self.column(name)[at] for name in names]

    def __getitem__(self, at: int) -> tuple[Any, ...]:
        return tuple(self.row(at, self.batch.schema.names))


class RowExpression:
    """An expression over some fields of a row and further values, computed for one row at a time."""

    def __init__(self, expr: Expr, schema: Schema, fields: Sequence[str]) -> None:
        used = columns_of(expr)
        self.names = [name for name in fields if name in used]
        more = [name for name in schema.names if name not in set(fields)]
        reads = tuple(schema.field(name) for name in (*self.names, *more)) or (t.Field(NOTHING, t.INT),)
        self.run = compile_expr(expr, Schema(reads, internal=True))

    def value(self, rows: RowValues, at: int, *more: object) -> Any:
        """The value for a row; `more` are the values of the fields that are not those of a row."""
        return self.run((*rows.row(at, self.names), *more))


def column_maker(node: Node, expr: Expr, schema: Schema) -> ColumnMaker:
    """A function from a batch to the values of an expression: by Arrow, or row by row where Arrow has no such function."""
    if isinstance(expr, Column):
        return lambda batch: batch.column(expr.name)
    used = tuple(name for name in schema.names if name in columns_of(expr))
    fields = Schema(tuple(schema.field(name) for name in used) or (t.Field(NOTHING, t.INT),), internal=True)
    quick, slow = compile_arrays(expr, fields), _by_row(node, expr, fields)
    of_numbers = compile_arrays(expr, fields, numbers=True) if quick is None else None

    def made(batch: pa.RecordBatch) -> pa.Array:
        picked = _picked(batch, used)
        run = quick
        if run is None and of_numbers is not None and _has_numbers(picked):
            run = of_numbers
        try:
            return slow(picked) if run is None else run(picked)
        except pa.ArrowInvalid:
            return slow(picked)

    return made


def _has_numbers(batch: pa.RecordBatch) -> bool:
    """Whether every float of a batch is a number."""
    floats = (column for column in batch.columns if pa.types.is_floating(column.type))
    return not any(pc.any(pc.is_nan(column)).as_py() for column in floats)


def batch_of(columns: dict[str, pa.Array], rows: int) -> pa.RecordBatch:
    """A batch of so many rows, also without columns."""
    made = columns or {NOTHING: pa.nulls(rows, pa.int32())}
    return pa.record_batch(list(made.values()), list(made))


def _picked(batch: pa.RecordBatch, names: tuple[str, ...]) -> pa.RecordBatch:
    """Some columns of a batch; where there are none one that stands for its rows."""
    return batch_of({name: batch.column(name) for name in names}, batch.num_rows)


def _by_row(node: Node, expr: Expr, schema: Schema) -> ColumnMaker:
    run, kind = compile_expr(expr, schema), arrow_type(type_of_expr(expr, schema))

    def made(batch: pa.RecordBatch) -> pa.Array:
        values: list[Any] = []
        row: tuple[Any, ...] = ()
        try:
            for row in zip(*to_columns(batch), strict=True):
                values.append(run(row))
        except Exception as error:
            raise RecordFailed(node, row, None, error) from error
        return pa.array(values, kind)

    return made


def true_rows(column: pa.Array) -> BoolArray:
    """Which values are true; null is not."""
    if pa.types.is_null(column.type):
        return np.zeros(len(column), bool)
    made: BoolArray = column.fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
    return made


def moved(column: pa.Array, step: int, first: IntArray, after: IntArray) -> pa.Array:
    """A column with the value `step` rows further on in each row; null where that is not a row of the same key.

    Args:
        column: the values.
        step: how far; below zero is back.
        first: for each row the first row of its key.
        after: for each row the one after the last of its key.
    """
    at = np.arange(len(column)) + step
    return column.take(pa.array(at, mask=(at < first) | (at >= after)))
