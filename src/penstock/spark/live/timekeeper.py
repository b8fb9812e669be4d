"""The driver's time: where event time stands before and after each batch, and when to run one without records."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from penstock.compiler.times import Timeline
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.watermarks import Watermarks


def clock() -> int:
    """The clock, in microseconds."""
    return time.time_ns() // 1000


@dataclass
class Timekeeper:
    """Keeps the times of a run. What it notes goes into the manifest of each version, and comes back from there."""

    timeline: Timeline
    bounded: bool = False
    ending: bool = False
    """The input is over: the next batch moves event time to its end."""
    marks: Watermarks = field(default_factory=Watermarks)
    now: int = 0
    late: dict[str, int] = field(default_factory=dict)
    wakes: Mapping[str, int | None] = field(default_factory=dict)
    _resumed: bool = False

    def begin(self, kept: Mapping[str, Any], again: Mapping[str, Any] | None = None) -> dict[str, Times]:
        """The times of a batch, from what the version before it kept; one that runs `again` has the clock it had."""
        self.marks, self.late = Watermarks.of(kept), dict(kept.get("late", {}))
        self.now = int(again["before"]) if again else clock()
        if not self._resumed:
            self.marks.resume(self.now)
            self._resumed = True
        self.marks.move(self.timeline.inputs, self.now)
        ended, self.ending = self.ending or self.bounded, False
        if ended:
            self.marks.end(self.timeline.inputs)
        before = int(kept.get("before", NEVER))
        times = self.timeline.times(self.late, self.marks.at, before, self.now, ended=ended)
        return {s: _at_end(t) if self.bounded else t for s, t in times.items()}

    def finish(self, highs: Mapping[str, Mapping[str, int]]) -> dict[str, Any]:
        """What the version after the batch keeps: where time stood in it, and where its records have brought it."""
        self.late = dict(self.marks.at)
        for step, mine in highs.items():
            self.marks.note(step, mine, self.now)
        self.marks.move(self.timeline.inputs, self.now)
        return {**self.marks.as_dict(), "late": self.late, "before": self.now}

    def due(self) -> bool:
        """Whether a batch without records has work to do now."""
        return clock() >= self.next_tick()

    def next_tick(self) -> int:
        """When, by the clock, a batch without records would have work to do; FOREVER when never."""
        event, timer = self.wakes.get("event"), self.wakes.get("clock")
        waits = [FOREVER if timer is None else timer]
        if event is not None:
            waits.append(self._when(event))
        return min(waits)

    def _when(self, event: int) -> int:
        """When event time reaches a time: at once if records have brought it there, else by the clock, if at all."""
        if min(self.marks.at.values(), default=NEVER) >= event:
            return NEVER
        return self.marks.next_move(self.timeline.inputs, event)


def _at_end(times: Times) -> Times:
    return replace(times, late=NEVER, watermark=FOREVER)
