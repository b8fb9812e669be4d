"""Rows of one side of a join, and how those of two sides find each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.state.table import key_hashes_of, times_of
from penstock.kernels.joins.match import Runs, runs


@dataclass(frozen=True)
class Rows:
    """Records of a side, each with its key hash and its time; `keys` names their key fields."""

    batch: pa.RecordBatch
    keys: tuple[str, ...]
    hashes: Any
    times: Any

    @classmethod
    def of(cls, rows: pa.Table | pa.RecordBatch | None, keys: tuple[str, ...]) -> Rows | None:
        """The rows of a table or batch that has `__key_hash` and `__time`; None of nothing."""
        if rows is None or not rows.num_rows:
            return None
        whole = one_batch(rows)
        return cls(whole, keys, key_hashes_of(whole), times_of(whole))

    def __len__(self) -> int:
        return len(self.hashes)

    def take(self, at: IntArray) -> Rows:
        """Some of the rows, by number."""
        return Rows(self.batch.take(pa.array(at)), self.keys, self.hashes[at], self.times[at])

    def where(self, flags: BoolArray) -> Rows | None:
        """The rows whose flag is true; None when there are none."""
        if flags.all():
            return self if len(self) else None
        return self.take(np.flatnonzero(flags)) if flags.any() else None


def one_batch(rows: pa.Table | pa.RecordBatch) -> pa.RecordBatch:
    """Rows as a single batch."""
    if isinstance(rows, pa.RecordBatch):
        return rows
    whole = rows.combine_chunks()
    arrays = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in whole.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=whole.schema)


def together(*parts: Rows | None) -> Rows | None:
    """Rows one after the other; None of nothing."""
    there = [p for p in parts if p is not None]
    if len(there) < 2:
        return there[0] if there else None
    names = there[0].batch.schema.names
    tables = [pa.Table.from_batches([p.batch]).select(names) for p in there]
    batch = one_batch(pa.concat_tables(tables, promote_options="default"))
    hashes, times = (np.concatenate(each) for each in zip(*((p.hashes, p.times) for p in there), strict=True))
    return Rows(batch, there[0].keys, hashes, times)


def found(left: Rows, right: Rows, low: int, high: int) -> Runs:
    """What each left row may match on the right, as far as key hash and time tell."""
    return runs((left.hashes, left.times), (right.hashes, right.times), low, high)


def equal(left: Rows, at: IntArray, right: Rows, other: IntArray) -> BoolArray:
    """Which pairs have equal keys: different keys may share a hash, though they hardly ever do."""
    flags = np.ones(len(at), bool)
    mine, theirs = pa.array(at), pa.array(other)
    for one, two in zip(left.keys, right.keys, strict=True):
        same = pc.equal(left.batch.column(one).take(mine), right.batch.column(two).take(theirs))
        flags &= same.to_numpy(zero_copy_only=False).astype(bool)
    return flags


def pairs(left: Rows, right: Rows, low: int, high: int) -> Iterator[tuple[Any, Any]]:
    """The matching rows of two sides, by number, some at a time."""
    for at, other in found(left, right, low, high).pieces():
        flags = equal(left, at, right, other)
        yield (at, other) if flags.all() else (at[flags], other[flags])


def matched(left: Rows, right: Rows | None, low: int, high: int) -> BoolArray:
    """Which left rows match any row of the right."""
    if right is None:
        return np.zeros(len(left), bool)
    matches = found(left, right, low, high)
    flags = matches.many > 0
    at = np.flatnonzero(flags)
    flags[at] = equal(left, at, right, matches.order[matches.first[at]])
    for row in at[~flags[at]]:
        others = matches.order[matches.first[row] : matches.stop[row]]
        flags[row] = bool(equal(left, np.full(len(others), row), right, others).any())
    return flags
