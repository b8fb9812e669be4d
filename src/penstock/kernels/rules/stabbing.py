"""Which intervals contain a position, for many positions at once: a segment tree whose levels are arrays.

An interval is stored at the few nodes that make it up; a position is in those of its leaf and of the nodes above it. So what is looked at is what
is found, however many intervals there are.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from penstock.kernels.rules.axis import Numbers

Pairs = tuple[Numbers, Numbers]
"""Records and conditions that may belong together, by number."""


@dataclass(frozen=True)
class _Level:
    """The intervals at the nodes of one level: those of node n are `ids[starts[n]:starts[n + 1]]`."""

    shift: int
    starts: Numbers
    ids: Numbers

    def pairs(self, rows: Numbers, positions: Numbers) -> Pairs:
        """Each row with the intervals at its node."""
        nodes = positions >> self.shift
        first = self.starts[nodes]
        counts = self.starts[nodes + 1] - first
        ends = np.cumsum(counts)
        many = int(ends[-1]) if len(ends) else 0
        within = np.arange(many) - np.repeat(ends - counts, counts)
        return np.repeat(rows, counts), self.ids[np.repeat(first, counts) + within]


class SegmentTree:
    """Intervals of positions, both ends included.

    Args:
        last: the greatest position.
        intervals: first position, last position, and the number that is found for it.

    >>> tree = SegmentTree(6, [(0, 3, 7), (2, 2, 8), (5, 6, 9)])
    >>> rows, found = tree.pairs(np.array([0, 1, 2]), np.array([2, 4, 6]))
    >>> sorted(zip(rows.tolist(), found.tolist()))
    [(0, 7), (0, 8), (2, 9)]
    """

    def __init__(self, last: int, intervals: Iterable[tuple[int, int, int]]) -> None:
        self.size = 1 << max(last, 1).bit_length()
        stored: dict[int, list[tuple[int, int]]] = {}
        for first, end, number in intervals:
            for level, node in _nodes(first, end):
                stored.setdefault(level, []).append((node, number))
        self.levels = [self._level(level, entries) for level, entries in sorted(stored.items())]

    def _level(self, shift: int, entries: list[tuple[int, int]]) -> _Level:
        given = np.array(entries, np.int64)
        given = given[np.argsort(given[:, 0], kind="stable")]
        nodes = np.arange((self.size >> shift) + 1)
        return _Level(shift, np.searchsorted(given[:, 0], nodes).astype(np.int64), given[:, 1].copy())

    def pairs(self, rows: Numbers, positions: Numbers) -> Pairs:
        """Each row with the intervals that contain its position."""
        found = [level.pairs(rows, positions) for level in self.levels]
        return np.concatenate([f[0] for f in found]), np.concatenate([f[1] for f in found])


def _nodes(first: int, last: int) -> Iterable[tuple[int, int]]:
    """The nodes that make up an interval: the level of each, from the leaves up, and its number in it."""
    low, high, level = first, last + 1, 0
    while low < high:
        if low & 1:
            yield level, low
            low += 1
        if high & 1:
            high -= 1
            yield level, high
        low, high, level = low >> 1, high >> 1, level + 1
