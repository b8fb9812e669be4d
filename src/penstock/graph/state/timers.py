"""Timers: when the keys of a step have work although no record arrives, indexed by time.

A timer belongs to a key, runs by a clock (event time or processing time) and may have a tag; setting it again moves it. What is
due is taken in the order of time, then of key hash, then of tag, which is the same on every host. The cost is that of what
is due, not of what is kept. State engines put what they keep behind `Timers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

EVENT, PROCESSING = "event", "processing"
CLOCKS = (EVENT, PROCESSING)
STEP = ()
"""The key of a timer that belongs to a step as a whole."""


class Slot(NamedTuple):
    """Which timer of a key: its clock, and its tag."""

    clock: str
    tag: str = ""


@dataclass(frozen=True, slots=True)
class DueTimer:
    """A timer whose time has come."""

    time: int
    key: Any
    tag: str = ""


KeyHashes = Callable[[list[Any]], list[int]]
"""From keys to their hashes."""


class Timers(Protocol):
    """The timers of one step, as far as the task at hand owns its keys.

    >>> from penstock.graph.times import FOREVER
    >>> from penstock.state.memory_timers import MemoryTimers
    >>> timers = MemoryTimers()
    >>> timers.set("a", EVENT, 20)
    >>> timers.set("b", EVENT, 10)
    >>> timers.set("a", EVENT, 5, "reminder")
    >>> timers.next(EVENT)
    5
    >>> [(due.time, due.key, due.tag) for due in timers.due(EVENT, until=10)]
    [(5, 'a', 'reminder'), (10, 'b', '')]
    >>> timers.next(EVENT), timers.next(PROCESSING) == FOREVER
    (20, True)
    """

    def hash_with(self, key_hashes: KeyHashes) -> None:
        """Says how keys are hashed; an engine that knows the hashes of its keys does not ask."""

    def set(self, key: object, clock: str, time: int, tag: str = "") -> None:
        """Sets a timer; one of the same key, clock and tag is moved."""

    def delete(self, key: object, clock: str, tag: str = "") -> None:
        """Takes a timer back; nothing happens when there is none."""

    def clear(self, key: object) -> None:
        """Takes back all timers of a key."""

    def of(self, key: object) -> dict[Slot, int]:
        """The timers of a key, which must have been prefetched in the step's state."""

    def due(self, clock: str, until: int) -> Iterator[DueTimer]:
        """Takes the timers up to `until`, in order. Those that are set on the way are among them if they are due."""

    def next(self, clock: str) -> int:
        """The earliest time for which a timer is set; FOREVER when there is none before the end of the input."""

    def snapshot(self) -> bytes:
        """What is kept at a barrier, as bytes from which `restore` goes on."""

    def restore(self, snapshot: bytes) -> None:
        """Replaces all that is kept by what a snapshot holds."""
