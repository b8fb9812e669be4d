"""Spans, crontabs and schedules as pattern text writes them."""

from __future__ import annotations

import datetime
import re

from penstock.frontends.patterns.reading import Piece, Text, parts_of
from penstock.graph.patterns.calendar import LAST, LAST_WORKDAY, NAMES, RANGES, CrontabTimes, MonthSpan, ScheduleTimes
from penstock.graph.patterns.operators import Span
from penstock.graph.times import to_micros

_SECOND = 1_000_000
UNITS = {
    "week": 604_800 * _SECOND, "weeks": 604_800 * _SECOND, "w": 604_800 * _SECOND,
    "day": 86_400 * _SECOND, "days": 86_400 * _SECOND, "d": 86_400 * _SECOND,
    "hour": 3_600 * _SECOND, "hours": 3_600 * _SECOND, "h": 3_600 * _SECOND,
    "minute": 60 * _SECOND, "minutes": 60 * _SECOND, "min": 60 * _SECOND, "m": 60 * _SECOND,
    "second": _SECOND, "seconds": _SECOND, "sec": _SECOND, "s": _SECOND,
    "millisecond": 1_000, "milliseconds": 1_000, "msec": 1_000, "ms": 1_000,
    "microsecond": 1, "microseconds": 1, "usec": 1, "us": 1,
}  # fmt: skip
"""The microseconds of each unit of a span."""
MONTHS = {"month": 1, "months": 1, "year": 12, "years": 12}
"""The months of the units that have no fixed length."""
_SECONDS = re.compile(r"(\d{1,12}(?:\.\d*)?|\.\d+)[dDfFlL]?")
_AMOUNT = re.compile(r"\s*(\d{1,12}(?:\.\d*)?|\.\d+)\s*([^\W\d]+)")
_NEGATIVE = re.compile(r"-\s*(?:\d+(?:\.\d*)?|\.\d+)\s*[^\W\d]*")
_LONGEST = 100 * 366 * 86_400 * _SECOND


def read_span(text: Text, piece: Piece) -> Span:
    """A span: seconds, amounts with units such as `1 hour 30 min`, or an expression of seconds over what was tagged."""
    written = piece.text
    if not written:
        raise text.error(piece.at, "expected a span of time such as 10 sec, got nothing")
    if _SECONDS.fullmatch(written):
        return _checked(text, piece, round(float(written.rstrip("dDfFlL")) * _SECOND))
    if _NEGATIVE.fullmatch(written):
        raise text.error(piece.at, f"expected a span of time such as 10 sec, from 0 on, got {written}")
    if not _AMOUNT.match(written) and not written[0].isdigit():
        return text.expression(piece)
    made = _amounts(text, piece)
    return made if isinstance(made, MonthSpan) else _checked(text, piece, made)


def _amounts(text: Text, piece: Piece) -> int | MonthSpan:
    total, months, at = 0, 0, 0
    while at < len(piece.text):
        found = _AMOUNT.match(piece.text, at)
        if found is None:
            raise text.error(
                piece.at + at, f"expected a number and a unit such as 10 sec, got {piece.text[at:].strip()!r}"
            )
        number, unit = found.group(1), found.group(2).lower()
        if unit in MONTHS:
            months += _whole(text, Piece(number, piece.at + found.start(1))) * MONTHS[unit]
        elif unit in UNITS:
            total += round(float(number) * UNITS[unit])
        else:
            raise text.error(
                piece.at + found.start(2), f"expected a unit such as hours, min, sec or msec, got {found.group(2)!r}"
            )
        at = found.end()
    if not months:
        return total
    if months > 1_200:
        raise text.error(piece.at, f"expected a span of at most 100 years, got {piece.text}")
    return MonthSpan(months, total)


def _whole(text: Text, piece: Piece) -> int:
    if not piece.text.isdecimal():
        raise text.error(piece.at, f"expected a whole number of months or years, got {piece.text}")
    return int(piece.text)


def _checked(text: Text, piece: Piece, span: int) -> int:
    if span > _LONGEST:
        raise text.error(piece.at, f"expected a span of at most 100 years, got {piece.text}")
    return span


def read_fixed_span(text: Text, piece: Piece) -> int:
    """A span that no event decides."""
    made = read_span(text, piece)
    if not isinstance(made, int):
        why = "; a month or a year has no fixed length here, write days" if isinstance(made, MonthSpan) else ""
        raise text.error(piece.at, f"expected a span of time such as 10 sec, got {piece.text!r}{why}")
    return made


_DAYS = ("sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday")
_MONTHS = (
    "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_ITEM = re.compile(r"(?:(\*)|(\w+)(?:\s*:\s*(\w+))?)(?:\s*/\s*(\d+))?")


def read_crontab(text: Text, whole: Piece) -> CrontabTimes:
    """The five or six fields of a crontab: minutes, hours, days of the month, months, days of the week, and perhaps seconds."""
    fields = parts_of(whole)
    if not 5 <= len(fields) <= 6:
        raise text.error(
            whole.at,
            f"expected five or six values (minutes, hours, days, months, days of the week, seconds), got {len(fields)}",
        )
    minutes, hours, days, months, weekdays, *seconds = [_field(text, field, at) for at, field in enumerate(fields)]
    return CrontabTimes(minutes, hours, days, months, weekdays, seconds[0] if seconds else (0,))


def _field(text: Text, field: Piece, kind: int) -> tuple[int, ...] | None:
    if field.text.startswith("[") and field.text.endswith("]"):
        items = parts_of(Piece(field.text[1:-1], field.at + 1))
        if not items:
            raise text.error(field.at, "expected values in the list, got none")
        found = [_values(text, item, kind) for item in items]
        return None if None in found else tuple(sorted({v for each in found for v in each or ()}))
    return _values(text, field, kind)


def _values(text: Text, item: Piece, kind: int) -> tuple[int, ...] | None:
    """The values of one item; None for all."""
    special = _last(item.text.lower(), kind)
    if special is not None:
        return special
    found = _ITEM.fullmatch(item.text)
    if found is None:
        raise text.error(
            item.at,
            f"expected *, a number, a range such as 1:5 or a list in [] for the {NAMES[kind]}, got {item.text!r}",
        )
    star, first, last, step = found.groups()
    low, high = RANGES[kind]
    if not star:
        low = _number(text, item, first, kind)
        high = low if last is None and step is None else high if last is None else _number(text, item, last, kind)
    if step is None:
        return None if star else tuple(range(low, high + 1))
    if int(step) < 1:
        raise text.error(item.at, f"expected a step of at least 1, got {item.text!r}")
    return tuple(range(low, high + 1, int(step)))


def _last(written: str, kind: int) -> tuple[int, ...] | None:
    """The words for the end of a month: last, lastweekday, and 5 last for the last Friday."""
    if kind == 2 and written in ("last", "lastweekday"):
        return (LAST,) if written == "last" else (LAST_WORKDAY,)
    if kind == 4 and written == "last":
        return (6,)
    found = re.fullmatch(r"(\w+)\s+last", written)
    if kind == 4 and found:
        return tuple(-1 - day for day in _named(found.group(1), kind)[:1]) or None
    return None


def _named(word: str, kind: int) -> list[int]:
    """The values that a name stands for, by its first three letters or more."""
    names = {3: _MONTHS, 4: _DAYS}.get(kind, ())
    if word.isdigit():
        return [int(word)]
    offset = 1 if kind == 3 else 0
    return [at + offset for at, name in enumerate(names) if len(word) >= 3 and name.startswith(word.lower())]


def _number(text: Text, item: Piece, word: str, kind: int) -> int:
    low, high = RANGES[kind]
    found = _named(word, kind)
    if len(found) != 1 or not low <= found[0] <= high + (kind == 4):
        raise text.error(item.at, f"expected {NAMES[kind]} from {low} to {high}, got {word!r}")
    return found[0] % 7 if kind == 4 else found[0]


_NAMED = re.compile(r"(\w+)\s*:\s*(.*)", re.DOTALL)
_PERIOD = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")


def read_schedule(text: Text, whole: Piece) -> ScheduleTimes:
    """A schedule: `iso: 'R3/2026-01-01T00:00:00Z/PT1M'`, or `date: '...', repetitions: 3, period: 1 min`."""
    given: dict[str, Piece] = {}
    for part in parts_of(whole):
        found = _NAMED.fullmatch(part.text)
        if found is None or found.group(1).lower() not in ("iso", "date", "repetitions", "period"):
            raise text.error(part.at, f"expected iso:, date:, repetitions: or period:, got {part.text!r}")
        given[found.group(1).lower()] = Piece(found.group(2).strip(), part.at + found.start(2))
    if not given:
        raise text.error(whole.at, "expected iso: 'R3/2026-01-01T00:00:00Z/PT1M', or date: and period:, got nothing")
    if "iso" in given:
        return _iso(text, given["iso"])
    begin = _moment(text, given["date"], _quoted(given["date"])) if "date" in given else None
    period = read_fixed_span(text, given["period"]) if "period" in given else None
    if "repetitions" not in given:
        return _sound(text, whole, *_once(begin, period))
    return _sound(text, whole, begin, period, _repetitions(text, given["repetitions"]))


def _once(begin: int | None, period: int | None) -> tuple[int | None, int | None, int]:
    """A schedule without repetitions: one moment, a period after its date where it has both."""
    if begin is None or period is None:
        return begin, period, 1
    return begin + period, None, 1


def _sound(text: Text, piece: Piece, begin: int | None, period: int | None, repetitions: int | None) -> ScheduleTimes:
    if begin is None and period is None:
        raise text.error(piece.at, "expected a date, a period, or both")
    if period is None and repetitions != 1:
        raise text.error(piece.at, "expected a period, as the schedule has repetitions")
    if period is not None and period <= 0:
        raise text.error(piece.at, "expected a period above zero")
    return ScheduleTimes(begin, period, repetitions)


def _quoted(piece: Piece) -> str:
    return (
        piece.text[1:-1]
        if len(piece.text) > 1 and piece.text[0] in "'\"" and piece.text[-1] == piece.text[0]
        else piece.text
    )


def _repetitions(text: Text, piece: Piece) -> int | None:
    if not re.fullmatch(r"-?\d{1,9}", piece.text):
        raise text.error(piece.at, f"expected a number of repetitions, got {piece.text!r}")
    return None if int(piece.text) < 0 else int(piece.text)


def _moment(text: Text, piece: Piece, written: str) -> int:
    try:
        return to_micros(datetime.datetime.fromisoformat(written))
    except (ValueError, OverflowError):
        raise text.error(piece.at, f"expected a date such as '2026-01-01T00:00:00Z', got {piece.text!r}") from None


def _iso(text: Text, piece: Piece) -> ScheduleTimes:
    """The parts of an ISO 8601 schedule: repetitions, begin and period, of which some may be missing."""
    parts = [each for each in _quoted(piece).split("/") if each]
    repetitions, recurs = None, False
    if parts and re.fullmatch(r"R\d{0,9}", parts[0]):
        written = parts.pop(0)[1:]
        repetitions, recurs = int(written) if written else None, True
    period = _period(text, piece, parts.pop()) if parts and parts[-1].startswith("P") else None
    if len(parts) > 1:
        raise text.error(piece.at, f"expected R3/2026-01-01T00:00:00Z/PT1M, got {piece.text!r}")
    begin = _moment(text, piece, parts[0]) if parts else None
    return _sound(text, piece, *((begin, period, repetitions) if recurs else _once(begin, period)))


def _period(text: Text, piece: Piece, written: str) -> int:
    found = _PERIOD.fullmatch(written)
    if found is None or not any(found.groups()):
        raise text.error(piece.at, f"expected a period such as PT1M or P1DT12H, got {written!r}")
    weeks, days, hours, minutes, seconds = (float(each or 0) for each in found.groups())
    return _checked(
        text, piece, round((((weeks * 7 + days) * 24 + hours) * 60 + minutes) * 60 * _SECOND + seconds * _SECOND)
    )
