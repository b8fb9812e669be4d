"""The order in which runs are looked at: by their first event, and among equals as they began, branched or were found.

Which of several matches with the same first event is emitted first decides what an after-match strategy drops. The order is a total one that
the order of what is kept says, so it does not depend on where a batch ends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import TypeAlias

Link: TypeAlias = "tuple[int, int, Link | None]"
"""An event that a run has taken: the stage, the number of the event, and what was taken before it. Runs share what they have in common."""
Last: TypeAlias = "Link | None"
"""What a run has taken last; None where it has taken nothing."""
Run: TypeAlias = "tuple[int, int, Last]"
"""A run: its state, the number of its first event, and what it has taken last."""
LAST = 1 << 62
"""The first event of a run that has none yet."""


class RunQueue:
    """Runs by their first event; those with the same one in the order in which they began or branched."""

    __slots__ = ("edge", "ended", "items")

    def __init__(self, items: Iterable[Run] = ()) -> None:
        self.items: deque[Run] = deque(sorted(items, key=_first))
        self.ended: set[int] = set()
        self.edge = -1

    def __iter__(self) -> Iterator[Run]:
        return (run for run in self.items if id(run) not in self.ended)

    def __len__(self) -> int:
        return len(self.items) - len(self.ended)

    def first(self) -> int:
        """The first event of the first run; one after all others where there is none."""
        self._skip_ended()
        return self.items[0][1] if self.items else LAST + 1

    def pop(self) -> Run:
        """Takes the first run."""
        self._skip_ended()
        return self.items.popleft()

    def end(self, run: Run) -> bool:
        """Takes a run out; whether it was still there."""
        if run[1] <= self.edge:
            return False
        self.ended.add(id(run))
        return True

    def drop(self, edge: int) -> int:
        """Drops the runs that began up to an event; returns how many."""
        before = len(self)
        self.edge = max(self.edge, edge)
        while self.first() <= edge:
            self.items.popleft()
        return before - len(self)

    def _skip_ended(self) -> None:
        while self.ended and self.items and id(self.items[0]) in self.ended:
            self.ended.remove(id(self.items.popleft()))


class MatchQueue:
    """Matches that wait for runs which began before them, by their first event; those with the same one in the order in which they were found."""

    __slots__ = ("added", "heap")

    def __init__(self, items: Iterable[Run] = ()) -> None:
        self.heap: list[tuple[int, int, Run]] = []
        self.added = 0
        for run in items:
            self.add(run)

    def __iter__(self) -> Iterator[Run]:
        return (run for _, _, run in sorted(self.heap))

    def __len__(self) -> int:
        return len(self.heap)

    def add(self, run: Run) -> None:
        """Puts in a match that was found."""
        heappush(self.heap, (run[1], self.added, run))
        self.added += 1

    def first(self) -> int:
        """The first event of the first match."""
        return self.heap[0][0]

    def pop(self) -> Run:
        """Takes the first match."""
        return heappop(self.heap)[2]

    def drop(self, edge: int) -> int:
        """Drops the matches that began up to an event; returns how many."""
        before = len(self.heap)
        while self.heap and self.heap[0][0] <= edge:
            heappop(self.heap)
        return before - len(self.heap)


def _first(run: Run) -> int:
    return run[1]
