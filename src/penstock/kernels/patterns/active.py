"""The runs under way of a pattern, counted when they are put into the state and when they are taken out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from penstock.graph.state.active_runs import EARLIER, RunChanges
from penstock.graph.state.table import TIME
from penstock.kernels.patterns.stored import StoredRuns

_DONE = -1
"""Stands for the state of a match that waits for its turn."""


def count_put(changes: RunChanges, labels: Sequence[str], kept: Collection[StoredRuns]) -> None:
    """Counts what is put into the state, by what each state of the automaton waits for."""
    changes.put(*_counted(labels, kept), len(kept))


def count_taken_out(changes: RunChanges, labels: Sequence[str], kept: Collection[StoredRuns]) -> None:
    """Counts what was in the state before."""
    changes.take_out(*_counted(labels, kept), len(kept))


def _counted(labels: Sequence[str], kept: Collection[StoredRuns]) -> tuple[dict[str, int], list[int], int]:
    """How many runs there are by what they wait for, when each began, and how many events they hold."""
    states: list[int] = []
    began: list[int] = []
    held = 0
    for events, _, runs, done in kept:
        held += len(events)
        for run in runs:
            if run["taken"] >= 0:
                states.append(run["state"])
                began.append(events[run["first"]][TIME])
        for run in done or ():
            states.append(_DONE)
            began.append(events[run["first"]][TIME])
    made: dict[str, int] = {}
    for state, many in Counter(states).items():
        label = EARLIER if state == _DONE else labels[state]
        made[label] = made.get(label, 0) + many
    return made, began, held
