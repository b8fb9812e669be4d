"""The moments around a batch at which a driver is killed, by the names that the docs give them, and the order of the kills."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

from penstock.errors import UnknownName, nearest

RANDOM = ""
"""The point of a kill that comes from outside, at any moment."""


@dataclass(frozen=True)
class Window:
    """A crash window: its name in the list of faults, what lies there, and the points of `penstock.faults` inside it."""

    name: str
    about: str
    points: tuple[str, ...]


WINDOWS = (
    Window("F1", "offsets written", ("offsets written",)),
    Window("F2", "in the middle of a task", (RANDOM,)),
    Window("F3", "staged", ("staged",)),
    Window("F4", "before the sink's commit", ("before sink commit",)),
    Window("F5", "after the sink's commit, before it is known", ("after sink commit",)),
    Window("F6", "sink written, batch not committed", ("sink written", "sinks written")),
    Window("F7", "batch committed", ("commit logged",)),
    Window("F8", "state written", ("state staged",)),
    Window("F9", "state published", ("manifest published",)),
    Window("F10", "old state being removed", ("purge",)),
    Window("F11", "reconcile at start", ("reconcile", "reconciled")),
)


@dataclass(frozen=True)
class Kill:
    """One kill: in which window, at the how-manieth passing of which point; or so many seconds after the start."""

    window: str
    point: str
    nth: int = 1
    seconds: float = 0.0

    @property
    def setting(self) -> str:
        """What `PENSTOCK_CRASH` must say; nothing when the kill comes from outside."""
        return f"{self.point}#{self.nth}" if self.point else ""

    def __str__(self) -> str:
        where = f"{self.point}, time {self.nth}" if self.point else f"{self.seconds:.1f} s after the start"
        return f"{self.window} {where}"


def schedule(kills: int, seed: int, only: Sequence[str] = ()) -> list[Kill]:
    """So many kills. Every window comes before any comes again; the order, the batch and the moments are by chance.

    >>> {kill.window for kill in schedule(11, seed=1)} == {window.name for window in WINDOWS}
    True
    """
    names = [window.name for window in WINDOWS]
    unknown = [name for name in only if name not in names]
    if unknown:
        raise UnknownName(f"no crash window {unknown[0]!r}; {nearest(unknown[0], names)}")
    chosen = [window for window in WINDOWS if not only or window.name in only]
    return list(islice(_kills(random.Random(seed), chosen), kills))


def _kills(rolled: random.Random, windows: list[Window]) -> Iterator[Kill]:
    while True:
        for window in rolled.sample(windows, len(windows)):
            point = rolled.choice(window.points)
            nth = 1 if window.name == "F11" else rolled.randint(1, 3)
            yield Kill(window.name, point, nth, rolled.uniform(0.0, 2.0))
