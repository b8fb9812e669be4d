"""What a join emits: the fields of both sides put together."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import IntArray
from penstock.graph.nodes.join import StreamJoin
from penstock.kernels.joins.rows import Rows
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk

NOTHING: Mapping[str, Any] = MappingProxyType({})


class JoinOutput:
    """Makes the records of the result."""

    def __init__(self, node: StreamJoin) -> None:
        self.node, self.schema = node, node.output().schema
        self.shape = arrow_schema(self.schema)

    def both(self, left: Rows, at: IntArray, right: Rows, other: IntArray, more: Mapping[str, Any] = NOTHING) -> Chunk:
        """The records of pairs, given by number; `more` has columns that neither side has."""
        mine, theirs = pa.array(at), pa.array(other)
        taken = [
            left.batch.column(one).take(mine) if one else right.batch.column(two).take(theirs)
            for one, two in self.node.columns
        ]
        return self._chunk(taken, more)

    def alone(self, rows: Rows, side: int, more: Mapping[str, Any] = NOTHING) -> Chunk:
        """The records of rows that match nothing; the fields of the other side are null."""
        kinds = [f.type for f in self.shape if f.name not in more]
        taken = [
            rows.batch.column(names[side]) if names[side] else pa.nulls(len(rows), kind)
            for names, kind in zip(self.node.columns, kinds, strict=True)
        ]
        return self._chunk(taken, more)

    def _chunk(self, taken: list[Any], more: Mapping[str, Any]) -> Chunk:
        named = dict(zip((n for n in self.shape.names if n not in more), taken, strict=True)) | dict(more)
        arrays = [_typed(named[f.name], f.type) for f in self.shape]
        return Chunk(self.schema, batch=pa.RecordBatch.from_arrays(arrays, schema=self.shape))


def moments(times: IntArray) -> pa.Array:
    """Times as a column of timestamps."""
    return pa.array(np.asarray(times, np.int64)).cast(pa.timestamp("us", tz="UTC"))


def _typed(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)
