"""What the steps of a pass count while they work, as fields; hosts add them up and report them.

Workers import this with every task, so it imports little.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from penstock.graph.logic.topology.acks import AckReport
    from penstock.kernels.errors.guard import DeadLetter
    from penstock.kernels.tracing import Traces


MOST_SAMPLED = 50
"""How many records of a stream a sample has."""


class StepLoad(TypedDict):
    """What the tasks of a step had to do in a batch.

    `seconds` of work of all tasks together, the writing of state among it; `tasks`; `skew`, the rows of the task that had the most over those of a task on average, 1 where all
    had as many; `longest`, the seconds of the task that took the most.
    """

    seconds: float
    tasks: int
    skew: float
    longest: float


@dataclass
class StepCounts:
    """The records of one step in one pass.

    `taken` and `emitted` are what went in and out. `native` counts the records that the step's half before the shuffle took
    in. `late` are those that event time had passed and that nobody reads, `bad` those whose event time cannot be used,
    `skipped` those that the step failed on and left out. `runs` are the runs of a pattern that have ended, by how: matches, timed_out,
    pruned by the after-match strategy, dropped because there were too many. `seconds` is the time of the step's own work, `passes` how many passes are added up
    here, `heaviest` and `longest` the most rows and the most seconds of one of them, `timers` those that wait.

    >>> StepCounts(taken=2, emitted=1) + StepCounts(taken=3, late=1)
    StepCounts(taken=5, emitted=1, native=0, late=1, bad=0, skipped=0)
    """

    taken: int = 0
    emitted: int = 0
    native: int = 0
    late: int = 0
    bad: int = 0
    skipped: int = 0
    runs: dict[str, int] = field(default_factory=dict, repr=False)
    seconds: float = field(default=0.0, repr=False)
    timers: int = field(default=0, repr=False)
    passes: int = field(default=1, repr=False)
    heaviest: int = field(default=0, repr=False)
    longest: float = field(default=0.0, repr=False)

    def __add__(self, other: StepCounts) -> StepCounts:
        """The counts of two passes together."""
        return StepCounts(
            self.taken + other.taken,
            self.emitted + other.emitted,
            self.native + other.native,
            self.late + other.late,
            self.bad + other.bad,
            self.skipped + other.skipped,
            {how: self.runs.get(how, 0) + other.runs.get(how, 0) for how in {**self.runs, **other.runs}},
            self.seconds + other.seconds,
            self.timers + other.timers,
            self.passes + other.passes,
            max(self._most_taken, other._most_taken),
            max(self._most_seconds, other._most_seconds),
        )

    @property
    def _most_taken(self) -> int:
        return self.taken if self.passes == 1 else self.heaviest

    @property
    def _most_seconds(self) -> float:
        return self.seconds if self.passes == 1 else self.longest

    @property
    def load(self) -> StepLoad:
        """What the tasks had to do.

        >>> (StepCounts(taken=30, seconds=0.5) + StepCounts(taken=10, seconds=0.25)).load
        {'seconds': 0.75, 'tasks': 2, 'skew': 1.5, 'longest': 0.5}
        """
        skew = self._most_taken * self.passes / self.taken if self.taken else 1.0
        return StepLoad(
            seconds=round(self.seconds, 6),
            tasks=self.passes,
            skew=round(skew, 3),
            longest=round(self._most_seconds, 6),
        )


@dataclass
class PassCounts:
    """What a pass, or several together, counted: the counts by step, the dead letters, and what tasks note of their state.

    >>> both = PassCounts({"a": StepCounts(taken=1)}) + PassCounts({"a": StepCounts(taken=2), "b": StepCounts(late=1)})
    >>> both.taken(), both.late()
    ({'a': 3}, {'b': 1})
    """

    steps: dict[str, StepCounts] = field(default_factory=dict)
    dead_letters: list[DeadLetter] = field(default_factory=list)
    notes: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    """What each task has written of the state of a step, by the folder of the step's files in this batch and the number of the task."""
    acks: dict[tuple[str, int], AckReport] = field(default_factory=dict)
    """What each task of a bolt says of the messages of spouts, by the step and the number of the task; a task that ran twice counts once."""
    bolt_metrics: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    """The values of the metrics of each task, by the step and the number of the task."""
    bolt_errors: dict[tuple[str, int], list[str]] = field(default_factory=dict)
    """What each task has reported as errors."""

    gone: dict[str, frozenset[object]] = field(default_factory=dict)
    """The rules that are gone, or begin anew, by the step that keeps them."""

    samples: dict[tuple[str, str, str], list[dict[str, Any]]] = field(default_factory=dict)
    """A few records of the streams that somebody looks at, by step, port and condition."""
    traces: Traces = field(default_factory=dict)
    """The tuples of a few messages of spouts, where somebody follows them, by root id."""
    stacks: dict[str, int] = field(default_factory=dict)
    """How often each stack was seen, where somebody asks where the time goes."""

    def __add__(self, other: PassCounts) -> PassCounts:
        """Two passes together; a dead letter of a task that ran twice counts once."""
        made = PassCounts(dict(self.steps), list(self.dead_letters), dict(self.notes), dict(self.acks))
        made.bolt_metrics, made.bolt_errors = dict(self.bolt_metrics), dict(self.bolt_errors)
        made.gone, made.samples = dict(self.gone), dict(self.samples)
        made.traces, made.stacks = dict(self.traces), dict(self.stacks)
        return made.add(other)

    def add(self, other: PassCounts) -> PassCounts:
        """Adds another pass to this one, which it returns. Thousands of tasks are added one by one, so nothing is copied."""
        for name, counts in other.steps.items():
            self.steps[name] = self.steps[name] + counts if name in self.steps else counts
        if other.dead_letters:
            self.dead_letters = _once([*self.dead_letters, *other.dead_letters])
        self.notes.update(other.notes)
        self.acks.update(other.acks)
        self.bolt_metrics.update(other.bolt_metrics)
        self.bolt_errors.update(other.bolt_errors)
        for stream, rows in other.samples.items():
            self.samples[stream] = [*self.samples.get(stream, ()), *rows][:MOST_SAMPLED]
        for root, tuples in other.traces.items():
            self.traces[root] = [*self.traces.get(root, ()), *tuples]
        for stack, many in other.stacks.items():
            self.stacks[stack] = self.stacks.get(stack, 0) + many
        for step, gone in other.gone.items():
            self.gone[step] = self.gone.get(step, frozenset()) | gone
        return self

    def of(self, step: str) -> StepCounts:
        """The counts of a step, to be changed by the caller."""
        return self.steps.setdefault(step, StepCounts())

    def taken(self) -> dict[str, int]:
        """Records that went into each step."""
        return {step: c.taken for step, c in self.steps.items() if c.taken}

    def emitted(self) -> dict[str, int]:
        """Records that each step emitted, of those that counted any, those that emitted none among them."""
        return {step: c.emitted for step, c in self.steps.items() if c.taken or c.emitted}

    def native(self) -> dict[str, int]:
        """Records that the half of each step before the shuffle took in."""
        return {step: c.native for step, c in self.steps.items() if c.native}

    def late(self) -> dict[str, int]:
        """Late records of each step that nobody reads."""
        return {step: c.late for step, c in self.steps.items() if c.late}

    def runs(self) -> dict[str, dict[str, int]]:
        """Runs of patterns that have ended, by step and by how."""
        return {step: c.runs for step, c in self.steps.items() if c.runs}

    def loads(self) -> dict[str, StepLoad]:
        """What the tasks of each step had to do, of those that worked."""
        return {step: c.load for step, c in self.steps.items() if c.seconds}

    def timers(self) -> dict[str, int]:
        """Timers that wait, of the steps that have some."""
        return {step: c.timers for step, c in self.steps.items() if c.timers}

    def skipped(self) -> dict[str, int]:
        """Records that each step failed on and left out."""
        return {step: c.skipped for step, c in self.steps.items() if c.skipped}


def _once(dead_letters: Iterable[DeadLetter]) -> list[DeadLetter]:
    return list({(dead_letter.step, dead_letter.number): dead_letter for dead_letter in dead_letters}.values())
