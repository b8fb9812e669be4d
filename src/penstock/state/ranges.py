"""Ranges of slots: which keys a task owns, and for which a file counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.state.key_groups import HASH_BITS, SLOTS, owned_slots, slot_hash
from penstock.graph.times import NEVER

Span = tuple[int, int]
"""A first slot, and the one after the last."""


@dataclass(frozen=True, slots=True)
class KeyRanges:
    """Some of the slots, as spans: in order, apart from each other, none of them empty.

    >>> some = KeyRanges(((0, 10), (20, 30)))
    >>> some & KeyRanges(((5, 25),))
    KeyRanges(spans=((5, 10), (20, 25)))
    >>> some - KeyRanges(((5, 25),))
    KeyRanges(spans=((0, 5), (25, 30)))
    """

    spans: tuple[Span, ...]

    @classmethod
    def of(cls, spans: Iterable[Iterable[int]]) -> KeyRanges:
        """The ranges of spans in any order, which may touch and overlap.

        >>> KeyRanges.of([(5, 8), (0, 5), (9, 9)])
        KeyRanges(spans=((0, 8),))
        """
        made: list[Span] = []
        for begin, end in sorted((b, e) for b, e in spans if b < e):
            if made and begin <= made[-1][1]:
                made[-1] = (made[-1][0], max(end, made[-1][1]))
            else:
                made.append((begin, end))
        return cls(tuple(made))

    def __bool__(self) -> bool:
        return bool(self.spans)

    def __and__(self, other: KeyRanges) -> KeyRanges:
        if self.spans == other.spans:
            return self
        return KeyRanges(tuple(_common(self.spans, other.spans)))

    def __sub__(self, other: KeyRanges) -> KeyRanges:
        return self & KeyRanges(tuple(_gaps(other.spans)))

    def meets(self, other: KeyRanges) -> bool:
        """Whether they have a slot in common."""
        return any(True for _ in _common(self.spans, other.spans))

    def covers(self, other: KeyRanges) -> bool:
        """Whether all slots of the others are among these."""
        return self.spans == other.spans or (self & other).spans == other.spans

    def mask(self, hashes: IntArray) -> BoolArray:
        """Which key hashes have one of these slots."""
        if self == ALL:
            return np.ones(len(hashes), bool)
        edges = np.array(self.spans, np.int64).reshape(-1) - SLOTS // 2
        inside: BoolArray = np.searchsorted(edges, hashes >> HASH_BITS, "right") % 2 == 1
        return inside

    def rows(self, hashes: IntArray) -> Iterator[tuple[int, int]]:
        """The rows that have these slots, of key hashes in order: the first of each stretch, and the one after its last."""
        for begin, end in self.spans:
            first = int(np.searchsorted(hashes, slot_hash(begin), "left"))
            last = len(hashes) if end == SLOTS else int(np.searchsorted(hashes, slot_hash(end), "left"))
            if first < last:
                yield first, last

    def cut(self, batch: pa.RecordBatch, column: str) -> pa.RecordBatch:
        """The rows of a batch that have these slots, by its column of key hashes in order; a copy only where they are several stretches."""
        parts = [batch.slice(a, b - a) for a, b in self.rows(batch.column(column).to_numpy(zero_copy_only=False))]
        if len(parts) > 1:
            return pa.concat_batches(parts)
        return parts[0] if parts else batch.slice(0, 0)


def _common(one: tuple[Span, ...], other: tuple[Span, ...]) -> Iterator[Span]:
    at, to = 0, 0
    while at < len(one) and to < len(other):
        begin, end = max(one[at][0], other[to][0]), min(one[at][1], other[to][1])
        if begin < end:
            yield begin, end
        if one[at][1] < other[to][1]:
            at += 1
        else:
            to += 1


def _gaps(spans: tuple[Span, ...]) -> Iterator[Span]:
    """The slots between some spans, and before and after them."""
    edges = [0, *(edge for span in spans for edge in span), SLOTS]
    return ((begin, end) for begin, end in zip(edges[::2], edges[1::2], strict=True) if begin < end)


ALL = KeyRanges(((0, SLOTS),))
"""All slots."""


def ranges_of(task: int, tasks: int, groups: int) -> KeyRanges:
    """What a task owns."""
    return KeyRanges((owned_slots(task, tasks, groups),))


def numbered_ranges(task: int, tasks: int, before: Iterable[KeyRanges]) -> KeyRanges:
    """What a task owns of a step without a key, whose slots are the numbers of tasks: its own, and those of former tasks that it takes over.

    >>> numbered_ranges(1, 2, [KeyRanges(((4, 5),))])
    KeyRanges(spans=((1, 2), (3, 4)))
    """
    most = max([tasks, *(ranges.spans[-1][1] for ranges in before if ranges)])
    return KeyRanges.of((number, number + 1) for number in range(task, most, tasks))


class Horizons:
    """Before which time rows are forgotten: one time for each stretch of the slots that a task owns."""

    def __init__(self, mine: KeyRanges, known: Iterable[tuple[KeyRanges, int]]) -> None:
        given = [(ranges & mine, time) for ranges, time in known if time > NEVER]
        edges = {edge for ranges, _ in [(mine, NEVER), *given] for span in ranges.spans for edge in span}
        pieces = [KeyRanges((span,)) for span in pairwise(sorted(edges)) if mine.covers(KeyRanges((span,)))]
        self._starts = np.array([piece.spans[0][0] for piece in pieces], np.int64) - SLOTS // 2
        self._times = np.array(
            [max([NEVER, *(time for ranges, time in given if ranges.covers(piece))]) for piece in pieces], np.int64
        )

    @property
    def lowest(self) -> int:
        """Before which the rows of all keys are forgotten."""
        return int(self._times.min())

    @property
    def highest(self) -> int:
        """Before which the rows of some keys are forgotten."""
        return int(self._times.max())

    def move(self, time: int) -> None:
        """Forgets what is before a time."""
        self._times = np.maximum(self._times, time)

    def of(self, hashes: IntArray) -> IntArray:
        """The horizon of each key hash."""
        if len(self._times) == 1:
            return np.broadcast_to(self._times, hashes.shape)
        return self._times[np.searchsorted(self._starts, hashes >> HASH_BITS, "right") - 1]
