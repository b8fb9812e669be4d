"""When a live run ends of itself: after so many batches or records, at a time, when its input is quiet, or when you say so."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from penstock.errors import FlowError
from penstock.spark.live.report import BatchReport


@dataclass(frozen=True)
class Until:
    """The conditions, any of which ends a run; none of them, and it goes on.

    `batches` and `records` count this run alone. `time` is an event time in microseconds: the run ends when all steps have been brought
    there. `idle` is how many seconds no record has come. `test` gets the report of each batch. All are looked at between batches, so a run
    may take more records than it was told, and never less.
    """

    batches: int | None = None
    records: int | None = None
    time: int | None = None
    idle: float | None = None
    test: Callable[[BatchReport], bool] | None = None

    def __post_init__(self) -> None:
        if self.test is not None and not callable(self.test):
            raise FlowError(f"until is a function of a batch's report that says whether to stop, got {self.test!r}")


class Goal:
    """Watches a run for the moment at which it shall end.

    >>> goal = Goal(Until(records=10))
    >>> goal.told(BatchReport(0, {"a": 6})); goal.reached(0, working=False)
    False
    >>> goal.told(BatchReport(1, {"a": 6})); goal.reached(0, working=False)
    True
    """

    def __init__(self, until: Until) -> None:
        self.until = until
        self.batches = self.records = 0
        self.busy = time.monotonic()
        self.met = False

    def ran(self) -> bool:
        """A batch has run; whether it was the last."""
        self.batches += 1
        return self.until.batches is not None and self.batches >= self.until.batches

    def told(self, report: BatchReport) -> None:
        """A batch has been reported."""
        self.records += report.rows_in
        if report.rows_in:
            self.busy = time.monotonic()
        if self.until.test is not None and self.until.test(report):
            self.met = True

    def reached(self, event_time: int, *, working: bool) -> bool:
        """Whether the run shall end, with the event time that all steps have been brought to, and whether a batch is at work."""
        until = self.until
        quiet = 0.0 if working else time.monotonic() - self.busy
        return (
            self.met
            or (until.batches is not None and self.batches >= until.batches)
            or (until.records is not None and self.records >= until.records)
            or (until.time is not None and event_time >= until.time)
            or (until.idle is not None and quiet >= until.idle)
        )
