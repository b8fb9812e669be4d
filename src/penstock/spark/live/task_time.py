"""How long tasks have worked inside Spark: all the time of its tasks, as its executors add it up, without that of Python steps.

It is what native steps, sources, shuffles and sinks took, and moving records to and from Python. Spark does not time native steps one by one: it compiles them into one loop.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from penstock.live.report import BatchReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger("penstock")
_PAUSE, _PAUSE_EACH = 1.0, 0.05
"""Seconds between two questions, and more of them for each executor: each costs a few calls into the JVM."""


@dataclass
class TaskTime:
    """What the tasks of a run have worked so far, asked at most once a second."""

    spark: SparkSession
    seconds: dict[str, float] = field(default_factory=dict)
    """By executor; one that is gone keeps what it had."""
    cores: int = 0
    _python: float = 0.0
    _reported: float | None = None
    _next: float = 0.0

    def added_to(self, report: BatchReport) -> BatchReport:
        """The report with what tasks have worked inside Spark since the last question, and how many cores they have."""
        self._python += sum(load["seconds"] for load in report.load.values())
        now = time.monotonic()
        if now < self._next:
            return report
        try:
            self._ask()
        except Exception as error:  # who looks on does not end a run
            log.debug("the time of tasks is not known: %s", error)
            self._next = float("inf")
            return report
        self._next = now + _PAUSE + _PAUSE_EACH * len(self.seconds)
        return replace(report, native=self._grown(sum(self.seconds.values())), cores=self.cores)

    def _grown(self, total: float) -> float:
        """What is new of the time without Python; Spark adds tasks up a little after they end, so it never falls."""
        now = max(total - self._python, 0.0)
        before = now if self._reported is None else self._reported
        self._reported = max(now, before)
        return self._reported - before

    def _ask(self) -> None:
        found: Any = self.spark.sparkContext._jsc.sc().statusStore().executorList(True)  # as the pages of Spark do
        executors = [found.apply(n) for n in range(found.size())]
        self.seconds |= {str(e.id()): e.totalDuration() / 1000 for e in executors}
        self.cores = sum(int(e.totalCores()) for e in executors)
