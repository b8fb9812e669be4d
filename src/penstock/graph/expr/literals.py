"""Constants spelled in text: numbers, dates, timestamps, units of intervals.

>>> str(read_number("1.5").type), str(read_number("1e0").type), str(read_number("7L").type)
('decimal(2,1)', 'double', 'bigint')
"""

from __future__ import annotations

import datetime
import decimal
import re
import struct
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from penstock.errors import ExpressionError, nearest
from penstock.graph import types as t
from penstock.graph.expr.model import Literal, decimal_type, lit

_NUMBER = re.compile(r"([-+]?)(\d*\.?\d*(?:[eE][+-]?\d+)?)(BD|bd|[LlSsYyDdFf])?")

_SUFFIXES = {"y": (t.TINYINT, 7), "s": (t.SMALLINT, 15), "l": (t.BIGINT, 63)}

_UNITS = {
    "week": datetime.timedelta(weeks=1),
    "day": datetime.timedelta(days=1),
    "hour": datetime.timedelta(hours=1),
    "minute": datetime.timedelta(minutes=1),
    "second": datetime.timedelta(seconds=1),
    "millisecond": datetime.timedelta(milliseconds=1),
    "microsecond": datetime.timedelta(microseconds=1),
}

_DAY = re.compile(r"\+?(\d{4,7})(?:-(\d{1,2})(?:-(\d{1,2}))?)?", re.ASCII)

_TIME = re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:\.(\d*))?|(?=$))|(\d{1,2})(?=$)", re.ASCII)

_OFFSET = re.compile(r"(?:UTC|GMT|UT)?([+-])(\d{1,2})(?::(?=\d$)|:?(?=\d\d))?(\d{1,2})?(?::?(\d{2}))?", re.ASCII)

_TIME_ONLY = re.compile(r"T|\d{1,2}:", re.ASCII)

_BLANKS = "".join(map(chr, (*range(0x21), *range(0x7F, 0xA0))))

_ZONES = {
    "ACT": "Australia/Darwin",
    "AET": "Australia/Sydney",
    "AGT": "America/Argentina/Buenos_Aires",
    "ART": "Africa/Cairo",
    "AST": "America/Anchorage",
    "BET": "America/Sao_Paulo",
    "BST": "Asia/Dhaka",
    "CAT": "Africa/Harare",
    "CNT": "America/St_Johns",
    "CST": "America/Chicago",
    "CTT": "Asia/Shanghai",
    "EAT": "Africa/Addis_Ababa",
    "ECT": "Europe/Paris",
    "IET": "America/Indiana/Indianapolis",
    "IST": "Asia/Kolkata",
    "JST": "Asia/Tokyo",
    "MIT": "Pacific/Apia",
    "NET": "Asia/Yerevan",
    "NST": "Pacific/Auckland",
    "PLT": "Asia/Karachi",
    "PNT": "America/Phoenix",
    "PRT": "America/Puerto_Rico",
    "PST": "America/Los_Angeles",
    "SST": "Pacific/Guadalcanal",
    "VST": "Asia/Ho_Chi_Minh",
}
"""The short names of time zones that Java knows and Python does not."""


LONGEST = 400
"""So many characters a number may have: more than any type holds, and Python reads no number of thousands of digits."""


def read_number(text: str) -> Literal:
    """The constant a number stands for, with the type its spelling gives it."""
    found = _NUMBER.fullmatch(text)
    if not found:
        raise ExpressionError(f"{text!r} is no number")
    if len(text) > LONGEST:
        raise ExpressionError(f"a number has at most {LONGEST} characters, got {len(text)}")
    sign, digits, suffix = found[1], found[2], (found[3] or "").lower()
    if suffix in _SUFFIXES:
        return _sized(sign + digits, *_SUFFIXES[suffix])
    if suffix == "bd":
        value = decimal.Decimal(sign + digits)
        return Literal(value, decimal_type(value))
    if suffix == "f":
        return Literal(_single(float(sign + digits)), t.FLOAT)
    if suffix == "d" or "e" in digits.lower():
        return Literal(float(sign + digits), t.DOUBLE)
    return _plain(sign + digits)


def _single(value: float) -> float:
    """The nearest number of four bytes."""
    return float(struct.unpack("f", struct.pack("f", value))[0])


def _plain(text: str) -> Literal:
    if "." not in text:
        made = lit(int(text))
        assert isinstance(made, Literal)
        return Literal(decimal.Decimal(made.value), made.type) if isinstance(made.type, t.Decimal) else made
    value = decimal.Decimal(text)
    return Literal(value, decimal_type(value))


def _sized(text: str, kind: t.DataType, bits: int) -> Literal:
    if not re.fullmatch(r"[-+]?\d+", text) or not -(2**bits) <= int(text) < 2**bits:
        raise ExpressionError(f"{text} does not fit in {kind}")
    return Literal(int(text), kind)


def read_date(text: str) -> Literal:
    """The constant of date '...'."""
    return Literal(to_date(text), t.DATE)


def read_timestamp(text: str) -> Literal:
    """The constant of timestamp '...'."""
    return Literal(to_timestamp(text), t.TIMESTAMP)


MONTHS = {"month": 1, "quarter": 3, "year": 12}
"""Units that have no fixed length, in months."""


def interval_unit(name: str) -> tuple[datetime.timedelta, bool]:
    """The length of a unit of time, and whether it is a day or longer."""
    plain = name.lower().removesuffix("s")
    if plain not in _UNITS:
        raise ExpressionError(
            f"an interval has units from microseconds to weeks, got {name!r}; {nearest(plain, _UNITS)}"
        )
    return _UNITS[plain], plain in ("week", "day")


def to_date(text: str) -> datetime.date:
    """A text as a date: yyyy, yyyy-mm or yyyy-mm-dd; what follows a blank or a T is dropped."""
    trimmed = text.strip(_BLANKS)
    found = _DAY.match(trimmed)
    rest = trimmed[found.end() :] if found else ""
    if not found or (rest and not (found[3] and rest[0] in " T")):
        raise ExpressionError(f"{text!r} is no date; a date is spelled yyyy-mm-dd")
    try:
        return datetime.date(int(found[1]), int(found[2] or 1), int(found[3] or 1))
    except ValueError as error:
        raise ExpressionError(f"{text!r} is no date: {error}") from None


def to_timestamp(text: str, *, zoned: bool = True) -> datetime.datetime:
    """A text as a moment: yyyy-mm-dd hh:mm:ss.ffffff with any part after the year left out, and perhaps a zone.

    A time of day alone is that of today, as in Spark. Without `zoned` neither that nor a zone is allowed.
    """
    trimmed = text.strip(_BLANKS)
    if zoned and _TIME_ONLY.match(trimmed):
        trimmed = f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}T{trimmed.removeprefix('T')}"
    found = _DAY.match(trimmed)
    if not found or len(found[1]) > _YEAR_DIGITS:
        raise ExpressionError(f"{text!r} is no timestamp; it is spelled yyyy-mm-dd hh:mm:ss")
    try:
        return _moment(found, trimmed[found.end() :], zoned=zoned)
    except (ValueError, OverflowError) as error:
        raise ExpressionError(f"{text!r} is no timestamp: {error}") from None


_YEAR_DIGITS = 6


def _moment(day: re.Match[str], rest: str, *, zoned: bool) -> datetime.datetime:
    midnight = datetime.datetime(int(day[1]), int(day[2] or 1), int(day[3] or 1), tzinfo=datetime.UTC)
    if not rest:
        return midnight
    time = _TIME.match(rest, 1) if day[3] and rest[0] in " T" else None
    if time is None:
        raise ValueError(f"{rest!r} is no time of day")
    hour, minute, second, fraction, only_hour = time.groups()
    micros = int((fraction or "")[:6].ljust(6, "0"))
    local = midnight.replace(
        hour=int(hour or only_hour), minute=int(minute or 0), second=int(second or 0), microsecond=micros
    )
    zone = rest[time.end() :].strip(_BLANKS)
    if zone and not zoned:
        raise ValueError(f"{zone!r} is a time zone, which it has none of")
    return local.replace(tzinfo=time_zone(zone)).astimezone(datetime.UTC)


def time_zone(text: str) -> datetime.tzinfo:
    """The time zone of a name such as Europe/Berlin, or of an offset such as +02:00; no name is UTC.

    Raises:
        ValueError: there is none of that name.
    """
    if text in ("", "Z", "UTC", "GMT", "UT"):
        return datetime.UTC
    found = _OFFSET.fullmatch(text)
    if found:
        span = datetime.timedelta(hours=int(found[2]), minutes=int(found[3] or 0), seconds=int(found[4] or 0))
        if span > datetime.timedelta(hours=18):
            raise ValueError(f"{text!r} is no time zone")
        return datetime.timezone(-span if found[1] == "-" else span)
    try:
        return ZoneInfo(_ZONES.get(text, text))
    except (
        ZoneInfoNotFoundError,
        ValueError,
        OSError,
    ):  # a zone is a file: its name may be that of a directory, or too long
        raise ValueError(f"{text!r} is no time zone") from None
