"""What a run tells of itself after each batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.compiler.balance import Balance
from penstock.kernels.counts import StepLoad

if TYPE_CHECKING:
    from penstock.graph.state.active_runs import RunFigures
    from penstock.state.store import StateSize

T = TypeVar("T")


@dataclass(frozen=True)
class BatchReport:
    """One batch: what went in and out of each step, and where the time went.

    `steps` has (rows in, rows out) of the steps for which both are known. `seconds` has the time of each phase; `lag` what
    each source still has waiting, in records, files or bytes, where the source can tell, and `behind` the records of each of its partitions. `taken` and `given` are what was counted, `fed` what went
    back into loops. `late` and `bad` count records that are late and that have no usable event time, where nobody reads
    them; `dead` counts those that steps have put aside, `skipped` those they have left out because they failed on them, `shed` those a source never read because it was too far behind; `watermarks` says how far the event time of each input has come, in microseconds. `runs` counts the runs of patterns that have ended in the batch, by
    step and by how: `matches`, `timed_out`, `pruned`, `dropped`; `active_runs` has those under way by step and pattern: how many, of how many keys, with how many events and bytes, what they wait for, and when the oldest began.
    `load` has the seconds of work of each Python step, its tasks and how uneven their records are; `state` the entries and bytes that steps keep, `timers` those that wait.
    `native` has the seconds that tasks have worked inside Spark since the last report that has it, on so many `cores`.
    `metrics` and `errors` are what the tasks of spouts and bolts have measured and reported, by component and task.
    """

    batch: int
    sources: dict[str, int] = field(default_factory=dict)
    steps: dict[str, tuple[int, int]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    lag: dict[str, dict[str, int]] = field(default_factory=dict)
    finished: float = 0.0
    taken: dict[str, int] = field(default_factory=dict, repr=False)
    given: dict[str, int] = field(default_factory=dict, repr=False)
    fed: dict[str, int] = field(default_factory=dict, repr=False)
    late: dict[str, int] = field(default_factory=dict)
    bad: dict[str, int] = field(default_factory=dict)
    dead: dict[str, int] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    shed: dict[str, int] = field(default_factory=dict)
    watermarks: dict[str, int] = field(default_factory=dict)
    runs: dict[str, dict[str, int]] = field(default_factory=dict)
    behind: dict[str, dict[str, int]] = field(default_factory=dict)
    active_runs: dict[str, dict[str, RunFigures]] = field(default_factory=dict)
    metrics: dict[str, dict[int, dict[str, Any]]] = field(default_factory=dict)
    errors: dict[str, dict[int, list[str]]] = field(default_factory=dict)
    load: dict[str, StepLoad] = field(default_factory=dict)
    state: dict[str, StateSize] = field(default_factory=dict)
    timers: dict[str, int] = field(default_factory=dict)
    native: float = 0.0
    cores: int = 0
    accounting: Balance | None = field(default=None, repr=False)

    @property
    def balance(self) -> dict[str, Any]:
        """Where the records went, as `penstock.compiler.balance` counts; empty before the report is complete."""
        return self.accounting.as_dict() if self.accounting is not None else {}

    @property
    def rows_in(self) -> int:
        """The rows of all sources."""
        return sum(self.sources.values())

    @property
    def total(self) -> float:
        """The time of the whole batch, Spark's bookkeeping included where it is known."""
        return self.seconds.get("trigger", sum(self.seconds.values()))

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, ready for JSON."""
        steps = {name: {"in": i, "out": o} for name, (i, o) in self.steps.items()}
        seconds = {name: round(s, 4) for name, s in self.seconds.items()}
        time = {
            "behind": self.behind,
            "late": self.late,
            "bad": self.bad,
            "dead": self.dead,
            "skipped": self.skipped,
            "shed": self.shed,
            "watermarks": self.watermarks,
            "runs": self.runs,
            "active_runs": self.active_runs,
            "load": self.load,
            "state": self.state,
            "timers": self.timers,
            "native": round(self.native, 4),
            "cores": self.cores,
            "metrics": self.metrics,
            "errors": self.errors,
        }
        shown = {name: values for name, values in {**time, "balance": self.balance}.items() if values}
        return {
            "batch": self.batch,
            "sources": self.sources,
            "steps": steps,
            "seconds": seconds,
            "lag": self.lag,
            **shown,
        }


def by_component(given: Mapping[tuple[str, int], T]) -> dict[str, dict[int, T]]:
    """What tasks say, by component and then by task.

    >>> by_component({("split", 0): 1, ("split", 1): 2})
    {'split': {0: 1, 1: 2}}
    """
    made: dict[str, dict[int, T]] = {}
    for (component, task), said in sorted(given.items()):
        made.setdefault(component, {})[task] = said
    return made


Observer = Callable[[BatchReport], None]
