"""A side of a join: the records of the batch at hand, and those that are kept."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.nodes.join import StreamJoin
from penstock.graph.state.table import KEY_HASH, TIME, TimeTable, some, times_of
from penstock.graph.times import FOREVER, NEVER
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.joins.rows import Rows, one_batch
from penstock.kernels.records.chunk import Chunk


def moved(time: int, by: int) -> int:
    """A time shifted; the beginning and the end of all time stay where they are."""
    return time if time in (NEVER, FOREVER) else time + by


def whole(batch: pa.RecordBatch, keys: tuple[str, ...]) -> BoolArray:
    """Which records have all of their key."""
    flags = np.ones(batch.num_rows, bool)
    for key in keys:
        flags &= batch.column(key).is_valid().to_numpy(zero_copy_only=False)
    return flags


@dataclass(frozen=True)
class Fresh:
    """The new records of a side: those that take part, those without a key, which match nothing, and those too late."""

    rows: Rows | None = None
    lone: Rows | None = None
    late: pa.RecordBatch | None = None


class Side:
    """The left or the right of a join."""

    def __init__(self, node: StreamJoin, side: int, table: TimeTable) -> None:
        self.keys, self.timed = node.keys_of(side), node.timed_by[side]
        self.table = table
        self.waiting: list[tuple[pa.RecordBatch, list[int] | None]] = []

    def gather(self, chunk: Chunk) -> None:
        """Takes records in; they are looked at many at a time."""
        if len(chunk):
            self.waiting.append((chunk.batch(), chunk.key_hashes))

    def fresh(self, late: int) -> Fresh:
        """What was gathered, sorted out; records before `late` are late, and so are those without a time."""
        if not self.waiting:
            return Fresh()
        waiting, self.waiting = self.waiting, []
        batch = one_batch(pa.Table.from_batches([b for b, _ in waiting]))
        rows = self._rows(batch, self._key_hashes(batch, [p for _, p in waiting]))
        punctual, keyed = (rows.times >= late) & (rows.times > NEVER), whole(batch, self.keys)
        return Fresh(rows.where(punctual & keyed), rows.where(punctual & ~keyed), some(batch, ~punctual))

    def _rows(self, batch: pa.RecordBatch, hashes: IntArray) -> Rows:
        moments = batch.column(self.timed.column).cast(pa.timestamp("us")).cast(pa.int64())
        times = pc.fill_null(pc.add(moments, self.timed.shift), NEVER)
        arrays = [*batch.columns, pa.array(hashes, pa.int64()), times]
        named = pa.RecordBatch.from_arrays(arrays, [*batch.schema.names, KEY_HASH, TIME])
        return Rows(named, self.keys, hashes, times_of(named))

    def _key_hashes(self, batch: pa.RecordBatch, given: list[list[int] | None]) -> IntArray:
        """The key hashes the host computed; a host without any gets its own."""
        if all(p is not None for p in given):
            return np.concatenate([np.asarray(p, np.int64) for p in given])
        return key_hashes([batch.column(k) for k in self.keys], batch.num_rows)

    def keep(self, rows: Rows | None, horizon: int) -> None:
        """Keeps what is not before the horizon, and forgets what is."""
        if rows is not None:
            kept = rows.where(rows.times >= horizon)
            if kept is not None:
                self.table.add(kept.batch)
        if horizon > NEVER:
            self.table.forget(horizon)

    def candidates(self, other: Rows | None, low: int, high: int) -> Rows | None:
        """The kept rows that may match rows of the other side: `low` to `high` after them."""
        if other is None:
            return None
        begin, end = int(other.times.min()) + low, int(other.times.max()) + high + 1
        return Rows.of(self.table.at(np.unique(other.hashes), begin, end), self.keys)

    def span(self, begin: int, end: int) -> Rows | None:
        """The kept rows of a span of time."""
        return Rows.of(self.table.span(begin, end), self.keys) if begin < end else None

    def first(self, begin: int) -> int:
        """The earliest time at or after `begin` of the kept rows."""
        return self.table.first(begin)
