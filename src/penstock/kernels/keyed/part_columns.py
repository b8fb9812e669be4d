"""The parts that records make of aggregates, a column for each part: what Spark computes natively, for hosts without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.aggregates.aggregate import ROWS, Aggregate, Part
from penstock.graph.expr import Column
from penstock.graph.expr.infer import resolve
from penstock.graph.nodes import AggregateBy, Window
from penstock.graph.schema import Schema
from penstock.graph.types import Field
from penstock.kernels.base import RecordFailed
from penstock.kernels.keyed.aggregates import Begin, begins
from penstock.kernels.records.arrow import arrow_type
from penstock.kernels.records.chunk import Chunk

Array: TypeAlias = "pa.Array[Any]"
MakeColumn = Callable[[Chunk], Array]
_DIRECT: dict[str, Callable[[Array], Array]] = {
    "value": lambda column: column,
    "known": lambda column: column.is_valid(),
    "true": lambda column: pc.fill_null(column, False),
    "double": lambda column: column,
}
"""What Arrow makes of a field that is an argument as it is; the result is cast to the type of the part."""


class PartColumns:
    """Makes a column for each part of each aggregate, and one that counts records."""

    def __init__(self, of: AggregateBy | Window, schema: Schema) -> None:
        self.of, self.schema = of, schema
        self.makers = [maker for aggregate in of.aggregates for maker in self._makers(aggregate)]
        self.names = [field.name for aggregate in of.aggregates for field in aggregate.part_fields]

    def table(self, chunk: Chunk) -> pa.Table:
        """The key of each record, its parts, and how many records it is."""
        batch = chunk.batch()
        columns = {key: batch.column(key) for key in self.of.keys}
        columns |= {name: make(chunk) for name, make in zip(self.names, self.makers, strict=True)}
        return pa.table({**columns, ROWS: _ones(len(chunk))})

    def _makers(self, aggregate: Aggregate) -> Iterator[MakeColumn]:
        steps = begins(aggregate, self.schema)
        for part, field, begin in zip(aggregate.recipe.parts, aggregate.part_fields, steps, strict=True):
            yield self._maker(aggregate, part, field, begin)

    def _maker(self, aggregate: Aggregate, part: Part, field: Field, begin: Begin) -> MakeColumn:
        kind = arrow_type(field.type)
        if not aggregate.arguments:
            return lambda chunk: _ones(len(chunk))
        only = aggregate.arguments[0]
        if isinstance(only, Column) and part.begin in _DIRECT and len(aggregate.arguments) == 1:
            name, direct = self._field(only), _DIRECT[part.begin]
            return lambda chunk: direct(chunk.batch().column(name)).cast(kind)
        return lambda chunk: pa.array(self._evaluated(begin, chunk), kind)

    def _field(self, column: Column) -> str:
        """The field that a column names."""
        return self.schema.names[int(resolve(column, self.schema).value)]

    def _evaluated(self, begin: Begin, chunk: Chunk) -> list[Any]:
        made: list[Any] = []
        rows = list(chunk.values())
        try:
            for values in rows:
                made.append(begin(values, None))  # noqa: PERF401 - the length tells which one failed
        except Exception as error:
            raise RecordFailed(self.of, chunk.rows()[len(made)], len(made), error) from error
        return made


def _ones(many: int) -> Array:
    return pa.array(np.ones(many, np.int64))
