"""The windows of a windowed bolt's task: which tuples they hold, when they are activated, which tuples leave."""

from __future__ import annotations

import datetime
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

from penstock.errors import FlowError, StateError
from penstock.graph.duration import micros
from penstock.graph.logic.topology.bolts import StatefulWindowedBolt, TupleSpan, TupleWindow, WindowedBolt
from penstock.graph.schema import Schema
from penstock.graph.times import FOREVER, NEVER
from penstock.graph.types import Struct
from penstock.kernels.topology.task_state import TaskState
from penstock.kernels.topology.window_tuples import (
    MemoryTuples,
    PagedTuples,
    Pages,
    TupleList,
    WindowTuples,
    numbers_of,
)

SECOND = 1_000_000
LATE = "late_tuple"
"""The one field of a stream of late tuples that has each as a struct."""


@dataclass
class WindowEvents:
    """What a task keeps of its windows from batch to batch. Times are microseconds.

    Attributes:
        held: the tuples that have not left, by number; the part of them that is in memory, where the others are in the state of the task.
        times: the time of each of them, oldest first.
        numbers: the number of each of them, in the order of arrival.
        number: how many have come.
        seen: how many had come when a window was last activated.
        end: where that window ended.
        passed: how many of the first have been in a window by count, by event time.
        arrived: how many have come since the last activation by count.
        next: when the next window by time ends; None before the first tuple.
        latest: the latest time of each stream that is read.
        watermark: up to where event time has come; None before it is known.
        has_roots: whether some of them stem from messages.
    """

    held: dict[int, Any] | Pages = field(default_factory=dict)
    times: array[int] = field(default_factory=numbers_of)
    numbers: array[int] = field(default_factory=numbers_of)
    number: int = 0
    seen: int = 0
    end: int = NEVER
    passed: int = 0
    arrived: int = 0
    next: int | None = None
    latest: dict[tuple[str, str], int] = field(default_factory=dict)
    watermark: int | None = None
    has_roots: bool = False

    def __setstate__(self, kept: dict[str, Any]) -> None:
        """Goes on from what was kept, unless another release has kept it in another form."""
        if kept.keys() != vars(WindowEvents()).keys():
            raise StateError(
                "the windows of a bolt were kept by another release of Penstock in another form; let that release end them, give the bolt "
                "a name of its own, which begins with no state, or start afresh with --fresh"
            )
        vars(self).update(kept)


class TupleWindows:
    """The windows of one task."""

    def __init__(self, bolt: WindowedBolt, streams: int) -> None:
        self.bolt, self.streams = bolt, streams
        self.length = TupleSpan.of("window", bolt.window)
        self.slide = TupleSpan.of("slide", bolt.window if bolt.slide is None else bolt.slide)
        self.lag = micros(bolt.lag, "lag")
        self.first = 0
        self.restore(WindowEvents(Pages.of(bolt.in_memory) if isinstance(bolt, StatefulWindowedBolt) else {}))

    def restore(self, kept: WindowEvents) -> None:
        """Goes on from what was kept."""
        self.kept = kept
        if isinstance(kept.held, dict):
            self.held: WindowTuples = MemoryTuples(kept.held)

    def open(self, entries: TaskState) -> None:
        """Has the pages of a stateful bolt in the state of its task."""
        if isinstance(self.kept.held, Pages):
            assert isinstance(self.bolt, StatefulWindowedBolt), "only a stateful bolt has pages"
            self.held = PagedTuples(self.kept.held, entries, self.bolt.in_memory)

    def begin(self) -> None:
        """A batch begins."""
        self.first = self.kept.number

    def holding(self, window: TupleWindow) -> Iterable[Any]:
        """The tuples of a window that keep their messages open: all of them; of a stateful bolt those of this batch, since what it has saved is acked."""
        tuples = window.tuples
        return tuples.since(self.first) if isinstance(tuples, TupleList) and self.is_saved else tuples

    @property
    def is_saved(self) -> bool:
        """Whether tuples are in the state of the task, and done once a batch has saved them."""
        return isinstance(self.kept.held, Pages)

    def take_over(self, former: WindowEvents, pages: dict[int, list[Any]]) -> None:
        """Takes the tuples of a task that is no more into the windows of this one, by their times; `pages` are those of a stateful bolt."""
        kept, own = self.kept, [self.held.get(number) for number in self.kept.numbers]
        others = list(map(_getter(former.held, pages), former.numbers))
        pairs = [*zip(kept.times, own, strict=True), *zip(former.times, others, strict=True)]
        self.held.drop(kept.numbers)
        kept.times, kept.numbers = numbers_of(), numbers_of()
        for time, tup in sorted(pairs, key=itemgetter(0)):
            self._put(time, tup)
        kept.passed += former.passed
        kept.arrived += former.arrived
        kept.seen = kept.number - kept.arrived
        kept.next = min((n for n in (kept.next, former.next) if n is not None), default=None)
        for stream, latest in former.latest.items():
            kept.latest[stream] = max(latest, kept.latest.get(stream, latest))
        kept.watermark = max((w for w in (kept.watermark, former.watermark) if w is not None), default=None)

    @property
    def by_event_time(self) -> bool:
        """Whether tuples count by when they happened."""
        return self.bolt.timestamp_field is not None

    @property
    def by_clock(self) -> bool:
        """Whether the clock of the worker completes windows."""
        return self.slide.seconds is not None and not self.by_event_time

    def add(self, tup: Any, now: int) -> bool:
        """Takes a tuple; false when it is too late."""
        kept = self.kept
        time = self._time_of(tup) if self.by_event_time else self._arrival(now)
        if self.by_event_time:
            stream = (tup.component, tup.stream)
            if kept.watermark is not None and time < kept.watermark:
                return False
            kept.latest[stream] = max(time, kept.latest.get(stream, time))
        self._put(time, tup)
        kept.arrived += 1
        return True

    def _arrival(self, now: int) -> int:
        """The time of a tuple that comes now, which is no earlier than that of the one before; the first one begins a window."""
        kept = self.kept
        time = max(now, kept.times[-1]) if kept.times else now
        if self.by_clock and (kept.next is None or (kept.next <= time and not kept.times)):
            slide = self._slide_micros
            kept.next = time + slide - (0 if kept.next is None else (time - kept.next) % slide)
        return time

    def _put(self, time: int, tup: Any) -> None:
        kept = self.kept
        self.held.add(kept.number, tup)
        kept.times.append(time)
        kept.numbers.append(kept.number)
        kept.number += 1
        kept.has_roots |= tup._roots is not None and not self.is_saved

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
            yield from self._activated(self.kept.times[-1])

    def advance(self, now: int, *, ended: bool) -> Iterator[TupleWindow]:
        """The windows that are complete when time has moved; all that time can complete when the input has ended."""
        if self.by_event_time:
            yield from self._to_watermark(ended)
        elif self.kept.next is not None:
            yield from self._clocked_to(now, self.kept.next, ended)

    def _clocked_to(self, now: int, end: int, ended: bool) -> Iterator[TupleWindow]:
        """Every window by the clock of the worker up to now, the first of which ends as said. Those that would be the same come as one."""
        kept, slide = self.kept, self._slide_micros
        while kept.times and (end <= now or (ended and self._is_open)):
            yield from self._activated(end)
            end += slide if self._is_open else max(1, (now - end) // slide + 1) * slide
            kept.next = end

    @property
    def _is_open(self) -> bool:
        """Whether time alone will give a window by processing time that is not as the last one."""
        return self.length.count is None or self.kept.seen < self.kept.number

    def wake(self) -> int:
        """When processing time next completes a window."""
        has_work = self.by_clock and bool(self.kept.times)
        return self.kept.next if has_work and self.kept.next is not None else FOREVER

    def _to_watermark(self, ended: bool) -> Iterator[TupleWindow]:
        kept = self.kept
        if len(kept.latest) < self.streams and not ended:
            return
        reached = FOREVER if ended else min(kept.latest.values()) - self.lag
        if kept.watermark is not None and reached <= kept.watermark:
            return
        kept.watermark = reached
        self._sort()
        yield from self._counted_to(reached) if self.slide.count is not None else self._timed_to(reached)

    def _sort(self) -> None:
        """Brings the tuples in the order of their times; those of one time stay in the order of their arrival."""
        kept = self.kept
        order = sorted(range(len(kept.times)), key=kept.times.__getitem__)
        kept.times = numbers_of(map(kept.times.__getitem__, order))
        kept.numbers = numbers_of(map(kept.numbers.__getitem__, order))

    def _timed_to(self, reached: int) -> Iterator[TupleWindow]:
        """Every window that ends up to the watermark; stretches without tuples are skipped."""
        kept, slide = self.kept, self._slide_micros
        end = kept.next if kept.next is not None else self._aligned(NEVER)
        while end is not None and end <= reached and kept.times:
            is_full = False
            for window in self._activated(end):
                is_full = bool(window.tuples)
                yield window
            end = end + slide if is_full else self._aligned(end)
        kept.next = end if end is not None and end < FOREVER else None

    def _aligned(self, after: int) -> int | None:
        """The end of the first window that holds a tuple past a time."""
        at = bisect_right(self.kept.times, after)
        if at == len(self.kept.times):
            return None
        return -(-self.kept.times[at] // self._slide_micros) * self._slide_micros

    def _counted_to(self, reached: int) -> Iterator[TupleWindow]:
        """Windows by count, in the order of event time, of the tuples up to the watermark."""
        kept, every = self.kept, self.slide.count or 1
        while bisect_right(kept.times, reached) - kept.passed >= every:
            before, last = kept.passed, kept.passed + every
            many = len(kept.times)
            yield from self._activated(kept.times[last - 1], last, before)
            kept.passed = last - (many - len(kept.times))

    def _activated(self, end: int, many: int | None = None, old: int | None = None) -> Iterator[TupleWindow]:
        """The window that ends at a time; nothing where no tuple is in it. Tuples that are in no window any more leave after it.

        Args:
            end: the end of the window.
            many: how many of the first tuples have come up to the window; else the time says it.
            old: how many of these have been in a window; else their numbers say it.
        """
        kept = self.kept
        inside = many if many is not None else self._inside(end)
        gone = self._gone(inside, end)
        window, new = kept.numbers[gone:inside], self._new(gone, inside, old)
        expired = kept.numbers[:gone]
        is_behind = self.by_clock and inside < len(kept.numbers)
        kept.seen, kept.end = kept.numbers[inside] if is_behind else kept.number, end
        start = None if self.length.seconds is None else end / SECOND - self.length.seconds
        if window or expired:
            held = self.held
            tuples, fresh, left = TupleList(held, window), TupleList(held, new), TupleList(held, expired)
            yield TupleWindow(tuples, fresh, left, start, end / SECOND)
        self.held.drop(expired)
        del kept.times[:gone], kept.numbers[:gone]

    def _inside(self, end: int) -> int:
        """How many tuples came up to the end of a window. One by processing time holds its start and not its end, so that each tuple is in one that tumbles."""
        if self.by_event_time:
            return bisect_right(self.kept.times, end)
        return bisect_left(self.kept.times, end) if self.by_clock else len(self.kept.times)

    def _new(self, gone: int, inside: int, old: int | None) -> array[int]:
        """The tuples of a window that were not in the one before."""
        kept = self.kept
        if old is not None:
            return kept.numbers[max(old, gone) : inside]
        if not self.by_event_time:
            return kept.numbers[max(bisect_left(kept.numbers, kept.seen), gone) : inside]
        pairs = zip(kept.times[gone:inside], kept.numbers[gone:inside], strict=True)
        return numbers_of(number for time, number in pairs if number >= kept.seen or time > kept.end)

    def _gone(self, inside: int, end: int) -> int:
        """How many of the tuples up to the end of a window are too old for it."""
        if self.length.count is not None:
            return max(0, inside - self.length.count)
        start = end - round((self.length.seconds or 0) * SECOND)
        return (bisect_left if self.by_clock else bisect_right)(self.kept.times, start, hi=inside)


def late_record(tup: Any, schema: Schema) -> tuple[Any, ...]:
    """A tuple that is too late, as its stream has it: its fields, or the whole of it as the one field `late_tuple`, as in Storm."""
    is_whole = [*schema.names] == [LATE] and isinstance(schema.fields[0].type, Struct)
    return (dict(zip(tup.names, tup.values, strict=True)),) if is_whole else tup.values


def _getter(held: dict[int, Any] | Pages, pages: dict[int, list[Any]]) -> Callable[[int], Any]:
    """Finds the tuples of a task that is no more by their numbers."""
    if isinstance(held, dict):
        return held.__getitem__
    whole = pages | {held.full: held.open}
    return lambda number: whole[number // held.size][number % held.size]
