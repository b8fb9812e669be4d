"""Timers on disk, as a task sees them: those of the keys at hand in memory, the others in the files of the step's state.

The timers of a key stand in the row of its value: the earliest of each clock in a typed column that has an index by time, and all
of them as JSON where some have tags. So they belong to key groups, are merged, moved and saved with the values, and what is due is found
without a look at what is not.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.graph.state.timers import CLOCKS, EVENT, PROCESSING, DueTimer, Slot
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.state.columns import VALUE
from penstock.state.memory_timers import MemoryTimers

if TYPE_CHECKING:
    from penstock.state.values import FileState

COLUMNS = {EVENT: f"{VALUE}@event", PROCESSING: f"{VALUE}@clock"}
"""The column of each clock: the earliest time for which a key waits."""
ALL = f"{VALUE}@timers"
"""The timers of a key as JSON; null where it has none with a tag."""
_LOOK, _ROUNDS = 64, 4
"""How many keys of a file are looked at when the next timer is sought, and how often that number is doubled before a time that
may be stale is good enough: it costs a batch without work."""


class FileTimers(MemoryTimers):
    """The timers of a task. `times` says up to where they have fired."""

    def __init__(self, state: FileState, times: Times) -> None:
        super().__init__()
        self.state = state
        self.after = {EVENT: times.previous, PROCESSING: times.before}
        self.loaded: list[Any] = []
        self.in_files: set[Any] = set()
        """The keys at hand whose timers stand in a file, too."""

    def reset(self) -> None:
        """The state goes on from other files: nothing is known of what has fired."""
        self.timers, self.loaded, self.in_files = {}, [], set()
        self.moments, self.heaps = {clock: {} for clock in CLOCKS}, {clock: [] for clock in CLOCKS}
        self.after = dict.fromkeys(CLOCKS, NEVER)

    def snapshot(self) -> bytes:
        """Nothing: the files of the state hold the timers."""
        return b""

    def restore(self, snapshot: bytes) -> None:
        """Nothing is to be done, as the state restores its files."""

    def load(
        self, keys: list[Any], event: pa.Array | None, processing: pa.Array | None, tagged: pa.Array | None
    ) -> None:
        """Takes in the timers of keys as their rows have them; each is an Arrow array, or None where the file has no such column."""
        rows = len(keys)
        columns = [[None] * rows if c is None else c.to_pylist() for c in (event, processing, tagged)]
        for key, first, clock, text in zip(keys, *columns, strict=True):
            mine = _decoded(first, clock, text)
            if mine:
                self.timers[key] = mine
                self.loaded.append(key)
                self.in_files.add(key)

    def set(self, key: object, clock: str, time: int, tag: str = "") -> None:
        """Sets a timer, or moves it; its key is written."""
        super().set(key, clock, time, tag)
        self.state.touched[key] = None

    def delete(self, key: object, clock: str, tag: str = "") -> None:
        """Takes a timer back; its key is written."""
        super().delete(key, clock, tag)
        self.state.touched[key] = None

    def due(self, clock: str, until: int) -> Iterator[DueTimer]:
        """Takes what is due, in order."""
        for index, file in self.state.indexes(COLUMNS[clock]):
            self.state.bring(file, index.between(self.after[clock], until))
        self.after[clock] = max(self.after[clock], until)
        yield from super().due(clock, until)

    def _first(self, clock: str) -> int | None:
        self._sort_in()
        return super()._first(clock)

    def _sort_in(self) -> None:
        """Puts the timers of the keys that were loaded among the moments."""
        loaded, self.loaded = self.loaded, []
        for key in loaded:
            for slot, time in self.timers.get(key, {}).items():
                self._enter(slot.clock, time, key, slot.tag)

    def next(self, clock: str) -> int:
        """The earliest time. Where the earliest in a file belong to keys that wait for another time by now, it may be too early."""
        skip, most = 0, _LOOK
        for _ in range(_ROUNDS):
            beyond = self._look(clock, skip, most)
            first = super().next(clock)
            if first <= beyond:
                return first
            skip, most = skip + most, most * 2
        return min(first, beyond)

    def _look(self, clock: str, skip: int, most: int) -> int:
        """Prefetches the next keys of each file; returns the earliest time of a key that was not looked at."""
        beyond = FOREVER
        for index, file in self.state.indexes(COLUMNS[clock]):
            rows, next_time = index.some_after(self.after[clock], skip, most)
            self.state.bring(file, rows)
            beyond = min(beyond, next_time)
        return beyond

    def count(self) -> int:
        """How many timers wait. Those in files that newer ones replace count until the files are merged."""
        new = sum(len(mine) for key, mine in self.timers.items() if key not in self.in_files)
        return new + sum(
            index.many_after(self.after[clock]) for clock in CLOCKS for index, _ in self.state.indexes(COLUMNS[clock])
        )

    def hashes(self, keys: list[Any]) -> list[int]:
        """The hashes that the host has computed."""
        return [self.state.key_hashes[key] for key in keys]

    def columns(self, keys: list[Any]) -> list[tuple[str, Any]]:
        """The columns that keep the timers of these keys."""
        mine = [self.timers.get(key, {}) for key in keys]
        made = [(COLUMNS[clock], pa.array([_earliest(m, clock) for m in mine], pa.int64())) for clock in CLOCKS]
        return [*made, (ALL, pa.array([_text(m) for m in mine], pa.large_string()))]


def _earliest(timers: dict[Slot, int], clock: str) -> int | None:
    return min((time for slot, time in timers.items() if slot.clock == clock), default=None)


def _text(timers: dict[Slot, int]) -> str | None:
    """The timers as JSON; none where each is the only one of its clock and has no tag.

    >>> _text({Slot("event", ""): 5}), _text({Slot("event", "a"): 5, Slot("event"): 7})
    (None, '[["event","a",5],["event","",7]]')
    """
    if not any(slot.tag for slot in timers):
        return None
    return f"[{','.join(f'{_head(*slot)}{time}]' for slot, time in timers.items())}]"


@lru_cache(maxsize=10_000)
def _head(clock: str, tag: str) -> str:
    return f"[{json.dumps(clock)},{json.dumps(tag)},"


def _decoded(event: int | None, processing: int | None, text: str | None) -> dict[Slot, int]:
    if text is not None:
        return {Slot(clock, tag): time for clock, tag, time in json.loads(text)}
    there = ((EVENT, event), (PROCESSING, processing))
    return {Slot(clock): time for clock, time in there if time is not None}
