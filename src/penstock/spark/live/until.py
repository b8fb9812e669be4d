"""When a live run ends of itself: after so many batches or records, at a time, when its input is quiet, or when you say so."""

from __future__ import annotations

import time
from collections.abc import Callable

from penstock.errors import OptionError
from penstock.graph.run import RunSpec
from penstock.spark.live.report import BatchReport

StopTest = Callable[[BatchReport], bool]
"""Gets the report of each batch and says whether the run ends."""


class Goal:
    """Watches a run for the moment at which it ends: any of the conditions of its spec, or a test of the user's.

    `batches` and `records` count this run alone. `until_time` is reached when all steps have been brought there. `until_idle` is how many
    seconds no record has arrived. All are looked at between batches, so a run may take more records than it asked for, and never fewer.

    >>> goal = Goal(RunSpec(records=10))
    >>> goal.told(BatchReport(0, {"a": 6})); goal.reached(0, working=False)
    False
    >>> goal.told(BatchReport(1, {"a": 6})); goal.reached(0, working=False)
    True
    """

    def __init__(self, spec: RunSpec, test: StopTest | None = None) -> None:
        if test is not None and not callable(test):
            raise OptionError(f"until is a function of a batch's report that says whether to stop, got {test!r}")
        self.spec, self.test = spec, test
        self.batches = self.records = 0
        self.busy = time.monotonic()
        self.met = False

    def ran(self) -> bool:
        """A batch has run; whether it was the last."""
        self.batches += 1
        return self.spec.batches is not None and self.batches >= self.spec.batches

    def told(self, report: BatchReport) -> None:
        """A batch has been reported."""
        self.records += report.rows_in
        if report.rows_in:
            self.busy = time.monotonic()
        if self.test is not None and self.test(report):
            self.met = True

    def reached(self, event_time: int, *, working: bool) -> bool:
        """Whether the run shall end, with the event time that all steps have been brought to, and whether a batch is at work."""
        spec = self.spec
        quiet = 0.0 if working else time.monotonic() - self.busy
        return (
            self.met
            or (spec.batches is not None and self.batches >= spec.batches)
            or (spec.records is not None and self.records >= spec.records)
            or (spec.until_time is not None and event_time >= spec.until_time)
            or (spec.until_idle is not None and quiet >= spec.until_idle)
        )
