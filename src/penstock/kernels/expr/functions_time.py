"""Functions of dates and timestamps; timestamps are in UTC."""

from __future__ import annotations

import calendar
import datetime
from collections.abc import Callable
from typing import Any

from penstock.graph.expr.coerce import TypedExpr
from penstock.kernels.expr.cast import micros_of, moment_of, seconds_to_moment
from penstock.kernels.expr.functions_math import months_later
from penstock.kernels.expr.pattern import format_moment, read_moment

_DAY = datetime.timedelta(days=1)
_UNITS = {
    "yy": "year",
    "yyyy": "year",
    "mon": "month",
    "mm": "month",
    "dd": "day",
}
_DATE_UNITS = ("year", "quarter", "month", "week")
_TIME_UNITS = ("day", "hour", "minute", "second", "millisecond", "microsecond")


def _trunc_date(date: datetime.date, unit: str) -> datetime.date | None:
    name = _UNITS.get(unit.lower(), unit.lower())
    if name == "week":
        return date - date.weekday() * _DAY
    starts = {"year": 1, "quarter": (date.month - 1) // 3 * 3 + 1, "month": date.month}
    return date.replace(month=starts[name], day=1) if name in starts else None


def _date_trunc(unit: str, moment: datetime.datetime) -> datetime.datetime | None:
    name = _UNITS.get(unit.lower(), unit.lower())
    if name in _DATE_UNITS:
        date = _trunc_date(moment.date(), name)
        return datetime.datetime.combine(date, datetime.time(), moment.tzinfo) if date else None
    return _time_trunc(name, moment) if name in _TIME_UNITS else None


def _time_trunc(name: str, moment: datetime.datetime) -> datetime.datetime:
    if name == "microsecond":
        return moment
    if name == "millisecond":
        return moment.replace(microsecond=moment.microsecond // 1000 * 1000)
    parts = dict.fromkeys(("hour", "minute", "second", "microsecond")[_TIME_UNITS.index(name) :], 0)
    return moment.replace(**parts)  # type: ignore[arg-type]


def _last_day(date: datetime.date) -> datetime.date:
    return date.replace(day=calendar.monthrange(date.year, date.month)[1])


def _add_months(date: datetime.date, months: int) -> datetime.date:
    moved: datetime.date = months_later(date, months)
    return moved


def _to_date(node: TypedExpr) -> Callable[..., Any]:
    return (lambda text, pattern: read_moment(text, pattern).date()) if len(node.args) == 2 else lambda date: date


def _to_timestamp(node: TypedExpr) -> Callable[..., Any]:
    return read_moment if len(node.args) == 2 else lambda moment: moment


def _unix_timestamp(node: TypedExpr) -> Callable[..., Any]:
    if len(node.args) == 2:
        return lambda text, pattern: _whole_seconds(read_moment(text, pattern))
    return _whole_seconds


def _seconds(moment: datetime.datetime) -> int:
    return micros_of(moment) // 1_000_000


def _whole_seconds(moment: datetime.datetime) -> int:
    """Towards 1970, as unix_timestamp cuts; unix_seconds goes down instead."""
    micros = micros_of(moment)
    return -(-micros // 1_000_000) if micros < 0 else micros // 1_000_000


PLAIN: dict[str, Callable[..., Any]] = {
    "add_months": _add_months,
    "date_add": lambda date, days: date + days * _DAY,
    "date_format": format_moment,
    "date_sub": lambda date, days: date - days * _DAY,
    "date_trunc": _date_trunc,
    "datediff": lambda end, start: (end - start).days,
    "day": lambda date: date.day,
    "dayofweek": lambda date: date.isoweekday() % 7 + 1,
    "dayofyear": lambda date: date.timetuple().tm_yday,
    "hour": lambda moment: moment.hour,
    "last_day": _last_day,
    "minute": lambda moment: moment.minute,
    "month": lambda date: date.month,
    "quarter": lambda date: (date.month - 1) // 3 + 1,
    "second": lambda moment: moment.second,
    "timestamp_micros": moment_of,
    "timestamp_millis": lambda millis: moment_of(millis * 1000),
    "timestamp_seconds": seconds_to_moment,
    "trunc": _trunc_date,
    "unix_micros": micros_of,
    "unix_millis": lambda moment: micros_of(moment) // 1000,
    "unix_seconds": _seconds,
    "weekday": lambda date: date.weekday(),
    "weekofyear": lambda date: date.isocalendar().week,
    "year": lambda date: date.year,
}

TYPED: dict[str, Callable[[TypedExpr], Callable[..., Any]]] = {
    "to_date": _to_date,
    "to_timestamp": _to_timestamp,
    "unix_timestamp": _unix_timestamp,
}
