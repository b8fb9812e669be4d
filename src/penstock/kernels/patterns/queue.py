"""The order in which runs are looked at: by their first event, and among equals as a binary heap has them.

Which of several matches with the same first event is emitted first decides what an after-match strategy drops. The order here is that of
the heap which Flink keeps runs in, so that the same ones are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
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
    """A binary heap of runs by their first event."""

    __slots__ = ("items",)

    def __init__(self, items: Iterable[Run] = ()) -> None:
        self.items: list[Run] = list(items)

    def __iter__(self) -> Iterator[Run]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)

    def add(self, run: Run) -> None:
        """Puts a run in."""
        items, at = self.items, len(self.items)
        items.append(run)
        while at:
            parent = (at - 1) >> 1
            if run[1] >= items[parent][1]:
                break
            items[at] = items[parent]
            at = parent
        items[at] = run

    def pop(self) -> Run:
        """Takes the first run."""
        first, last = self.items[0], self.items.pop()
        if self.items:
            self._sink(0, last)
        return first

    def _sink(self, at: int, run: Run) -> None:
        items = self.items
        size = len(items)
        while at < size >> 1:
            child = 2 * at + 1
            if child + 1 < size and items[child][1] > items[child + 1][1]:
                child += 1
            if run[1] <= items[child][1]:
                break
            items[at] = items[child]
            at = child
        items[at] = run

    def drop(self, is_dropped: Callable[[Run], bool]) -> int:
        """Drops runs; returns how many."""
        kept = [run for run in self.items if not is_dropped(run)]
        dropped = len(self.items) - len(kept)
        if dropped:
            self.items = kept
            for at in reversed(range(len(kept) >> 1)):
                self._sink(at, kept[at])
        return dropped
