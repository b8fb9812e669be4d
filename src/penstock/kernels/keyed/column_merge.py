"""Running totals from parts, in columns: all keys of a batch at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph import types as t
from penstock.graph.aggregates.aggregate import ROWS, Aggregate, Part
from penstock.graph.arrays import BoolArray
from penstock.graph.nodes import AggregateBy, Aggregating
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import equal
from penstock.graph.times import Times
from penstock.kernels.base import Kernel, Out
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.keyed.key_columns import MANY, Numbered, numbered
from penstock.kernels.keyed.keyed import AggregateKernel, MergeKernel, MergePickledKernel
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk

Merge: TypeAlias = Callable[[pa.Array, pa.Array], pa.Array]
_MERGES: dict[str, Merge] = {
    "add": pc.add_checked,
    "least": pc.min_element_wise,
    "greatest": pc.max_element_wise,
}
_FINISH: dict[str, Callable[..., pa.Array]] = {
    "first": lambda part: part,
    "ratio": lambda total, n: pc.divide(total, pc.if_else(pc.equal(n, 0), None, n).cast(pa.float64())),
}


def in_columns(aggregate: Aggregate) -> bool:
    """Whether Arrow puts the parts of an aggregate together, and makes the result of them, as Python would."""
    if aggregate.own is not None or aggregate.ranked is not None or aggregate.recipe.finish not in _FINISH:
        return False
    return all(_suits(part, part.type(aggregate.kinds)) for part in aggregate.recipe.parts)


def _suits(part: Part, kind: t.DataType) -> bool:
    """Floats are ordered otherwise by Arrow, booleans not at all, and sums of decimals are of another type there."""
    if part.merge == "add":
        return kind in (*t.INTEGERS, t.DOUBLE)
    return part.merge in _MERGES and isinstance(kind, t.Simple) and kind not in (t.FLOAT, t.DOUBLE, t.BOOLEAN)


class ColumnMergeKernel(MergeKernel):
    """Gathers the parts and puts them together when time moves. Few of them, and sums that overflow, are left to the rows of its base."""

    def __init__(self, node: Aggregating, schema: Schema) -> None:
        super().__init__(node, schema)
        self.chunks: list[Chunk] = []
        self.out_schema = arrow_schema(node.output().schema)
        self.merges = [_MERGES[part.merge] for a in node.aggregates for part in a.recipe.parts]

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers the parts; where single records may fail, they are folded one by one."""
        if self.guarded or not self.state.is_columnar:
            return super().take(chunk, source)
        self.chunks.append(chunk)
        return ()

    def advance(self, times: Times) -> Out:
        """The new totals of the keys that changed."""
        chunks, self.chunks = self.chunks, []
        made = self._by_columns(chunks) if sum(map(len, chunks)) >= MANY else None
        if made is not None:
            self.move(times)
            return made
        for chunk in chunks:
            super().take(chunk)
        return super().advance(times)

    def _by_columns(self, chunks: list[Chunk]) -> Out | None:
        """The totals; None where a key comes twice, or a sum or a result is too large for its type."""
        table = pa.Table.from_batches([chunk.batch() for chunk in chunks]).combine_chunks()
        keys = [table.column(c.name).combine_chunks().cast(c.type) for c in self.key_columns]
        found = numbered(keys, key_hashes(keys, table.num_rows))
        if found is None or len(found) < table.num_rows:
            return None
        rows = table.take(pa.array(found.first))
        try:
            made = self._merged(rows, found)
        except pa.ArrowInvalid:
            return None
        if made is not None:
            self.counters.native += pc.sum(table.column(ROWS)).as_py()
        return made

    def _merged(self, rows: pa.Table, found: Numbered) -> Out | None:
        """Keeps the totals and returns what they emit; whatever may fail comes before they are kept, or rows would add them once more."""
        keys = pa.RecordBatch.from_arrays(
            [_array(rows, c.name).cast(c.type) for c in self.key_columns], list(self.of.keys)
        )
        parts = [_array(rows, field.name) for a in self.of.aggregates for field in a.part_fields]
        known = self.state.read_columns(keys, found.hashes)
        if known is None:
            return None
        kept, there = known
        before = [array.cast(part.type) for array, part in zip(kept.columns, parts, strict=True)]
        after = [_together(merge, a, b) for merge, a, b in zip(self.merges, before, parts, strict=True)]
        values = pa.RecordBatch.from_arrays(after, kept.schema.names)
        out = self._out(
            self._signed_rows(keys, before, after, there) if self.is_signed else [*keys.columns, *self._finished(after)]
        )
        self.state.put_columns(keys, found.hashes, values, np.zeros(len(found), bool))
        return out

    def _finished(self, parts: list[pa.Array]) -> list[pa.Array]:
        """The results that parts stand for."""
        made, at = [], 0
        for aggregate, width in self.widths:
            made.append(_FINISH[aggregate.recipe.finish](*parts[at : at + width]))
            at += width
        return made

    def _signed_rows(
        self, keys: pa.RecordBatch, before: list[pa.Array], after: list[pa.Array], there: BoolArray
    ) -> list[pa.Array]:
        """The totals that are taken back, then those that replace them; those that are as they were do neither."""
        old, new = self._finished(before), self._finished(after)
        same = there.copy()
        for one, other in zip(old, new, strict=True):
            same &= _alike(one, other)
        gone, come = np.flatnonzero(there & ~same), np.flatnonzero(~same)
        taken = [
            pa.concat_arrays([a.take(pa.array(gone)), b.take(pa.array(come))])
            for a, b in zip((*keys.columns, *old), (*keys.columns, *new), strict=True)
        ]
        return [*taken, pa.array(np.repeat(np.array([-1, 1], np.int64), [len(gone), len(come)]))]

    def _out(self, arrays: list[pa.Array]) -> Out:
        if not len(arrays[0]):
            return ()
        cast = [array.cast(field.type) for array, field in zip(arrays, self.out_schema, strict=True)]
        batch = pa.RecordBatch.from_arrays(cast, schema=self.out_schema)
        return (("out", Chunk(self.node.output().schema, batch=batch)),)


def _array(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()


def _together(merge: Merge, one: pa.Array, other: pa.Array) -> pa.Array:
    """What two parts give; null is nothing."""
    if pa.types.is_timestamp(one.type):
        return _together(merge, one.cast(pa.int64()), other.cast(pa.int64())).cast(one.type)
    return pc.coalesce(merge(one, other), one, other)


def _alike(one: pa.Array, other: pa.Array) -> BoolArray:
    """Where results are equal; not-a-number equals itself."""
    same = equal(one, other)
    if pa.types.is_floating(one.type):
        both = pc.and_(pc.is_nan(one), pc.is_nan(other))
        same |= pc.fill_null(both, False).to_numpy(zero_copy_only=False)
    return same


def aggregate_kernel(node: AggregateBy, schema: Schema) -> Kernel:
    """The kernel of an aggregate: over records, or over the parts that a combine step made of them."""
    if node.combined == "columns":
        return (ColumnMergeKernel if all(map(in_columns, node.aggregates)) else MergeKernel)(node, schema)
    return {"": AggregateKernel, "pickled": MergePickledKernel}[node.combined](node, schema)
