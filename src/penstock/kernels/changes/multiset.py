"""A sorted multiset: what aggregates that cannot subtract keep of each group."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

Rank = Callable[[Any], Any]


class SortedMultiset:
    """Values in order, each with its count, in two parallel lists, which is also how they are kept.

    >>> made = SortedMultiset([], [], rank=lambda v: v)
    >>> for value, count in [(3, 1), (1, 2), (3, -1), (2, 1)]:
    ...     made.add(value, count)
    >>> made.values, made.counts
    ([1, 2], [2, 1])
    """

    __slots__ = ("counts", "rank", "values")

    def __init__(self, values: list[Any], counts: list[int], rank: Rank) -> None:
        self.values, self.counts, self.rank = values, counts, rank

    def add(self, value: object, count: int) -> None:
        """Adds a value so many times; below zero takes it back."""
        by = self.rank(value)
        at = bisect_left(self.values, by, key=self.rank)
        if at == len(self.values) or self.rank(self.values[at]) != by:
            self.values.insert(at, value)
            self.counts.insert(at, count)
            return
        self.counts[at] += count
        if not self.counts[at]:
            del self.values[at]
            del self.counts[at]

    def each(self) -> Iterator[Any]:
        """Every value, as often as it is there, in order."""
        for value, count in zip(self.values, self.counts, strict=True):
            for _ in range(count):
                yield value

    def is_negative(self) -> bool:
        """Whether there is less than none of a value."""
        return any(count < 0 for count in self.counts)
