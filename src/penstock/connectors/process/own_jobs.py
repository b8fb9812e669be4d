"""The jobs of Spark that a spout starts itself.

While a bounded run goes on, the first bolts hold cores and wait for the spout. A spout that asks Spark in `next_tuple` waits for a core: where none is left, for ever.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PATIENCE = 60.0
"""So many seconds a job of a spout may wait for its first core."""
_LOOK = 0.5


class SpoutJobs:
    """The jobs that the thread of a spout starts.

    Args:
        spark: the session.
        step: the name of the spout.
    """

    def __init__(self, spark: SparkSession, step: str) -> None:
        self.context, self.step = spark.sparkContext, step
        self.group = f"penstock-spout-{step}-{id(self)}"

    def begin(self) -> None:
        """Called in the thread of the spout: its jobs are known from now on, where threads of Python have threads of Java of their own."""
        if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true":
            self.context.setJobGroup(self.group, f"spout {self.step}")

    def watch(self, thread: threading.Thread, fail: Callable[[], None]) -> None:
        """Ends each job that waits too long while the thread and the session live; `fail` is called before that."""
        with contextlib.suppress(Exception):  # a session that ends meanwhile raises anything
            self._watch(thread, fail)

    def _watch(self, thread: threading.Thread, fail: Callable[[], None]) -> None:
        since: float | None = None
        while thread.is_alive():
            thread.join(_LOOK)
            since = (since or time.monotonic()) if self._are_waiting() else None
            if since is not None and time.monotonic() - since > PATIENCE:
                fail()
                self.context.cancelJobGroup(self.group)

    def _are_waiting(self) -> bool:
        """Whether there is a job of which no task runs or has run."""
        tracker = self.context.statusTracker()
        jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(self.group)]
        stages = [
            tracker.getStageInfo(s) for job in jobs if job is not None and job.status == "RUNNING" for s in job.stageIds
        ]
        known = [stage for stage in stages if stage is not None]
        return bool(known) and not any(stage.numActiveTasks or stage.numCompletedTasks for stage in known)
