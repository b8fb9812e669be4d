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
from penstock.graph.nodes import AggregateBy, AggregateStep
from penstock.graph.schema import Schema
from penstock.kernels.base import Kernel, Out
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.keyed.column_kernel import ColumnKernel, GatheredChunks
from penstock.kernels.keyed.key_columns import NumberedKeys, numbered
from penstock.kernels.keyed.keyed import AggregateKernel, MergeKernel, MergePickledKernel
from penstock.kernels.keyed.signed_change import signed_change

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


class ColumnMergeKernel(ColumnKernel, MergeKernel):
    """Puts the parts together in columns; sums that overflow are left to rows."""

    def __init__(self, node: AggregateStep, schema: Schema) -> None:
        super().__init__(node, schema)
        self.merges = [_MERGES[part.merge] for a in node.aggregates for part in a.recipe.parts]

    @property
    def has_columns(self) -> bool:
        """Not where single records may fail, which are folded one by one, nor where keys have a time to live."""
        return not self.guarded and self.state.is_columnar and self.ttl is None

    def by_columns(self, chunks: GatheredChunks) -> Out | None:
        """The totals; None where a key comes twice, or a sum or a result is too large for its type."""
        table = pa.Table.from_batches([chunk.batch() for _, chunk in chunks]).combine_chunks()
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

    def _merged(self, rows: pa.Table, found: NumberedKeys) -> Out | None:
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
        out = self.out_of(self._rows(keys, before, after, there))
        self.state.put_columns(keys, found.hashes, values, np.zeros(len(found), bool))
        return out

    def _finished(self, parts: list[pa.Array]) -> list[pa.Array]:
        """The results that parts stand for."""
        made, at = [], 0
        for aggregate, width in self.widths:
            made.append(_FINISH[aggregate.recipe.finish](*parts[at : at + width]))
            at += width
        return made

    def _rows(
        self, keys: pa.RecordBatch, before: list[pa.Array], after: list[pa.Array], there: BoolArray
    ) -> list[pa.Array]:
        """The columns of the result: the totals, or where signed rows are asked for what changed of them."""
        if not self.is_signed:
            return [*keys.columns, *self._finished(after)]
        stands = np.ones(len(there), bool)
        return signed_change(keys.columns, self._finished(before), self._finished(after), there, stands)


def _array(table: pa.Table, name: str) -> pa.Array:
    return table.column(name).combine_chunks()


def _together(merge: Merge, one: pa.Array, other: pa.Array) -> pa.Array:
    """What two parts give; null is nothing."""
    if pa.types.is_timestamp(one.type):
        return _together(merge, one.cast(pa.int64()), other.cast(pa.int64())).cast(one.type)
    return pc.coalesce(merge(one, other), one, other)


def aggregate_kernel(node: AggregateBy, schema: Schema) -> Kernel:
    """The kernel of an aggregate: over records, or over the parts that a combine step made of them."""
    if node.combined == "columns":
        return (ColumnMergeKernel if all(map(in_columns, node.aggregates)) else MergeKernel)(node, schema)
    return {"": AggregateKernel, "pickled": MergePickledKernel}[node.combined](node, schema)
