"""Timers in memory: what the local host and bounded runs use."""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Iterator
from typing import Any

from penstock.graph.state.timers import CLOCKS, DueTimer, KeyHashes, Slot
from penstock.graph.times import FOREVER

_SPARE = 1_000
"""Stale times that a heap may hold beside as many as there are moments, before it is built anew."""


class MemoryTimers:
    """Timers in memory, by moment: a heap of the moments for each clock, and at each moment what is set for it.

    A moment at which nothing is set any more stays in its heap until it comes up. Timers of one moment are ordered by the hash of their
    key, which the step computes; without one by the text of the key.
    """

    def __init__(self) -> None:
        self.key_hashes: KeyHashes | None = None
        self.timers: dict[Any, dict[Slot, int]] = {}
        self.moments: dict[str, dict[int, dict[tuple[Any, str], None]]] = {clock: {} for clock in CLOCKS}
        self.heaps: dict[str, list[int]] = {clock: [] for clock in CLOCKS}

    def set(self, key: object, clock: str, time: int, tag: str = "") -> None:
        """Sets a timer, or moves it."""
        mine, slot = self.timers.setdefault(key, {}), Slot(clock, tag)
        before = mine.get(slot)
        if before == time:
            return
        if before is not None:
            self._leave(clock, before, key, tag)
        mine[slot] = time
        self._enter(clock, time, key, tag)

    def _enter(self, clock: str, time: int, key: object, tag: str) -> None:
        moments, heap = self.moments[clock], self.heaps[clock]
        there = moments.get(time)
        if there is not None:
            there[key, tag] = None
            return
        moments[time] = {(key, tag): None}
        heapq.heappush(heap, time)
        if len(heap) > 2 * len(moments) + _SPARE:
            heap[:] = sorted(moments)

    def _leave(self, clock: str, time: int, key: object, tag: str) -> None:
        """Takes a timer out of its moment, if it is there: those of keys that were just loaded are sorted in later."""
        there = self.moments[clock].get(time, {})
        there.pop((key, tag), None)
        if not there:
            self.moments[clock].pop(time, None)

    def delete(self, key: object, clock: str, tag: str = "") -> None:
        """Takes a timer back."""
        mine = self.timers.get(key)
        time = None if mine is None else mine.pop(Slot(clock, tag), None)
        if mine is not None and time is not None:
            self._leave(clock, time, key, tag)
            if not mine:
                del self.timers[key]

    def clear(self, key: object) -> None:
        """Takes back all timers of a key."""
        for clock, tag in list(self.timers.get(key, ())):
            self.delete(key, clock, tag)

    def of(self, key: object) -> dict[Slot, int]:
        """The timers of a key."""
        return dict(self.timers.get(key, ()))

    def due(self, clock: str, until: int) -> Iterator[DueTimer]:
        """Takes what is due, in order."""
        while (first := self._first(clock)) is not None and first <= until:
            for timer in self._at(clock, first):
                if self._is_set(timer, clock):
                    self.delete(timer.key, clock, timer.tag)
                    yield timer

    def _first(self, clock: str) -> int | None:
        """The earliest moment for which something is set; those before it are stale and go."""
        heap, moments = self.heaps[clock], self.moments[clock]
        while heap and heap[0] not in moments:
            heapq.heappop(heap)
        return heap[0] if heap else None

    def _at(self, clock: str, time: int) -> list[DueTimer]:
        """The timers of one moment, in order."""
        found = [DueTimer(time, key, tag) for key, tag in self.moments[clock][time]]
        if len(found) < 2:
            return found
        hashes = self.hashes([due.key for due in found])
        order = sorted(range(len(found)), key=lambda at: (hashes[at], found[at].tag))
        return [found[at] for at in order]

    def hashes(self, keys: list[Any]) -> list[Any]:
        """The hashes of some keys; a host that has no hash orders them by their text."""
        return list(map(repr, keys)) if self.key_hashes is None else self.key_hashes(keys)

    def hash_with(self, key_hashes: KeyHashes) -> None:
        """Takes the hash of keys."""
        self.key_hashes = key_hashes

    def _is_set(self, timer: DueTimer, clock: str) -> bool:
        """Whether a timer is still set for its time: those before it may have moved it."""
        return self.timers.get(timer.key, {}).get(Slot(clock, timer.tag)) == timer.time

    def next(self, clock: str) -> int:
        """The earliest time."""
        first = self._first(clock)
        return FOREVER if first is None else first

    def snapshot(self) -> bytes:
        """All timers by key, pickled."""
        return pickle.dumps({key: [(*slot, time) for slot, time in mine.items()] for key, mine in self.timers.items()})

    def restore(self, snapshot: bytes) -> None:
        """Takes the timers of a snapshot."""
        kept = pickle.loads(snapshot)
        self.timers = {key: {Slot(clock, tag): time for clock, tag, time in mine} for key, mine in kept.items()}
        self.moments = {clock: {} for clock in CLOCKS}
        for key, mine in self.timers.items():
            for slot, time in mine.items():
                self.moments[slot.clock].setdefault(time, {})[key, slot.tag] = None
        self.heaps = {clock: sorted(moments) for clock, moments in self.moments.items()}
