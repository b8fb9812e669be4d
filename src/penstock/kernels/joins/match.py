"""Which rows of two sides belong together: same key hash, times within an interval. Vectorised, and never more work than pairs found.

The right side is sorted by key hash and time once; for each left row two binary searches find the run of right rows that match it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.graph.arrays import IntArray

_ROOM = 1 << 62
PIECE = 1 << 17
"""How many pairs are made at a time."""


@dataclass(frozen=True)
class Runs:
    """For each left row the run of right rows that match it: `order[first:stop]`."""

    order: IntArray
    first: IntArray
    stop: IntArray

    @property
    def many(self) -> IntArray:
        """How many right rows each left row matches."""
        return self.stop - self.first

    def pieces(self, piece: int = PIECE) -> Iterator[tuple[Any, Any]]:
        """The pairs, as numbers of left and right rows, so many at a time."""
        ends = np.cumsum(self.many)
        total = int(ends[-1]) if len(ends) else 0
        for start in range(0, total, piece):
            yield self._piece(ends, start, min(start + piece, total))

    def _piece(self, ends: IntArray, start: int, stop: int) -> tuple[Any, Any]:
        low, high = np.searchsorted(ends, [start, stop - 1], "right")
        mine = slice(int(low), int(high) + 1)
        begins = ends[mine] - self.many[mine]
        counts = np.minimum(ends[mine], stop) - np.maximum(begins, start)
        left = np.repeat(np.arange(mine.start, mine.stop), counts)
        right = np.arange(start, stop) + np.repeat(self.first[mine] - begins, counts)
        return left, self.order[right]


def runs(left: tuple[Any, Any], right: tuple[Any, Any], low: int, high: int) -> Runs:
    """The matches of rows, each side given as hashes and times (numpy arrays of int64).

    >>> found = runs((np.array([7, 8]), np.array([10, 10])), (np.array([8, 7, 7]), np.array([10, 12, 30])), -5, 5)
    >>> [(a.tolist(), b.tolist()) for a, b in found.pieces()]
    [([0, 1], [1, 0])]
    """
    (hashes, times), (others, moments) = left, right
    if not len(hashes) or not len(others):
        nothing = np.zeros(len(hashes), np.int64)
        return Runs(np.zeros(0, np.int64), nothing, nothing)
    order = np.lexsort((moments, others))
    others, moments = others[order], moments[order]
    fresh = np.concatenate([[True], others[1:] != others[:-1]])
    known = others[fresh]
    at = np.minimum(np.searchsorted(known, hashes), len(known) - 1)
    begin, end, span, ranks = _ranked(moments, times, low, high, len(known))
    line = (np.cumsum(fresh) - 1) * span + ranks
    first = np.searchsorted(line, at * span + begin)
    stop = np.searchsorted(line, at * span + end)
    return Runs(order, first, np.where(known[at] == hashes, stop, first))


def _ranked(moments: IntArray, times: IntArray, low: int, high: int, hashes: int) -> tuple[Any, Any, int, Any]:
    """The interval of each left row and the times of the right ones as small numbers, and how many of those there are."""
    least = int(moments.min())
    span = int(moments.max()) - least + 1
    if (hashes + 1) * span < _ROOM:
        begin = np.clip(times + (low - least), 0, span)
        return begin, np.maximum(np.clip(times + (high + 1 - least), 0, span), begin), span, moments - least
    distinct = np.unique(moments)
    begin = np.searchsorted(distinct, times + low, "left")
    end = np.searchsorted(distinct, times + high, "right")
    return begin, np.maximum(end, begin), len(distinct), np.searchsorted(distinct, moments)
