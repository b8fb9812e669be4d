"""Moments on the calendar: those that a crontab names, and those of a schedule. All in UTC, in microseconds since 1970."""

from __future__ import annotations

import calendar
import datetime
from dataclasses import dataclass

from penstock.graph.duration import shown
from penstock.graph.times import FOREVER, to_micros, to_moment

LAST = 100
"""The last day of a month, whichever it is; with a weekday subtracted, the last such weekday."""
LAST_WORKDAY = 200
"""The last day of a month that is neither a Saturday nor a Sunday."""
NAMES = ("minutes", "hours", "days of the month", "months", "days of the week", "seconds")
"""What the fields of a crontab are, in the order they are written."""
RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6), (0, 59))
_YEARS = 30
"""As many years ahead a moment is looked for; every date there is comes within 28 of them, but for a turn of a century."""


@dataclass(frozen=True)
class MonthSpan:
    """A span of months, which have no fixed length, and microseconds. A day that its month does not have is the last of it.

    >>> to_moment(MonthSpan(1).after(to_micros(datetime.datetime(2026, 1, 31)))).isoformat()
    '2026-02-28T00:00:00+00:00'
    """

    months: int
    micros: int = 0

    def __str__(self) -> str:
        years, months = divmod(self.months, 12)
        parts = [
            f"{many} {unit}{'s' if many > 1 else ''}" for many, unit in ((years, "year"), (months, "month")) if many
        ]
        return " ".join([*parts, *([f"{self.micros / 1_000_000:.6f} sec"] if self.micros else [])])

    def after(self, time: int) -> int:
        """The time so much after another."""
        start = to_moment(time)
        years, month = divmod(start.month - 1 + self.months, 12)
        year = start.year + years
        if year > datetime.MAXYEAR:
            return FOREVER
        day = min(start.day, calendar.monthrange(year, month + 1)[1])
        return to_micros(start.replace(year=year, month=month + 1, day=day)) + self.micros


@dataclass(frozen=True)
class CrontabTimes:
    """The moments of a crontab: the values of each field, None for all. A week starts with Sunday, which is 0.

    Where both the day of the month and that of the week are given, one of them is enough, as ever with crontabs.

    >>> noon = CrontabTimes((0,), (12,), None, None, None)
    >>> to_moment(noon.after(0)).isoformat()
    '1970-01-01T12:00:00+00:00'
    """

    minutes: tuple[int, ...] | None
    hours: tuple[int, ...] | None
    days: tuple[int, ...] | None
    months: tuple[int, ...] | None
    weekdays: tuple[int, ...] | None
    seconds: tuple[int, ...] | None = (0,)

    @property
    def fields(self) -> tuple[tuple[int, ...] | None, ...]:
        """The fields in the order they are written."""
        return (self.minutes, self.hours, self.days, self.months, self.weekdays, self.seconds)

    def __str__(self) -> str:
        shown_fields = ["*" if each is None else _list(each) for each in self.fields]
        return ", ".join(shown_fields[: 5 if self.seconds == (0,) else 6])

    def after(self, time: int) -> int:
        """The first moment after a time; FOREVER where none comes in the next decades."""
        moment = to_moment(time).replace(microsecond=0) + datetime.timedelta(seconds=1)
        day = moment.date()
        end = day.replace(year=min(day.year + _YEARS, datetime.MAXYEAR - 1), day=1)
        while day <= end:
            if not self._has_month(day):
                day = _next_month(day)
                continue
            found = self._in_day(moment.time() if day == moment.date() else datetime.time()) if self._has(day) else None
            if found is not None:
                return to_micros(datetime.datetime.combine(day, found, datetime.UTC))
            day += datetime.timedelta(days=1)
        return FOREVER

    def _has_month(self, day: datetime.date) -> bool:
        return self.months is None or day.month in self.months

    def _has(self, day: datetime.date) -> bool:
        chosen = [
            [day.day in _days(each, day) for each in self.days or ()],
            [_is_weekday(each, day) for each in self.weekdays or ()],
        ]
        given = [each for each in chosen if each]
        return not given or any(any(each) for each in given)

    def _in_day(self, begin: datetime.time) -> datetime.time | None:
        for hour in _from(self.hours, begin.hour, 23):
            minute_from = begin.minute if hour == begin.hour else 0
            for minute in _from(self.minutes, minute_from, 59):
                is_first = hour == begin.hour and minute == begin.minute
                second = next(iter(_from(self.seconds, begin.second if is_first else 0, 59)), None)
                if second is not None:
                    return datetime.time(hour, minute, second)
        return None


def _list(values: tuple[int, ...]) -> str:
    names = [
        "last" if v == LAST else "lastweekday" if v == LAST_WORKDAY else f"{-v - 1} last" if v < 0 else str(v)
        for v in values
    ]
    return names[0] if len(names) == 1 else f"[{', '.join(names)}]"


def _from(values: tuple[int, ...] | None, low: int, high: int) -> list[int]:
    return list(range(low, high + 1)) if values is None else [v for v in values if low <= v <= high]


def _next_month(day: datetime.date) -> datetime.date:
    return (day.replace(day=1) + datetime.timedelta(days=32)).replace(day=1)


def _days(value: int, day: datetime.date) -> tuple[int, ...]:
    """The days of a month that a value of the third field means."""
    last = calendar.monthrange(day.year, day.month)[1]
    if value == LAST:
        return (last,)
    if value == LAST_WORKDAY:
        back = max(0, day.replace(day=last).weekday() - 4)
        return (last - back,)
    return (value,)


def _is_weekday(value: int, day: datetime.date) -> bool:
    """Whether a day is the weekday of a value; below zero is the last such weekday of the month: -1 - weekday."""
    today = (day.weekday() + 1) % 7
    if value >= 0:
        return today == value % 7
    is_last = day.day + 7 > calendar.monthrange(day.year, day.month)[1]
    return is_last and today == -1 - value


@dataclass(frozen=True)
class ScheduleTimes:
    """The moments of a schedule: from a date on, or from the start of the expression, each so long after the one before.

    Args:
        begin: the first moment; None is one period after the start.
        period: microseconds from one moment to the next; None for one moment only.
        repetitions: how many moments there are; None is any number.
    """

    begin: int | None
    period: int | None = None
    repetitions: int | None = 1

    def __str__(self) -> str:
        made = [] if self.begin is None else [f"date: '{to_moment(self.begin).isoformat()}'"]
        made += [] if self.period is None else [f"period: {shown(self.period)}"]
        return ", ".join([*made, f"repetitions: {-1 if self.repetitions is None else self.repetitions}"])

    def first(self, start: int) -> tuple[int, int | None]:
        """The first moment after a start, and how many there are from it on; FOREVER when all have passed."""
        if self.begin is None:
            return start + (self.period or 0), self.repetitions
        passed = 0
        if self.begin <= start:
            if self.period is None:
                return FOREVER, 0
            passed = (start - self.begin) // self.period + 1
        left = None if self.repetitions is None else self.repetitions - passed
        if left is not None and left <= 0:
            return FOREVER, 0
        return self.begin + passed * (self.period or 0), left
