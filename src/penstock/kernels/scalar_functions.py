"""The kernel of Python functions in expressions: their results as further columns, a value or an Arrow array at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

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
from penstock.kernels.records.arrow import arrow_type, to_batch
from penstock.kernels.records.chunk import Chunk, shape_of
from penstock.kernels.records.records import BadRecord

Values: TypeAlias = list[object]
Array: TypeAlias = "pa.Array[pa.Scalar]"


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
        """All columns; as an Arrow batch where they came as one, or where one of them is an array."""
        if not self.given.is_arrow and all(isinstance(column, list) for column in self.added):
            return Chunk(schema, columns=[*self.given.columns(), *self.added], places=self.given.places)
        arrays = [self.array(at, field.type) for at, field in enumerate(schema.fields)]
        batch = pa.RecordBatch.from_arrays(arrays, names=list(schema.names))
        return Chunk(schema, batch=batch, places=self.given.places)


def array_of(values: Values, kind: DataType) -> Array:
    """Python values as an Arrow array."""
    return to_batch([values], Schema((Field("value", kind),))).column(0)


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
        self.kind = arrow_type(self.function.returns)

    def __call__(self, table: Table) -> Values | Array:
        """The results for the records of a chunk."""
        return self._vectorized(table) if self.function.vectorized else self._each(table)

    def _each(self, table: Table) -> Values:
        made: Values = []
        try:
            given = [argument.values(table) for argument in self.arguments]
            one = self._skipping if self.function.null_on_null else self._one
            for values in zip(*given, strict=True) if given else [()] * len(table):
                made.append(one(*values))
            return self.shape.checked([made])[0]
        except BadRecord as error:
            raise self._failed(table, error.at, self._misfit(made[error.at])) from None
        except Exception as error:
            raise self._failed(table, len(made), error) from error

    def _one(self, *values: object) -> object:
        made = self.function.function(*values)
        if made is None and not self.function.nullable:
            raise ValueError(
                f"{self.function.name} returned None, as a function does whose return is missing; "
                f"one that means null says so in its annotation, such as -> float | None"
            )
        return made

    def _skipping(self, *values: object) -> object:
        return None if None in values else self._one(*values)

    def _misfit(self, value: object) -> TypeError:
        return TypeError(
            f"{self.function.name} says that it returns {self.function.returns}, got {value!r} ({type(value).__name__})"
        )

    def _vectorized(self, table: Table) -> Array:
        try:
            arrays = [argument.array(table) for argument in self.arguments]
            return self._skipped(arrays) if self.function.null_on_null and arrays else self._called(arrays, len(table))
        except Exception as error:
            raise self._failed(table, None, error) from error

    def _called(self, arrays: list[Array], many: int) -> Array:
        made = self.function.function(*arrays)
        whole = made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made
        if not isinstance(whole, pa.Array):
            raise TypeError(f"{self.function.name} must return a pyarrow array, got {type(made).__name__}")
        if whole.type != self.kind:
            raise TypeError(f"{self.function.name} says that it returns {self.kind}, got an array of {whole.type}")
        if len(whole) != many:
            raise ValueError(f"{self.function.name} got {many} values and returned {len(whole)}")
        return whole

    def _skipped(self, arrays: list[Array]) -> Array:
        """The results for the records in which no argument is null; null for the others."""
        there = np.ones(len(arrays[0]), bool)
        for array in arrays:
            there &= np.asarray(array.is_valid())
        if there.all():
            return self._called(arrays, len(there))
        mask = pa.array(there)
        made = self._called([array.filter(mask) for array in arrays], int(there.sum()))
        places = pa.array(np.where(there, np.cumsum(there) - 1, 0), mask=~there)
        return pc.take(made, places)

    def _failed(self, table: Table, at: int | None, error: Exception) -> RecordFailed:
        rows = table.given.rows()
        if at is None or at >= len(rows):
            shown: object = rows[0] if len(rows) == 1 else f"{to_text(self.call)} over {len(rows)} records"
            return RecordFailed(self.node, shown, 0, error)
        return RecordFailed(self.node, rows[at], at, error)
