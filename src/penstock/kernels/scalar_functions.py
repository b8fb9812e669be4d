"""The kernel of Python functions in expressions: their results as further columns, a value or an Arrow array at a time."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.expr import Cast, Column, Expr, PythonCall, ScalarFunction, to_text, type_of_expr
from penstock.graph.nodes import FunctionColumns
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import values_of
from penstock.graph.types import DataType, Field
from penstock.kernels.base import Kernel, Out, RecordFailed
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.expr.python import Values, call_of, misfit
from penstock.kernels.expr.python_arrays import Array, array_of, call_arrays
from penstock.kernels.records.chunk import Chunk, shape_of
from penstock.kernels.records.records import BadRecord


class FunctionsKernel(Kernel):
    """Calls the functions of a step, one after the other, over the records of a chunk."""

    node: FunctionColumns

    def __init__(self, node: FunctionColumns, schema: Schema) -> None:
        super().__init__(node)
        self.calls: list[Callable[[Table], Values | Array]] = []
        known = schema
        for name, call in node.columns:
            assert isinstance(call, PythonCall)
            self.calls.append(_Call(node, call, known))
            known = Schema((*known.fields, Field(name, call.function.returns)), internal=True)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records with the results."""
        table = Table(chunk)
        for call in self.calls:
            table.add(call(table))
        yield "out", table.chunk(self.node.output().schema)


class Table:
    """The columns of a chunk and those that were added, as Python values or as Arrow arrays, whichever is asked for."""

    def __init__(self, chunk: Chunk) -> None:
        self.given = chunk
        self.width = len(chunk.shape.names)
        self.added: list[Values | Array] = []
        self.read: dict[int, Values] = {}

    def __len__(self) -> int:
        return len(self.given)

    def add(self, column: Values | Array) -> None:
        """A further column."""
        self.added.append(column)

    def values(self, at: int) -> Values:
        """A column as Python values; of an Arrow batch no other column is read for it."""
        if at >= self.width:
            column = self.added[at - self.width]
            return column if isinstance(column, list) else values_of(column)
        if not self.given.is_arrow:
            return self.given.columns()[at]
        if at not in self.read:
            self.read[at] = values_of(self.given.batch().column(at))
        return self.read[at]

    def array(self, at: int, kind: DataType) -> Array:
        """A column as an Arrow array."""
        column = self.given.batch().column(at) if at < self.width else self.added[at - self.width]
        return array_of(column, kind) if isinstance(column, list) else column

    def chunk(self, schema: Schema) -> Chunk:
        """All columns; as an Arrow batch where they are one, or where one of them is an array."""
        if not self.given.is_arrow and all(isinstance(column, list) for column in self.added):
            return Chunk(schema, columns=[*self.given.columns(), *self.added], key_hashes=self.given.key_hashes)
        arrays = [self.array(at, field.type) for at, field in enumerate(schema.fields)]
        batch = pa.RecordBatch.from_arrays(arrays, names=list(schema.names))
        return Chunk(schema, batch=batch, key_hashes=self.given.key_hashes)


class _Argument:
    """An argument of a call: a field, or an expression over the fields."""

    def __init__(self, expr: Expr, kind: DataType, schema: Schema) -> None:
        fitting = expr if type_of_expr(expr, schema) == kind else Cast(expr, kind)
        self.at = schema.names.index(fitting.name) if isinstance(fitting, Column) else None
        self.kind = kind
        self.make = compile_expr(fitting, schema)
        self.width = len(schema.names)

    def values(self, table: Table) -> Values:
        """Its value for each record."""
        if self.at is not None:
            return table.values(self.at)
        rows = zip(*(table.values(at) for at in range(self.width)), strict=True)
        return [self.make(row) for row in rows]

    def array(self, table: Table) -> Array:
        """Its values as an Arrow array."""
        return array_of(self.values(table), self.kind) if self.at is None else table.array(self.at, self.kind)


class _Call:
    """One call: how its arguments are found, and what is done with its results."""

    def __init__(self, node: FunctionColumns, call: PythonCall, schema: Schema) -> None:
        self.node, self.call = node, call
        self.function: ScalarFunction = call.function
        self.arguments = [_Argument(e, kind, schema) for e, kind in zip(call.args, self.function.takes, strict=False)]
        self.shape = shape_of(Schema((Field(self.function.name, self.function.returns),)))

    def __call__(self, table: Table) -> Values | Array:
        """The results for the records of a chunk."""
        return self._vectorized(table) if self.function.vectorized else self._each(table)

    def _each(self, table: Table) -> Values:
        made: Values = []
        try:
            given = [argument.values(table) for argument in self.arguments]
            one = call_of(self.function)
            for values in zip(*given, strict=True) if given else [()] * len(table):
                made.append(one(*values))
            return self.shape.checked([made])[0]
        except BadRecord as error:
            raise self._failed(table, error.at, misfit(self.function, made[error.at])) from None
        except Exception as error:
            raise self._failed(table, len(made), error) from error

    def _vectorized(self, table: Table) -> Array:
        try:
            arrays = [argument.array(table) for argument in self.arguments]
            skips = self.function.null_on_null and bool(arrays)
            return self._skipped(arrays) if skips else call_arrays(self.function, arrays, len(table))
        except Exception as error:
            raise self._failed(table, None, error) from error

    def _skipped(self, arrays: list[Array]) -> Array:
        """The results for the records in which no argument is null; null for the others."""
        there = np.ones(len(arrays[0]), bool)
        for array in arrays:
            there &= np.asarray(array.is_valid())
        if there.all():
            return call_arrays(self.function, arrays, len(there))
        mask = pa.array(there)
        made = call_arrays(self.function, [array.filter(mask) for array in arrays], int(there.sum()))
        indexes = pa.array(np.where(there, np.cumsum(there) - 1, 0), mask=~there)
        return pc.take(made, indexes)

    def _failed(self, table: Table, at: int | None, error: Exception) -> RecordFailed:
        rows = table.given.rows()
        if at is None or at >= len(rows):
            shown: object = rows[0] if len(rows) == 1 else f"{to_text(self.call)} over {len(rows)} records"
            return RecordFailed(self.node, shown, 0, error)
        return RecordFailed(self.node, rows[at], at, error)
