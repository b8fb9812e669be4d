"""Windows as the user names them: `tumbling("10s")`, `sliding("60s", every="10s")`, `cumulating("1h", every="10m")`, `session("5m")`, ...

All times are microseconds since 1970. A window over time is a pair (start, end); the end is not in it.
"""

from __future__ import annotations

import datetime
import math
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, TypeAlias

from penstock.errors import FlowError, nearest
from penstock.graph.caller import user_line
from penstock.graph.duration import Span as Duration
from penstock.graph.duration import micros, shown
from penstock.graph.expr import Cast, Expr, to_text
from penstock.graph.spelling import spelled
from penstock.graph.times import FOREVER, NEVER, to_micros, to_moment
from penstock.graph.types import BIGINT

if TYPE_CHECKING:
    from penstock.graph.arrays import IntArray

Span: TypeAlias = tuple[int, int]
"""A window over time: its start and its end, which is not in it."""


@dataclass(frozen=True)
class TimeWindow:
    """Windows of a fixed size, one beginning at every step of `every`; tumbling when both are equal.

    With a time zone they follow local time: a day is from midnight to midnight, be it of 23 or of 25 hours.
    """

    size: int
    every: int
    offset: int = 0
    timezone: str = ""

    def __str__(self) -> str:
        step = "" if self.every == self.size else f" every {shown(self.every)}"
        offset = f" from {shown(self.offset)}" if self.offset else ""
        return f"{shown(self.size)}{step}{offset}{f' in {self.timezone}' if self.timezone else ''}"

    @cached_property
    def pane(self) -> int:
        """The largest span of which all windows are made whole."""
        return math.gcd(self.size, self.every)

    @property
    def panes(self) -> int:
        """How many windows hold a pane, at most."""
        return -(-self.size // self.every)

    def wall(self, time: int) -> int:
        """Local time at a moment, in microseconds since 1970 by local time."""
        return time if not self.timezone else wall_of(time, self.timezone)

    def time(self, wall: int) -> int:
        """The first moment of a local time."""
        return wall if not self.timezone else time_of(wall, self.timezone)

    def pane_of(self, time: int) -> int:
        """Where the pane of a time begins, on the wall."""
        wall = self.wall(time)
        return wall - (wall - self.offset) % self.pane

    def first_in(self, pane: int) -> int:
        """Where the last window that holds a pane begins, on the wall."""
        return pane - (pane - self.offset) % self.every

    def open_from(self, mark: int) -> int:
        """Where, on the wall, the first window begins that has not ended when event time stands at `mark`."""
        if not NEVER < mark < FOREVER:  # before the first record, also less an allowed lateness
            return NEVER if mark <= NEVER else FOREVER
        start = self.first_in(self.wall(mark) - self.size)
        while self.time(start + self.size) <= mark:
            start += self.every
        while self.time(start - self.every + self.size) > mark:
            start -= self.every
        return start

    def late_before(self, mark: int) -> int:
        """Before which time, on the wall, all windows of a record have ended when event time stands at `mark`."""
        return self.open_from(mark)

    def begins(self, firsts: IntArray) -> IntArray:
        """Where windows begin, on the wall, that end a size after `firsts`: there, if all are as long as their size."""
        return firsts

    def spans(self, pane: int) -> list[Span]:
        """The windows that hold a pane.

        >>> TimeWindow(60, 20).spans(40)
        [(40, 100), (20, 80), (0, 60)]
        """
        last = self.first_in(pane)
        starts = range(last, pane - self.size, -self.every)
        return [(self.time(s), self.time(s + self.size)) for s in starts]


@dataclass(frozen=True)
class CumulatingWindow(TimeWindow):
    """Windows that share a start, one at every whole `size`, and end at every step of `every` after it, up to the size."""

    def __str__(self) -> str:
        offset = f" from {shown(self.offset)}" if self.offset else ""
        zone = f" in {self.timezone}" if self.timezone else ""
        return f"{shown(self.size)} cumulating by {shown(self.every)}{offset}{zone}"

    def late_before(self, mark: int) -> int:
        """Before which time, on the wall, all windows of a record have ended when event time stands at `mark`."""
        first = self.open_from(mark)
        return first if first in (NEVER, FOREVER) else self._start(first + self.size - self.every)

    def begins(self, firsts: IntArray) -> IntArray:
        """Where windows begin, on the wall, that end a size after `firsts`."""
        last = firsts + (self.size - self.every)
        begins: IntArray = last - (last - self.offset) % self.size
        return begins

    def spans(self, pane: int) -> list[Span]:
        """The windows that hold a pane.

        >>> CumulatingWindow(60, 20).spans(20)
        [(0, 40), (0, 60)]
        """
        start = self._start(pane)
        ends = range(self.first_in(pane) + self.every, start + self.size + 1, self.every)
        return [(self.time(start), self.time(end)) for end in ends]

    def _start(self, pane: int) -> int:
        return pane - (pane - self.offset) % self.size


@dataclass(frozen=True)
class SessionWindow:
    """Windows that go on as long as records come less than a gap apart.

    The gap is a span (microseconds), an expression or a function of the record. A record stands for the span from its time to
    the gap after it; spans of a key that overlap are one session.
    """

    gap: int | Expr | Callable[..., Duration]

    def __str__(self) -> str:
        if isinstance(self.gap, int):
            return f"session of {shown(self.gap)}"
        return f"session of {to_text(self.gap) if isinstance(self.gap, Expr) else getattr(self.gap, '__name__', 'own')}"


@dataclass(frozen=True)
class CountWindow:
    """Windows of so many records of a key, one given at every step of `every` records.

    The first is given when it is full, or, as Trident has it (`is_partial`), at the first step with what is there.
    """

    size: int
    every: int
    is_partial: bool = False

    def __str__(self) -> str:
        return f"{self.size} records" if self.every == self.size else f"{self.size} records every {self.every}"

    @property
    def pane(self) -> int:
        """The largest number of records of which all windows are made whole."""
        return math.gcd(self.size, self.every)


@dataclass(frozen=True)
class GlobalWindow:
    """One window for all time."""

    def __str__(self) -> str:
        return "all time"

    span = (NEVER, FOREVER)


WindowSpec = TimeWindow | SessionWindow | CountWindow | GlobalWindow


@dataclass(frozen=True)
class EveryInterval:
    """Emits early results when so much processing time has passed."""

    interval: int

    def __str__(self) -> str:
        return f"every {shown(self.interval)}"


@dataclass(frozen=True)
class EveryRecords:
    """Gives early results when so many more records have come."""

    records: int

    def __str__(self) -> str:
        return f"every {self.records} records"


Early = EveryInterval | EveryRecords


@spelled
def tumbling(size: Duration, *, offset: Duration = 0, timezone: str = "") -> TimeWindow:
    """Windows of a fixed size, one after the other.

    Args:
        size: how long a window is, such as "10s" or "1d".
        offset: moves where windows begin, such as "-1h".
        timezone: a zone such as "Europe/Berlin", by whose clock windows begin and end: a day is from midnight to midnight, be it of 23 or of
            25 hours. Else it is UTC.

    Returns:
        The windows, for `KeyedStream.window` and `Stream.window_join`.

    Raises:
        FlowError: a span of time or the zone is not one.

    >>> import penstock as ps
    >>> str(ps.tumbling("10s")), str(ps.tumbling("1d", timezone="Europe/Berlin"))
    ('10s', '1d in Europe/Berlin')
    """
    span = _positive(size, "the size of a window")
    return TimeWindow(span, span, _offset(offset, span), _zone(timezone))


@spelled
def sliding(size: Duration, every: Duration, *, offset: Duration = 0, timezone: str = "") -> TimeWindow:
    """Windows of a fixed size, one beginning at every step of `every`; they overlap.

    Args:
        size: how long a window is, such as "60s".
        every: how far apart windows begin; at most the size.
        offset: moves where windows begin.
        timezone: a zone such as "Europe/Berlin", by whose clock windows begin and end; else it is UTC.

    Returns:
        The windows, for `KeyedStream.window` and `Stream.window_join`.

    Raises:
        FlowError: a span of time or the zone is not one, or windows would leave gaps or be made of too many pieces.

    >>> import penstock as ps
    >>> str(ps.sliding("60s", every="10s"))
    '1m every 10s'
    """
    span, step = _positive(size, "the size of a window"), _positive(every, "every")
    if step > span:
        raise FlowError(
            f"windows of {shown(span)} every {shown(step)} leave gaps in which records are lost; every is at most the size"
        )
    if span // math.gcd(span, step) > 10_000:
        raise FlowError(
            f"windows of {shown(span)} every {shown(step)} are made of too many pieces; take numbers that divide better"
        )
    return TimeWindow(span, step, _offset(offset, step), _zone(timezone))


@spelled
def cumulating(size: Duration, every: Duration, *, offset: Duration = 0, timezone: str = "") -> CumulatingWindow:
    """Windows that begin together and end one after the other: the day so far, every hour. SQL calls them CUMULATE.

    Args:
        size: how long the last of them is, such as "1d"; the next ones begin at its end.
        every: by how much each is longer than the one before it; the size is a multiple of it.
        offset: moves where windows begin.
        timezone: a zone such as "Europe/Berlin", by whose clock windows begin and end; else it is UTC.

    Returns:
        The windows, for `KeyedStream.window`, `Stream.assign_windows` and `Stream.window_join`.

    Raises:
        FlowError: a span of time or the zone is not one, or the size is no multiple of `every`.

    >>> import penstock as ps
    >>> str(ps.cumulating("1d", every="1h"))
    '1d cumulating by 1h'
    """
    span, step = _positive(size, "the size of a window"), _positive(every, "every")
    if span % step or span // step > 10_000:
        raise FlowError(
            f"cumulating windows expect a size that is a multiple of every, at most 10,000 times, got {shown(span)} every {shown(step)}"
        )
    return CumulatingWindow(span, step, _offset(offset, span), _zone(timezone))


@spelled
def session(gap: Duration | Expr | Callable[..., Duration]) -> SessionWindow:
    """Windows that go on as long as records come less than a gap apart.

    Args:
        gap: a span such as "5m"; or, where it depends on the record, an expression of seconds such as `ps.col("limit")`, or a function of the
            record that returns a span.

    Returns:
        The windows, for `KeyedStream.window`.

    Raises:
        FlowError: the gap is no span of time.

    >>> import penstock as ps
    >>> str(ps.session("5m"))
    'session of 5m'
    """
    if isinstance(gap, Expr):
        return SessionWindow(gap)
    if callable(gap):
        return SessionWindow(gap)
    return SessionWindow(_positive(gap, "the gap of a session"))


@spelled
def count_window(size: int, *, every: int | None = None) -> CountWindow:
    """Windows of so many records of a key.

    Args:
        size: how many records a window has.
        every: after how many records a window over the last `size` ones is emitted; else windows do not overlap.

    Returns:
        The windows, for `KeyedStream.window`.

    Raises:
        FlowError: a number is not one, or `every` is more than the size.

    >>> import penstock as ps
    >>> str(ps.count_window(100)), str(ps.count_window(100, every=10))
    ('100 records', '100 records every 10')
    """
    step = size if every is None else every
    for number, what in ((size, "the size of a count window"), (step, "every")):
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise FlowError(f"{what} is a number of records, got {number!r}")
    if step > size:
        raise FlowError(f"windows of {size} records every {step} leave records out; every is at most the size")
    return CountWindow(size, step)


@spelled
def global_window() -> GlobalWindow:
    """One window for all time. It needs `early`, or `mode="update"` or `"complete"`, since it ends with the input only.

    Returns:
        The window, for `KeyedStream.window`.

    >>> import penstock as ps
    >>> str(ps.global_window())
    'all time'
    """
    return GlobalWindow()


@spelled
def every_interval(interval: Duration) -> EveryInterval:
    """Early results, each time so much processing time has passed: `window(..., early=ps.every_interval("5s"))`.

    Args:
        interval: how much, such as "5s".

    Returns:
        The trigger, for `KeyedStream.window(..., early=)`.

    Raises:
        FlowError: it is no span of time above zero.

    >>> import penstock as ps
    >>> str(ps.every_interval("5s"))
    'every 5s'
    """
    return EveryInterval(_positive(interval, "the interval of early results"))


@spelled
def every_records(records: int) -> EveryRecords:
    """Early results, each time so many more records of a window have come: `window(..., early=ps.every_records(100))`.

    Args:
        records: how many.

    Returns:
        The trigger, for `KeyedStream.window(..., early=)`.

    Raises:
        FlowError: it is no number above zero.

    >>> import penstock as ps
    >>> str(ps.every_records(100))
    'every 100 records'
    """
    if not isinstance(records, int) or isinstance(records, bool) or records < 1:
        raise FlowError(f"early results come each so many records, got {records!r}")
    return EveryRecords(records)


def gap_expression(gap: Expr) -> Expr:
    """The gap of a session as an expression of microseconds."""
    return Cast(gap * 1_000_000, BIGINT)


@lru_cache(maxsize=1 << 14)
def wall_of(time: int, zone: str) -> int:
    """Local time at a moment.

    >>> wall_of(0, "Europe/Berlin") // 3_600_000_000
    1
    """
    moment = to_moment(time)
    offset = moment.astimezone(zoneinfo.ZoneInfo(zone)).utcoffset() or datetime.timedelta()
    return time + offset // datetime.timedelta(microseconds=1)


@lru_cache(maxsize=1 << 14)
def time_of(wall: int, zone: str) -> int:
    """The first moment of a local time; where it is moved past it, as long after the move as it should be."""
    naive = to_moment(wall).replace(tzinfo=None)
    offset = naive.replace(tzinfo=zoneinfo.ZoneInfo(zone)).utcoffset() or datetime.timedelta()
    return to_micros(naive) - offset // datetime.timedelta(microseconds=1)


def _positive(given: object, what: str) -> int:
    span = micros(given, f"{what} ({user_line()})")
    if span <= 0:
        raise FlowError(f"{what} must be above zero, got {given!r}")
    return span


def _offset(given: Duration, step: int) -> int:
    below = isinstance(given, str) and given.strip().startswith("-")
    plain = given.strip().removeprefix("-") if isinstance(given, str) else given
    span = micros(plain, f"offset ({user_line()})")
    return (-span if below else span) % step


def _zone(name: str) -> str:
    if not name:
        return ""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        known = nearest(name, zoneinfo.available_timezones())
        raise FlowError(f"no time zone {name!r}; {known}") from None
    return name
