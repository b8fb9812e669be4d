"""Event time between batches: how far the partitions of each input have come, and the watermark that follows from it.

Both hosts keep time with the one `Timekeeper` here: it knows no clock, no Spark and no files. The host says when its inputs were asked
for records and what they answered; the timekeeper says where event time stands in each batch.

A partition is *idle* when it was asked and had nothing, again and again, for as long as `idle` says. The time that a batch takes says
nothing about the input: what counts are answers. While records wait, nothing becomes idle.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

from penstock.graph.nodes import EventTime
from penstock.graph.state.times import StoredTimes, Wakes
from penstock.graph.times import FOREVER, NEVER

Highs = Mapping[str, Mapping[str, int]]
"""The latest event time of each partition from which a batch had records, by input."""


@dataclass
class Mark:
    """What is known of one partition.

    Attributes:
        high: its latest event time.
        seen: the processing time of the batch that had its last records.
        quiet: for how long it has answered that it has nothing, since its last records.
        asked: when it last answered so; None when its last answer was another, or none was got in this run.
    """

    high: int
    seen: int
    quiet: int = 0
    asked: int | None = None

    def has_records(self, high: int, now: int) -> None:
        """The partition had records."""
        self.high, self.seen, self.quiet, self.asked = max(self.high, high), now, 0, None

    def has_nothing(self, now: int) -> None:
        """The partition was asked, and no record was waiting."""
        if now < self.seen:
            return
        if self.asked is not None:
            self.quiet += max(0, now - self.asked)
        self.asked = now if self.asked is None else max(now, self.asked)

    def is_idle(self, idle: int | None) -> bool:
        """Whether it had nothing for so long, and had nothing when it was last asked."""
        return idle is not None and self.asked is not None and self.quiet >= idle


@dataclass(frozen=True)
class BatchTimes:
    """The times of one batch: the watermark of each input before it (`previous`) and at its end, and its processing time.

    `before` is the processing time of the batch before it; `ended` says that the input is over.
    """

    previous: Mapping[str, int]
    watermark: Mapping[str, int]
    before: int = NEVER
    now: int = 0
    ended: bool = False


@dataclass
class Watermarks:
    """The watermark of every input of a flow. It never goes back.

    >>> from penstock.graph.expr import as_expr
    >>> from penstock.graph.nodes import EventTime
    >>> marks = Watermarks()
    >>> marks.note({"clicks": {"0": 100, "1": 40}}, now=1)
    >>> marks.move([EventTime("clicks", (), "ts", as_expr("ts"), lateness=10, max_lead=0, idle=50)])
    >>> marks.at["clicks"]
    30
    """

    marks: dict[str, dict[str, Mark]] = field(default_factory=dict)
    at: dict[str, int] = field(default_factory=dict)
    """Where the watermark of each input stands."""

    def note(self, highs: Highs, now: int) -> None:
        """Takes in the latest times of the partitions that had records."""
        for step, mine in highs.items():
            marks = self.marks.setdefault(step, {})
            for partition, high in mine.items():
                marks.setdefault(partition, Mark(high, now)).has_records(high, now)

    def answered(self, now: int, waiting: Container[str]) -> None:
        """Takes in what partitions without records answered when the batch of this time was made.

        They had nothing; of inputs that had more than the batch took (`waiting`) that is not known. Later answers stand.
        """
        for step, marks in self.marks.items():
            for mark in marks.values():
                if step not in waiting and mark.seen < now:
                    mark.has_nothing(now)
                elif step in waiting and mark.asked is not None and mark.asked <= now:
                    mark.asked = None

    def nothing(self, now: int) -> None:
        """All inputs were asked, and none had anything."""
        for marks in self.marks.values():
            for mark in marks.values():
                mark.has_nothing(now)

    def move(self, inputs: Iterable[EventTime]) -> None:
        """Moves the watermark of each input as far as its partitions allow."""
        self.at |= {node.name: self.reached(node) for node in inputs}

    def reached(self, node: EventTime) -> int:
        """How far an input has come: its lowest partition that is not idle; when all are, time goes on as long as they are quiet."""
        marks = list(self.marks.get(node.name, {}).values())
        busy = [m.high for m in marks if not m.is_idle(node.idle)]
        highest = min(busy) if busy else max((m.high + m.quiet for m in marks), default=None)
        return max(self.at.get(node.name, NEVER), NEVER if highest is None else highest - node.lateness)


@dataclass
class Timekeeper:
    """Keeps the event time of a run from batch to batch.

    A host calls `restore` when it starts or starts over, `nothing_waits` whenever it knows that, `begin` and `finish` around each batch.

    >>> from penstock.graph.expr import as_expr
    >>> clicks = EventTime("clicks", (), "ts", as_expr("ts"), lateness=0, max_lead=0, idle=50)
    >>> keeper = Timekeeper((clicks,))
    >>> keeper.begin(now=1).watermark == {"clicks": NEVER}
    True
    >>> kept = keeper.finish({"clicks": {"": 100}})
    >>> keeper.begin(now=500).watermark
    {'clicks': 100}
    """

    inputs: tuple[EventTime, ...]
    marks: Watermarks = field(default_factory=Watermarks)
    previous: dict[str, int] = field(default_factory=dict)
    before: int = NEVER
    _batch: BatchTimes = field(default_factory=lambda: BatchTimes({}, {}))
    _was_asked: bool = False
    """Whether this run asked the inputs at the time `before`, for the batch before."""
    _replays: bool = False

    def restore(self, stored: StoredTimes) -> None:
        """Goes on from what a batch has kept. The time since then does not count as quiet."""
        stood = stored.get("marks", {})
        marks = {s: {p: Mark(*m) for p, m in mine.items()} for s, mine in stood.items()}
        self.marks = Watermarks(marks, dict(stored.get("at", {})))
        self.previous, self.before = dict(stored.get("previous", {})), stored.get("before", NEVER)
        self._was_asked = False

    def nothing_waits(self, now: int) -> None:
        """All inputs were asked at this processing time, and had nothing; so the batch before has left nothing either."""
        if self._was_asked:
            self.marks.answered(self.before, ())
        self.marks.nothing(now)

    def begin(self, now: int, waiting: Container[str] = (), *, ended: bool = False) -> BatchTimes:
        """The times of the next batch.

        Args:
            now: the processing time.
            waiting: the inputs that had more records than the batch before took, or of which that is not known.
            ended: the input is over, so all event time has passed.
        """
        if self._was_asked:
            self.marks.answered(self.before, waiting)
        self.marks.move(self.inputs)
        if ended:
            self.marks.at |= {node.name: FOREVER for node in self.inputs}
        self._replays = False
        self._batch = BatchTimes(dict(self.previous), dict(self.marks.at), self.before, now, ended)
        return self._batch

    def replay(self, stored: StoredTimes) -> BatchTimes:
        """The times of a batch that runs again, which are those it had: `stored` is what it has kept, and a crash followed."""
        previous, before = dict(self.previous), self.before
        self.restore(stored)
        self._replays, ended = True, stored.get("ended", False)
        self._batch = BatchTimes(previous, dict(stored["previous"]), before, stored["before"], ended)
        return self._batch

    def finish(self, highs: Highs) -> StoredTimes:
        """Takes in the records of the batch; what it returns is to be kept with the state."""
        times = self._batch
        self.previous, self.before, self._was_asked = dict(times.watermark), times.now, not self._replays
        self.marks.note(highs, times.now)
        self.marks.move(self.inputs)
        return self.stored(ended=times.ended)

    def stored(self, *, ended: bool = False) -> StoredTimes:
        """What is known, as JSON can hold it."""
        found = self.marks.marks.items()
        marks = {s: {p: (m.high, m.seen, m.quiet) for p, m in mine.items()} for s, mine in found}
        at, previous = dict(self.marks.at), dict(self.previous)
        return {"marks": marks, "at": at, "previous": previous, "before": self.before, "ended": ended}

    def reached(self) -> dict[str, int]:
        """How far event time would come in a batch that began now."""
        return {node.name: self.marks.reached(node) for node in self.inputs}

    def is_due(self, wakes: Wakes, now: int, watermark: Callable[[str, Mapping[str, int]], int]) -> bool:
        """Whether a batch without records would have work to do.

        Args:
            wakes: when the stores of the flow want a batch.
            now: the processing time.
            watermark: the watermark of the step that has a store, from that of each input.
        """
        if any(time <= now for time in wakes.clock.values()):
            return True
        reached = self.reached() if wakes.event else {}
        return any(watermark(store, reached) >= time for store, time in wakes.event.items())
