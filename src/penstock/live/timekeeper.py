"""The time of a run on Spark: where event time stands in each batch, and when a batch without records has work to do."""

from __future__ import annotations

import time
from collections.abc import Container
from dataclasses import dataclass, field, replace

from penstock.compiler.times import Timeline
from penstock.graph.state.times import StoredTimes, Wakes
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.watermarks import BatchTimes, Highs, Timekeeper
from penstock.state.store import StateStore


def processing_time() -> int:
    """The processing time, in microseconds."""
    return time.time_ns() // 1000


@dataclass
class RunTime:
    """The time of a run: a timekeeper that goes on from the manifest of the version before each batch.

    Attributes:
        timeline: which steps depend on which event times.
        store: where the versions are, with the times of each; None when no step keeps state.
        is_bounded: there is one batch, with all records, and at its end all time has passed.
    """

    timeline: Timeline
    store: StateStore | None = None
    is_bounded: bool = False
    wakes: Wakes = field(default_factory=Wakes)
    keeper: Timekeeper = field(init=False)
    version: int | None = None
    """The batch after which the timekeeper stands; None before the first of this run."""
    _is_resumed: bool = False
    """Whether no batch has run since `resume`: the next may be one that runs again."""

    def __post_init__(self) -> None:
        self.keeper = Timekeeper(self.timeline.inputs)

    def resume(self, version: int) -> None:
        """Goes on from a version before the first batch of a run: what is due, or becomes due by quiet inputs, needs no record to be seen."""
        found = self.store.resumption(version) if self.store is not None else None
        if found is not None:
            self.keeper.restore(found[0])
            self.wakes, self.version, self._is_resumed = found[1], version, True

    def begin(self, batch: int, base: int, waiting: Container[str] = (), *, ended: bool = False) -> BatchTimes:
        """The times of a batch that goes from version `base` to version `batch`; one that runs again has those it had."""
        if self.store is not None and (self._is_resumed or self.version != base):
            if self.version != base:
                self.keeper.restore(self.store.time(base))
            if stored := self.store.time(batch, missing=True):
                return self.keeper.replay(stored)
        return self.keeper.begin(processing_time(), waiting, ended=ended or self.is_bounded)

    def times(self, batch: BatchTimes) -> dict[str, Times]:
        """The times of each step in a batch."""
        times = self.timeline.times(batch.previous, batch.watermark, batch.before, batch.now, ended=batch.ended)
        return {s: replace(t, previous=NEVER, watermark=FOREVER) if self.is_bounded else t for s, t in times.items()}

    def finish(self, batch: int, highs: Highs) -> StoredTimes:
        """Takes in the event times of the batch's records, and returns what its version keeps."""
        self.version, self._is_resumed = batch, False
        return self.keeper.finish(highs)

    def nothing_waits(self, now: int) -> None:
        """All inputs were asked at this processing time, and had nothing."""
        self.keeper.nothing_waits(now)

    def is_due(self, now: int) -> bool:
        """Whether a batch without records would have work to do now."""
        return self.keeper.is_due(self.wakes, now, self.timeline.store_watermark)

    @property
    def reached(self) -> int:
        """The event time that all steps have been brought to by the last batch."""
        return min(self.keeper.previous.values(), default=NEVER)

    def event_time(self, now: int) -> int:
        """The event time that all steps have been brought to: that of the last batch, or of the next if none waits for it."""
        at = self.keeper.previous if self.is_due(now) else self.keeper.marks.at
        return min(at.values(), default=NEVER)
