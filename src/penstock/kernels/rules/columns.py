"""Expressions over records of a batch: by columns where Arrow can, else record by record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.graph.expr import Column, Expr, type_of_expr
from penstock.graph.schema import Schema
from penstock.kernels.expr.arrays import compile_arrays
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.records.arrow import arrow_type, to_columns
from penstock.kernels.rules.axis import Numbers


class RowError(Exception):
    """An expression failed on a record: the number of the record in its batch, and why."""

    def __init__(self, at: int, error: Exception) -> None:
        super().__init__(str(error))
        self.at, self.error = at, error


class Expressions:
    """The expressions over one schema, each compiled when it is first asked for."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self._made: dict[object, Callable[[pa.RecordBatch], pa.Array]] = {}

    def holds(self, condition: Expr, batch: pa.RecordBatch, rows: Numbers) -> npt.NDArray[np.bool_]:
        """For which of some records a condition is true; null is not true."""
        found: npt.NDArray[np.bool_] = (
            self.values(condition, batch, rows).fill_null(False).to_numpy(zero_copy_only=False)
        )
        return found

    def values(self, expr: Expr, batch: pa.RecordBatch, rows: Numbers) -> pa.Array:
        """The values of an expression for some records."""
        if isinstance(expr, Column):
            return batch.column(expr.name).take(pa.array(rows))
        every = len(rows) == batch.num_rows
        try:
            return self._compiled(expr)(batch if every else batch.take(pa.array(rows)))
        except RowError as error:
            raise RowError(int(rows[error.at]), error.error) from error

    def _compiled(self, expr: Expr) -> Callable[[pa.RecordBatch], pa.Array]:
        key = expr.shape()
        if key not in self._made:
            self._made[key] = self._compile(expr)
        return self._made[key]

    def _compile(self, expr: Expr) -> Callable[[pa.RecordBatch], pa.Array]:
        arrays, of_row = compile_arrays(expr, self.schema), compile_expr(expr, self.schema)
        kind = arrow_type(type_of_expr(expr, self.schema))

        def by_rows(batch: pa.RecordBatch) -> pa.Array:
            return pa.array(_each(of_row, batch), kind)

        def by_columns(batch: pa.RecordBatch) -> pa.Array:
            try:
                return arrays(batch) if arrays is not None else by_rows(batch)
            except pa.ArrowInvalid:
                return by_rows(batch)

        return by_columns


def _each(of_row: Callable[[Any], Any], batch: pa.RecordBatch) -> list[Any]:
    made: list[Any] = []
    try:
        for row in zip(*to_columns(batch), strict=True):
            made.append(of_row(row))  # noqa: PERF401 - the length tells which one failed
    except Exception as error:
        raise RowError(len(made), error) from error
    return made
