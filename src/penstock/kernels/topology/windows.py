"""The windows of a windowed bolt's task: which tuples they hold, when they are activated, which tuples leave."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import FlowError
from penstock.graph.duration import micros
from penstock.graph.logic.bolts import TupleSpan, TupleWindow, WindowedBolt
from penstock.graph.times import FOREVER, NEVER

SECOND = 1_000_000


@dataclass
class WindowEvents:
    """What a task keeps of its windows from batch to batch. Times are microseconds.

    Attributes:
        tuples: the tuples that have not left, oldest first, each with its time.
        numbers: the number of each of them, in the order of arrival.
        before: the numbers of those that were in the window that was activated last.
        number: how many have come.
        passed: how many of the first have been in a window by count, by event time.
        arrived: how many have come since the last activation by count.
        next: when the next window by time ends; None before the first tuple.
        latest: the latest time of each stream that is read.
        watermark: up to where event time has come; None before it is known.
    """

    tuples: list[tuple[int, Any]] = field(default_factory=list)
    before: set[int] = field(default_factory=set)
    numbers: list[int] = field(default_factory=list)
    number: int = 0
    passed: int = 0
    arrived: int = 0
    next: int | None = None
    latest: dict[tuple[str, str], int] = field(default_factory=dict)
    watermark: int | None = None


class TupleWindows:
    """The windows of one task."""

    def __init__(self, bolt: WindowedBolt, streams: int) -> None:
        self.bolt, self.streams = bolt, streams
        self.length = TupleSpan.of("window", bolt.window)
        self.slide = TupleSpan.of("slide", bolt.window if bolt.slide is None else bolt.slide)
        self.lag = micros(bolt.lag, "lag")
        self.kept = WindowEvents()

    @property
    def by_event_time(self) -> bool:
        """Whether tuples count by when they happened."""
        return self.bolt.timestamp_field is not None

    def add(self, tup: Any, now: int) -> bool:
        """Takes a tuple; false when it came too late."""
        kept = self.kept
        time = self._time_of(tup) if self.by_event_time else now
        if self.by_event_time:
            stream = (tup.component, tup.stream)
            if kept.watermark is not None and time < kept.watermark:
                return False
            kept.latest[stream] = max(time, kept.latest.get(stream, time))
        kept.tuples.append((time, tup))
        kept.numbers.append(kept.number)
        kept.number += 1
        kept.arrived += 1
        if kept.next is None and self.slide.seconds is not None and not self.by_event_time:
            kept.next = now + self._slide_micros
        return True

    def _time_of(self, tup: Any) -> int:
        value = tup[self.bolt.timestamp_field]
        if isinstance(value, datetime.datetime):
            return round(value.timestamp() * SECOND)
        if isinstance(value, int) and not isinstance(value, bool):
            return value * 1000
        raise FlowError(
            f"timestamp_field {self.bolt.timestamp_field!r}: expected a timestamp, or milliseconds as a number, got {value!r}"
        )

    @property
    def _slide_micros(self) -> int:
        return round((self.slide.seconds or 0) * SECOND)

    def counted(self) -> Iterator[TupleWindow]:
        """The window that is complete by the number of tuples, if one is; by arrival."""
        if self.slide.count is not None and not self.by_event_time and self.kept.arrived >= self.slide.count:
            self.kept.arrived = 0
            yield from self._activated(self.kept.tuples[-1][0])

    def advance(self, now: int, *, ended: bool) -> Iterator[TupleWindow]:
        """The windows that are complete when time has moved; all that time can complete when the input has ended."""
        if self.by_event_time:
            yield from self._to_watermark(ended)
        elif self.slide.seconds is not None and self.kept.next is not None:
            while self.kept.next <= now or (ended and self.kept.tuples):
                yield from self._activated(self.kept.next)
                self.kept.next += self._slide_micros
                if ended and self.length.count is not None:
                    return

    def wake(self) -> int:
        """When processing time next completes a window."""
        has_work = self.slide.seconds is not None and not self.by_event_time and bool(self.kept.tuples)
        return self.kept.next if has_work and self.kept.next is not None else FOREVER

    def _to_watermark(self, ended: bool) -> Iterator[TupleWindow]:
        kept = self.kept
        if len(kept.latest) < self.streams and not ended:
            return
        reached = FOREVER if ended else min(kept.latest.values()) - self.lag
        if kept.watermark is not None and reached <= kept.watermark:
            return
        kept.watermark = reached
        yield from self._counted_to(reached) if self.slide.count is not None else self._timed_to(reached)

    def _timed_to(self, reached: int) -> Iterator[TupleWindow]:
        """Every window that ends up to the watermark; stretches without tuples are skipped."""
        kept, slide = self.kept, self._slide_micros
        kept.tuples, kept.numbers = _in_order(kept)
        end = kept.next if kept.next is not None else self._aligned(NEVER)
        while end is not None and end <= reached and kept.tuples:
            made = list(self._activated(end))
            yield from made
            end = end + slide if any(w.tuples for w in made) else self._aligned(end)
        kept.next = end if end is not None and end < FOREVER else None

    def _aligned(self, after: int) -> int | None:
        """The end of the first window that holds a tuple past a time."""
        first = next((time for time, _ in self.kept.tuples if time > after), None)
        return None if first is None else -(-first // self._slide_micros) * self._slide_micros

    def _counted_to(self, reached: int) -> Iterator[TupleWindow]:
        """Windows by count, in the order of event time, of the tuples up to the watermark."""
        kept, every = self.kept, self.slide.count or 1
        kept.tuples, kept.numbers = _in_order(kept)
        while True:
            waiting = [i for i, (time, _) in enumerate(kept.tuples) if time <= reached and i >= kept.passed]
            if len(waiting) < every:
                return
            last = waiting[every - 1]
            before = len(kept.tuples)
            kept.passed = last + 1
            yield from self._activated(kept.tuples[last][0], last + 1)
            kept.passed -= before - len(kept.tuples)

    def _activated(self, end: int, first: int | None = None) -> Iterator[TupleWindow]:
        """The window that ends at a time; nothing where no tuple is in it. Tuples that are in no window any more leave."""
        kept = self.kept
        inside = [i for i, (time, _) in enumerate(kept.tuples) if not self.by_event_time or time <= end]
        inside = inside[:first]
        gone = self._gone(inside, end)
        expired = [kept.tuples[i][1] for i in inside if i in gone]
        window = [i for i in inside if i not in gone]
        new = [kept.tuples[i][1] for i in window if kept.numbers[i] not in kept.before]
        tuples = [kept.tuples[i][1] for i in window]
        kept.before = {kept.numbers[i] for i in window}
        kept.tuples = [t for i, t in enumerate(kept.tuples) if i not in gone]
        kept.numbers = [n for i, n in enumerate(kept.numbers) if i not in gone]
        start = None if self.length.seconds is None else end / SECOND - self.length.seconds
        if tuples or expired:
            yield TupleWindow(tuples, new, expired, start, end / SECOND)

    def _gone(self, inside: list[int], end: int) -> frozenset[int]:
        """Which of the tuples up to the end of a window are too old for it."""
        if self.length.count is not None:
            return frozenset(inside[: -self.length.count])
        length = round((self.length.seconds or 0) * SECOND)
        return frozenset(i for i in inside if self.kept.tuples[i][0] <= end - length)


def _in_order(kept: WindowEvents) -> tuple[list[tuple[int, Any]], list[int]]:
    """The tuples in the order of their times; those of one time as they came."""
    order = sorted(range(len(kept.tuples)), key=lambda i: kept.tuples[i][0])
    return [kept.tuples[i] for i in order], [kept.numbers[i] for i in order]
