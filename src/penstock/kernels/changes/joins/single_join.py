"""The join of tables that have one row for each key, in columns.

A key has at most one row on each side, so one pair. What it was before the batch is set against what it is after it, for all keys at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.graph import Graph
from penstock.graph.nodes.base import COUNT
from penstock.graph.nodes.changes import TableJoin, visible
from penstock.graph.state.arrow import equal
from penstock.kernels.base import Kernel, Out
from penstock.kernels.changes.columns import added_up, is_plain, signed_batch
from penstock.kernels.changes.joins.join import LEFT, RIGHT, TableJoinKernel, TableSide
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.keyed.column_kernel import ColumnKernel, GatheredChunks
from penstock.kernels.keyed.key_columns import NumberedKeys, numbered
from penstock.kernels.keyed.signed_change import signed_change
from penstock.kernels.records.chunk import Chunk

Columns = dict[str, pa.Array]


@dataclass(frozen=True)
class SideChange:
    """One side of the keys of a batch: which of them have a row before the batch and after it, and the fields of these rows."""

    was: BoolArray
    stands: BoolArray
    before: Columns
    after: Columns

    def kept(self) -> list[pa.Array]:
        """The columns of the state after the batch: the fields, then the count."""
        counts = pa.array(np.ones(len(self.stands), np.int64), mask=~self.stands)
        return [*self.after.values(), counts]


class SingleJoinKernel(ColumnKernel, TableJoinKernel):
    """Joins the changes of both sides in columns; those of tables with several rows for a key are left to rows."""

    @property
    def has_columns(self) -> bool:
        """Not where the state keeps no columns."""
        return self.state.is_columnar

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers the changes of a side; rows without a key match nothing."""
        keyless = self._keyless(chunk, source)
        if keyless is None:
            return super().take(chunk, source)
        return (
            *super().take(_filtered(chunk, ~keyless), source),
            *TableJoinKernel.take(self, _filtered(chunk, keyless), source),
        )

    def _keyless(self, chunk: Chunk, source: int) -> BoolArray | None:
        """Which rows have no key; None when all have one."""
        keys = [chunk.batch().column(name) for name in self.node.keys_of(source)]
        if not any(key.null_count for key in keys):
            return None
        found: BoolArray = np.logical_or.reduce([key.is_null().to_numpy(zero_copy_only=False) for key in keys])
        return found

    def by_columns(self, chunks: GatheredChunks) -> Out | None:
        """The change of the result; None where the changes are not those of tables with one row for each key.

        Equal rows are added up only where a key has several: it costs as much as all the rest.
        """
        left, right = (
            signed_batch((chunk for source, chunk in chunks if source == at), self.sides[at].schema)
            for at in (LEFT, RIGHT)
        )
        made = self._joined_columns(left, right)
        return made if made is not None else self._joined_columns(added_up(left), added_up(right))

    def _joined_columns(self, left: pa.RecordBatch, right: pa.RecordBatch) -> Out | None:
        keys = [
            pa.concat_arrays([left.column(one).cast(kept.type), right.column(other).cast(kept.type)])
            for one, other, kept in zip(self.node.keys, self.node.right_keys, self.key_columns, strict=True)
        ]
        found = numbered(keys, key_hashes(keys, left.num_rows + right.num_rows))
        return None if found is None else self._with_kept(left, right, keys, found)

    def _with_kept(
        self, left: pa.RecordBatch, right: pa.RecordBatch, keys: list[pa.Array], found: NumberedKeys
    ) -> Out | None:
        unique = pa.RecordBatch.from_arrays([key.take(pa.array(found.first)) for key in keys], list(self.node.keys))
        known = self.state.read_columns(unique, found.hashes)
        if known is None:
            return None
        (kept, _), width, cut = known, self.left.width, left.num_rows
        ours = _side(self.left, left, found, found.ids[:cut], kept.columns[:width])
        theirs = _side(self.right, right, found, found.ids[cut:], kept.columns[width:])
        if ours is None or theirs is None:
            return None
        values = pa.RecordBatch.from_arrays([*ours.kept(), *theirs.kept()], kept.schema.names)
        pairs = self._pairs(ours, theirs)
        self.state.put_columns(unique, found.hashes, values, ~(ours.stands | theirs.stands))
        return pairs

    def _pairs(self, left: SideChange, right: SideChange) -> Out:
        """The pairs that go, then those that come."""
        was, stands = (_shown(self.node.how, *sides) for sides in ((left.was, right.was), (left.stands, right.stands)))
        before = self._fields(left.before, right.before, left.was)
        after = self._fields(left.after, right.after, left.stands)
        return self.out_of(signed_change((), before, after, was, stands))

    def _fields(self, left: Columns, right: Columns, has_left: BoolArray) -> list[pa.Array]:
        """The fields of the result: of the left where it has a row, else of the right."""
        mask = pa.array(has_left)
        return [
            _either(mask, left[ours], right[theirs]) if ours and theirs else left[ours] if ours else right[theirs]
            for ours, theirs in self.node.columns
        ]


def table_join_kernel(node: TableJoin, graph: Graph) -> Kernel:
    """The kernel of a join of tables: by columns where each side has one row for a key, no condition, and rows that Arrow can compare."""
    schemas = [visible(graph.output(port).schema) for port in node.inputs]
    simple = node.counted and node.condition is None and node.ttl is None and bool(node.keys)
    return (SingleJoinKernel if simple and all(node.single) and all(map(is_plain, schemas)) else TableJoinKernel)(
        node, graph
    )


def _side(
    side: TableSide, change: pa.RecordBatch, keys: NumberedKeys, ids: IntArray, kept: list[pa.Array]
) -> SideChange | None:
    """A side before and after a change; None where the change does not fit one row for each key."""
    counts = change.column(COUNT).to_numpy()
    gone, come = keys.rows(counts < 0, ids), keys.rows(counts > 0, ids)
    if gone is None or come is None or (np.abs(counts) != 1).any():
        return None
    was: BoolArray = kept[-1].is_valid().to_numpy(zero_copy_only=False)
    leaves, comes = gone >= 0, come >= 0
    if (leaves & ~was).any() or (comes & was & ~leaves).any():
        return None
    before = dict(zip(side.schema.names, kept[:-1], strict=True))
    old = np.flatnonzero(leaves)
    if not all(
        equal(a.take(pa.array(old)), change.column(n).take(pa.array(gone[old]))).all() for n, a in before.items()
    ):
        return None
    stands = comes | (was & ~leaves)
    rows = pa.array(np.where(comes, len(keys) + come, np.arange(len(keys))), mask=~stands)
    after = {name: pa.concat_arrays([array, change.column(name)]).take(rows) for name, array in before.items()}
    return SideChange(was, stands, before, after)


def _shown(how: str, left: BoolArray, right: BoolArray) -> BoolArray:
    """Which keys have a row in the result, by the sides on which they have one."""
    shown = {"left": left, "right": right, "full": left | right, "anti": left & ~right}
    return shown.get(how, left & right)


def _either(mask: pa.Array, one: pa.Array, other: pa.Array) -> pa.Array:
    return pc.if_else(mask, one, other.cast(one.type))


def _filtered(chunk: Chunk, flags: BoolArray) -> Chunk:
    hashes = None if chunk.key_hashes is None else np.array(chunk.key_hashes)[flags].tolist()
    return Chunk(chunk.shape.schema, batch=chunk.batch().filter(pa.array(flags)), key_hashes=hashes)
