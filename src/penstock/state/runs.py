"""Rows in time in memory, indexed: runs of rows in the order of time, each at least twice as large as the next.

A span of time is two binary searches and a slice in each run, rows of some key hashes are a binary search in the order of key hashes, which is made when it is first
asked for. A new run is merged with those before it that are not twice as large, so there are few, and each row is merged seldom.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import IntArray
from penstock.graph.state.table import key_hashes_of, times_of
from penstock.graph.times import FOREVER


@dataclass(frozen=True)
class Run:
    """Rows in the order of time; those of one time in the order in which they were added."""

    rows: pa.Table
    times: IntArray
    dropped: int = 0
    """Rows that are dropped and still in memory; never more than those that are left."""

    @classmethod
    def of(cls, rows: pa.Table) -> Run:
        """A run of rows in any order."""
        times = times_of(rows)
        if len(times) < 2 or bool((times[1:] >= times[:-1]).all()):
            return cls(rows.combine_chunks(), times)
        order = np.argsort(times, kind="stable")
        return cls(rows.take(pa.array(order)).combine_chunks(), times[order])

    @cached_property
    def by_hash(self) -> tuple[IntArray, IntArray]:
        """The key hashes in order, and the row of each."""
        hashes = key_hashes_of(self.rows)
        order = np.argsort(hashes, kind="stable")
        return hashes[order], order

    def between(self, begin: int, end: int) -> tuple[int, int]:
        """The first row of a span of time, and the one after its last."""
        first, last = np.searchsorted(self.times, (begin, end), "left").tolist()
        return first, max(first, last)

    def span(self, begin: int, end: int) -> pa.Table:
        """The rows of a span of time, without a copy."""
        first, last = self.between(begin, end)
        return self.rows.slice(first, last - first)

    def at(self, hashes: IntArray, begin: int, end: int) -> pa.Table:
        """The rows of some key hashes in a span of time."""
        mine, order = self.by_hash
        sought = np.unique(hashes)
        low, high = np.searchsorted(mine, sought, "left"), np.searchsorted(mine, sought, "right")
        found = np.sort(order[_spread(low, high - low)])
        first, last = self.between(begin, end)
        return self.rows.take(pa.array(found[(found >= first) & (found < last)]))

    def since(self, begin: int) -> Run | None:
        """The rows from a time on; None when there are none."""
        first = self.between(begin, FOREVER)[0]
        left = len(self) - first
        if first == 0 or left == 0:
            return self if left else None
        if self.dropped + first <= left:
            return Run(self.rows.slice(first), self.times[first:], self.dropped + first)
        return Run(self.rows.take(pa.array(np.arange(first, len(self)))).combine_chunks(), self.times[first:].copy())

    def __len__(self) -> int:
        return len(self.times)


def _spread(begin: IntArray, sizes: IntArray) -> IntArray:
    """The numbers `begin, begin + 1, ...` of each stretch, one after the other.

    >>> _spread(np.array([5, 9]), np.array([2, 3])).tolist()
    [5, 6, 9, 10, 11]
    """
    ends = np.cumsum(sizes)
    total = int(ends[-1]) if len(ends) else 0
    made: IntArray = np.arange(total) + np.repeat(begin - (ends - sizes), sizes)
    return made


class Runs:
    """All rows, in few runs, the oldest first."""

    def __init__(self, rows: pa.Table | None = None) -> None:
        self.runs: list[Run] = []
        if rows is not None:
            self.add(rows)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.runs)

    def add(self, rows: pa.Table) -> None:
        """Adds rows: together with the runs before that are less than twice as large they make a new one."""
        merged = [rows]
        while self.runs and len(self.runs[-1]) < 2 * sum(each.num_rows for each in merged):
            merged.insert(0, self.runs.pop().rows)
        if sum(each.num_rows for each in merged):
            self.runs.append(Run.of(pa.concat_tables(merged) if len(merged) > 1 else rows))

    def forget(self, before: int) -> None:
        """Drops the rows before a time."""
        self.runs = [left for left in (run.since(before) for run in self.runs) if left is not None]

    def first(self, begin: int) -> int:
        """The earliest time from `begin` on; FOREVER when there is none."""
        found = [(run.times, run.between(begin, FOREVER)[0]) for run in self.runs]
        return min((int(times[at]) for times, at in found if at < len(times)), default=FOREVER)
