"""The quick way for plain sequences: `a` then `b` then `c`, each the first that comes, all found at once by columns.

Where every stage takes one event, the first that satisfies its condition, a run never becomes two: its path is decided by where the next
event of each stage is, which is looked up for all runs together.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import dataclass, field

import numpy as np

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.nodes.patterns.match import Match
from penstock.graph.patterns.pattern import Skip
from penstock.graph.patterns.tree import Contiguity, Sequence, Stage
from penstock.kernels.patterns.queue import Last, Run
from penstock.kernels.patterns.walk import events_of

NONE = -1


def is_chain(node: Match, plain: int) -> bool:
    """Whether a pattern is a sequence of single stages with conditions on the event alone, each of which takes the first event that comes."""
    root, tests = node.pattern.root, node.automaton.tests
    parts = root.parts if isinstance(root, Sequence) else (root,)
    links = root.links if isinstance(root, Sequence) else ()
    stages = all(isinstance(part, Stage) and part.condition is not None for part in parts)
    relaxed = all(link is Contiguity.RELAXED for link in links)
    timed = not node.pattern.gaps and node.pattern.after_match.skip is Skip.NONE and node.pattern.limit is None
    return stages and relaxed and timed and len(parts) > 1 and plain == (1 << len(tests)) - 1


@dataclass
class Chains:
    """Runs of a plain sequence, each a row: which events it has taken by stage, and the key.

    Args:
        ids: the number of the key of each new event, which come by key and in order.
        masks: which conditions each satisfies.
        times: the times of all events, those that runs hold first.
        before: how many of these there are.
        tests: the number of the test of each stage.
        within: how long a match may take.
    """

    ids: IntArray
    masks: IntArray
    times: IntArray
    before: int
    tests: list[int]
    within: int | None
    begins: bool = True
    """Whether events begin runs."""
    old: list[tuple[int, int, list[int]]] = field(default_factory=list)
    """Runs from before: the number of the key, the first new event of the key, and the events that it has taken."""

    def add(self, key: int, begin: int, runs: Items[Run]) -> None:
        """Takes in the runs of a key from before; its new events begin at `begin`."""
        self.old += [(key, begin, [at for _, at in events_of(taken)]) for _, _, taken in runs]

    def walk(self) -> None:
        """Goes along all runs as far as the events lead."""
        starts = np.flatnonzero(self.masks >> self.tests[0] & 1) if self.begins else np.zeros(0, np.int64)
        many = len(self.old)
        self.paths = np.full((many + len(starts), len(self.tests)), NONE)
        self.keys = np.concatenate([np.array([key for key, _, _ in self.old], np.int64), self.ids[starts]])
        at = np.concatenate([np.array([begin - 1 for _, begin, _ in self.old], np.int64), starts])
        reached = np.ones(len(at), np.int64)
        for row, (_, _, taken) in enumerate(self.old):
            self.paths[row, : len(taken)] = taken
            reached[row] = len(taken)
        self.paths[many:, 0] = starts + self.before
        self._go(at, reached)

    def _go(self, at: IntArray, reached: IntArray) -> None:
        ends = self.deadlines()
        for stage, test in enumerate(self.tests[1:], 1):
            places = np.flatnonzero(self.masks >> test & 1)
            rows = np.flatnonzero(reached == stage)
            if not len(places) or not len(rows):
                continue
            found = np.searchsorted(places, at[rows], side="right")
            there = found < len(places)
            rows, next_ = rows[there], places[found[there]]
            good = (self.ids[next_] == self.keys[rows]) & (self.times[next_ + self.before] < ends[rows])
            rows, next_ = rows[good], next_[good]
            self.paths[rows, stage] = next_ + self.before
            at[rows], reached[rows] = next_, stage + 1
        self.reached = reached

    def deadlines(self) -> IntArray:
        """When the time of each run is up."""
        if self.within is None:
            return np.full(len(self.paths), np.iinfo(np.int64).max)
        ends: IntArray = self.times[self.paths[:, 0]] + self.within
        return ends

    @property
    def is_match(self) -> BoolArray:
        """Which runs are complete."""
        flags: BoolArray = self.reached == len(self.tests)
        return flags

    def is_over(self, until: int) -> BoolArray:
        """Which runs are not complete, and have no time left."""
        return ~self.is_match & (self.deadlines() <= until)

    def left(self, until: int) -> dict[int, list[Run]]:
        """The runs that go on, by key."""
        made: dict[int, list[Run]] = {}
        rows = np.flatnonzero(~self.is_match & (self.deadlines() > until))
        order = rows[np.argsort(self.paths[rows, 0], kind="stable")]
        for key, reached, path in zip(
            self.keys[order].tolist(), self.reached[order].tolist(), self.paths[order].tolist(), strict=True
        ):
            taken: Last = None
            for stage in range(reached):
                taken = (stage, path[stage], taken)
            made.setdefault(key, []).append((reached, path[0], taken))
        return made
