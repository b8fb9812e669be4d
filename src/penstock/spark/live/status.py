"""What a live run is doing at the moment: which batch is under way, how many rows it took, how many of its tasks are done."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from penstock.connectors.log.shedding import SHED
from penstock.spark.checkpoint.offsets import OffsetLog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Json: TypeAlias = object
"""Offsets are whatever a source makes of them."""


@dataclass(frozen=True)
class RunStatus:
    """A live run at a moment.

    Attributes:
        phase: `running`, `ending`, `draining`, `stopping` or `over`.
        batches: batches that are done.
        records: records of the batches that Spark has logged.
        batch: the batch under way; None between batches.
        seconds: for how long it has been.
        rows: how many rows it took, where its sources count by offsets; None where that is not known.
        tasks_done: the tasks of its running Spark jobs that are done.
        tasks: all tasks of these jobs.
        waits_since: since when (Unix) all sources were asked and none had anything; None while a batch is under way, and before the first was asked for.

    >>> RunStatus("running", 3, 500, batch=3, seconds=61.0, rows=4000, tasks_done=1, tasks=2).text
    'batch 3: 4,000 rows, 1 of 2 tasks, 61 s'
    """

    phase: str
    batches: int
    records: int
    batch: int | None = None
    seconds: float = 0.0
    rows: int | None = None
    tasks_done: int = 0
    tasks: int = 0
    waits_since: float | None = None

    @property
    def text(self) -> str:
        """The batch under way in a line; empty between batches."""
        if self.batch is None:
            return ""
        rows = [] if self.rows is None else [f"{self.rows:,} row{'' if self.rows == 1 else 's'}"]
        tasks = [f"{self.tasks_done} of {self.tasks} task{'' if self.tasks == 1 else 's'}"] if self.tasks else []
        return f"batch {self.batch}: {', '.join([*rows, *tasks, f'{self.seconds:.0f} s'])}"


def tasks_of(spark: SparkSession) -> tuple[int, int]:
    """How many tasks of the active stages are done, and how many there are."""
    tracker = spark.sparkContext.statusTracker()
    stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    known = [stage for stage in stages if stage is not None]
    return sum(s.numCompletedTasks for s in known), sum(s.numTasks for s in known)


def rows_of(log: OffsetLog, batch: int) -> int | None:
    """How many rows a batch takes, by the offsets at which it begins and ends; None where they do not say."""
    try:
        ends, begins = log.text(batch).splitlines()[2:], log.text(batch - 1).splitlines()[2:]
        pairs = zip(begins, ends, strict=False)
        counted = [_between(_parsed(begin), _parsed(end)) for begin, end in pairs]
    except (OSError, ValueError):
        return None
    known = [many for many in counted if many is not None]
    return sum(known) if known else None


def _parsed(text: str) -> Json:
    return None if text.strip() == "-" else json.loads(text)


def _between(begin: Json, end: Json) -> int | None:
    """The records between two offsets of a log or a topic, by partition.

    >>> _between({"t": {"0": 3, "1": 5}}, {"t": {"0": 4, "1": 9}}), _between({"logOffset": 1}, {"logOffset": 2})
    (5, None)
    """
    if not isinstance(begin, Mapping) or not isinstance(end, Mapping) or "logOffset" in end:
        return None
    return sum(_step(begin.get(key, {}), value) for key, value in end.items() if key != SHED)


def _step(begin: Json, end: Json) -> int:
    if isinstance(end, Mapping):
        return _between(begin, end) or 0
    if isinstance(end, int) and not isinstance(end, bool):
        return end - begin if isinstance(begin, int) else end
    return 0
