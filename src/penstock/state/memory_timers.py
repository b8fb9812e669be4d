"""Timers in memory: what the local host and bounded runs use."""

from __future__ import annotations

import heapq
import pickle
from collections.abc import Iterator
from typing import Any

from penstock.graph.state.timers import CLOCKS, DueTimer, KeyHashes, Slot
from penstock.graph.times import FOREVER

_SPARE = 1_000
"""Stale entries that an index may hold beside as many as there are timers, before it is built anew."""


class MemoryTimers:
    """Timers in memory: a heap for each clock. What is moved or deleted stays in its heap until it comes up.

    Timers of one moment are ordered by the hash of their key, which the step computes; without one by the text of the key.
    """

    def __init__(self) -> None:
        self.key_hashes: KeyHashes | None = None
        self.timers: dict[Any, dict[Slot, int]] = {}
        self.live = dict.fromkeys(CLOCKS, 0)
        self.heaps: dict[str, list[tuple[int, int, Any, str]]] = {clock: [] for clock in CLOCKS}
        self.number = 0

    def set(self, key: Any, clock: str, time: int, tag: str = "") -> None:
        """Sets a timer, or moves it."""
        mine, slot = self.timers.setdefault(key, {}), Slot(clock, tag)
        before = mine.get(slot)
        if before == time:
            return
        mine[slot] = time
        self.live[clock] += before is None
        self._push(clock, time, key, tag)

    def _push(self, clock: str, time: int, key: Any, tag: str) -> None:
        heap = self.heaps[clock]
        self.number += 1
        heapq.heappush(heap, (time, self.number, key, tag))
        if len(heap) > 2 * self.live[clock] + _SPARE:
            self._rebuild(clock)

    def _rebuild(self, clock: str) -> None:
        """Drops what is stale from the heap of a clock."""
        there = ((t, key, s.tag) for key, mine in self.timers.items() for s, t in mine.items() if s.clock == clock)
        heap = [(time, number, key, tag) for number, (time, key, tag) in enumerate(there)]
        heapq.heapify(heap)
        self.heaps[clock] = heap

    def delete(self, key: Any, clock: str, tag: str = "") -> None:
        """Takes a timer back."""
        mine = self.timers.get(key)
        if mine is not None and mine.pop(Slot(clock, tag), None) is not None:
            self.live[clock] -= 1
            if not mine:
                del self.timers[key]

    def clear(self, key: Any) -> None:
        """Takes back all timers of a key."""
        for clock, tag in list(self.timers.get(key, ())):
            self.delete(key, clock, tag)

    def of(self, key: Any) -> dict[Slot, int]:
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
        """The earliest time of a timer that is set; entries before it that are stale go."""
        heap = self.heaps[clock]
        while heap:
            time, _, key, tag = heap[0]
            if self.timers.get(key, {}).get(Slot(clock, tag)) == time:
                return time
            heapq.heappop(heap)
        return None

    def _at(self, clock: str, time: int) -> list[DueTimer]:
        """The timers of one moment, in order."""
        heap, found = self.heaps[clock], list[DueTimer]()
        while heap and heap[0][0] == time:
            _, _, key, tag = heapq.heappop(heap)
            found.append(DueTimer(time, key, tag))
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
        for clock in CLOCKS:
            self.live[clock] = sum(slot.clock == clock for mine in self.timers.values() for slot in mine)
            self._rebuild(clock)
