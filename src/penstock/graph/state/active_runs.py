"""The runs of patterns that are under way, in figures. A version of the state holds them and each batch changes them, so that nobody counts what is kept.

When runs began is kept in spans of time: of each the earliest start, and how many of its runs are under way. A task says which spans gained and lost
runs; what began later than all spans is a new one. So the figures cost what a batch touches, whatever is kept beside that.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, TypedDict

import numpy as np

from penstock.graph.arrays import IntArray
from penstock.graph.times import NEVER

EARLIER = "earlier runs"
"""What a match waits for whose turn has not come: runs that began before it may still drop it."""
REST = "the rest of the pattern"
"""What a key waits for that has begun a match of operators."""
MOST_SPANS = 32
"""With more spans than these the two that are closest together become one."""


class RunNote(TypedDict):
    """What a task notes for the driver: the changes of the figures, by span where they are about time, and the first and last start after all spans."""

    waiting: dict[str, int]
    keys: int
    events: int
    spans: list[int]
    first: int | None
    new: tuple[int, int] | None


@dataclass
class RunChanges:
    """What a task has changed of the runs of a pattern in a batch.

    Args:
        waiting: how many more or fewer runs there are, by what they wait for.
        keys: how many more keys have runs.
        events: how many more events runs hold.
        began: when the runs began that were put into the state.
        gone: when the runs began that were there before.
    """

    waiting: Counter[str] = field(default_factory=Counter)
    keys: int = 0
    events: int = 0
    began: list[int] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)

    def put(self, waiting: Mapping[str, int], began: Iterable[int], events: int, keys: int = 1) -> None:
        """Counts runs that are kept from now on."""
        self.waiting.update(waiting)
        self.began += began
        self.events += events
        self.keys += keys

    def take_out(self, waiting: Mapping[str, int], began: Iterable[int], events: int, keys: int = 1) -> None:
        """Counts runs as they were kept before."""
        self.waiting.subtract(waiting)
        self.gone += began
        self.events -= events
        self.keys -= keys

    def add(self, other: RunChanges) -> None:
        """Adds other changes of the same pattern."""
        self.waiting.update(other.waiting)
        self.began += other.began
        self.gone += other.gone
        self.events += other.events
        self.keys += other.keys

    def note(self, starts: Sequence[int]) -> RunNote:
        """What the driver must know, by the spans that start at these times."""
        edges, began = np.array(starts, np.int64), np.array(self.began, np.int64)
        new = began[began >= starts[-1]]
        changed = _in_spans(edges, began) - _in_spans(edges, np.array(self.gone, np.int64))
        return RunNote(
            waiting={label: many for label, many in self.waiting.items() if many},
            keys=self.keys,
            events=self.events,
            spans=changed.tolist(),
            first=int(began.min()) if len(began) else None,
            new=(int(new.min()), int(new.max())) if len(new) else None,
        )


def _in_spans(starts: IntArray, times: IntArray) -> IntArray:
    """How many times lie in each span; those before all spans count as in the first."""
    return np.bincount(np.searchsorted(starts[1:], times, "right"), minlength=len(starts))


@dataclass(frozen=True)
class ActiveRuns:
    """The runs of a pattern that are under way.

    Args:
        waiting: how many there are, by what they wait for.
        keys: how many keys have runs.
        events: how many events they hold; one that several runs of a key hold counts once.
        spans: when they began: the start of each span of time, and how many began in it. The last one has none.

    >>> runs = ActiveRuns().after([RunChanges(Counter(b=2), 1, 2, [5, 7]).note(ActiveRuns().starts)])
    >>> runs.runs, runs.oldest, runs.spans
    (2, 5, ((5, 2), (8, 0)))
    >>> runs = runs.after([RunChanges(Counter(b=-1), 0, -1, [7], [5, 7]).note(runs.starts)])
    >>> runs.runs, runs.waiting, runs.spans
    (1, {'b': 1}, ((5, 1), (8, 0)))
    """

    waiting: Mapping[str, int] = field(default_factory=dict)
    keys: int = 0
    events: int = 0
    spans: tuple[tuple[int, int], ...] = ((NEVER, 0),)

    @property
    def runs(self) -> int:
        """How many there are."""
        return sum(self.waiting.values())

    @property
    def starts(self) -> list[int]:
        """Where the spans of time start."""
        return [start for start, _ in self.spans]

    @property
    def oldest(self) -> int | None:
        """When the oldest began, or shortly before that: the start of the first span that has any; None where there is no run."""
        return next((start for start, many in self.spans if many > 0), None)

    def after(self, notes: Sequence[RunNote]) -> ActiveRuns:
        """The runs after the changes of all tasks."""
        waiting = Counter(self.waiting)
        for note in notes:
            waiting.update(note["waiting"])
        return ActiveRuns(
            {label: many for label, many in sorted(waiting.items()) if many},
            self.keys + sum(note["keys"] for note in notes),
            self.events + sum(note["events"] for note in notes),
            _closed(list(self._spans(notes))),
        )

    def _spans(self, notes: Sequence[RunNote]) -> Iterator[tuple[int, int]]:
        """The spans with the changes of tasks. The last one has no run before; where it gets some, a span follows that has none."""
        first = [note["first"] for note in notes if note["first"] is not None]
        new = [note["new"] for note in notes if note["new"] is not None]
        *spans, (edge, _) = [
            (start, many + sum(note["spans"][at] for note in notes)) for at, (start, many) in enumerate(self.spans)
        ]
        if spans:
            yield min([spans[0][0], *first]), spans[0][1]
            yield from spans[1:]
        many = sum(note["spans"][-1] for note in notes)
        if new or many:
            yield min([begin for begin, _ in new] if spans else first), many
        yield max([end + 1 for _, end in new], default=edge), 0

    def to_json(self) -> dict[str, Any]:
        """As a manifest holds it."""
        return {"waiting": dict(self.waiting), "keys": self.keys, "events": self.events, "spans": self.spans}

    @classmethod
    def from_json(cls, kept: Mapping[str, Any]) -> ActiveRuns:
        """From a manifest."""
        spans = tuple((start, many) for start, many in kept["spans"])
        return cls(kept["waiting"], kept["keys"], kept["events"], spans)


def _closed(spans: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Spans without those that have no run, the last aside, and no more of them than may be."""
    *some, last = spans
    some = [each for each in some if each[1]]
    while len(some) >= MOST_SPANS:
        starts = [start for start, _ in (*some, last)]
        at = min(range(len(some) - 1), key=lambda at: starts[at + 2] - starts[at])
        some[at : at + 2] = [(some[at][0], some[at][1] + some[at + 1][1])]
    return (*some, last)


ActiveByPattern = Mapping[str, ActiveRuns]
"""The runs under way of a step, by the name of the pattern."""


def active_to_json(active: ActiveByPattern) -> dict[str, Any]:
    """As a manifest holds the runs of a step."""
    return {name: runs.to_json() for name, runs in active.items()}


def active_from_json(kept: Mapping[str, Any]) -> dict[str, ActiveRuns]:
    """From a manifest."""
    return {name: ActiveRuns.from_json(runs) for name, runs in kept.items()}


def after_batch(before: ActiveByPattern, notes: Sequence[Mapping[str, RunNote]]) -> dict[str, ActiveRuns]:
    """The runs of a step after a batch. A pattern that has no runs any more is gone."""
    names = dict.fromkeys(chain(before, *notes))
    made = {
        name: before.get(name, ActiveRuns()).after([note[name] for note in notes if name in note]) for name in names
    }
    return {name: runs for name, runs in made.items() if runs.runs or runs.keys}


class RunFigures(TypedDict):
    """The runs under way of a pattern as reports have them; `oldest` in microseconds, `bytes` as its part of the files of the step."""

    runs: int
    keys: int
    events: int
    bytes: int
    waiting: dict[str, int]
    oldest: int | None


def figures_of(active: ActiveByPattern, size: int) -> dict[str, RunFigures]:
    """The figures of the patterns of a step, whose files have so many bytes: each its part by the events that it holds."""
    held = sum(runs.events for runs in active.values())
    return {
        name: RunFigures(
            runs=runs.runs,
            keys=runs.keys,
            events=runs.events,
            bytes=size * runs.events // held if held else 0,
            waiting=dict(runs.waiting),
            oldest=runs.oldest,
        )
        for name, runs in active.items()
    }
