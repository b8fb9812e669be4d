"""Spans of time as people write them: `500ms`, `20s`, `1h30m`, a `timedelta`, or a number of seconds."""

from __future__ import annotations

import datetime
import re
from typing import TypeAlias

from penstock.errors import FlowError

Span: TypeAlias = str | int | float | datetime.timedelta
"""A span of time as the user writes it."""
WRITTEN = "a span of time such as 500ms, 20s, 5m, 1h or 1d"
"""What is expected, for messages."""
_UNITS = {"ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000, "d": 86_400_000_000}
_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")
_SHOWN = (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000))


def micros(span: object, what: str = "a span of time") -> int:
    """The microseconds of a span.

    >>> micros("500ms"), micros("1h30m"), micros(2), micros(datetime.timedelta(minutes=1))
    (500000, 5400000000, 2000000, 60000000)
    """
    if isinstance(span, datetime.timedelta):
        return span // datetime.timedelta(microseconds=1)
    if isinstance(span, int | float) and not isinstance(span, bool):
        return round(span * 1_000_000)
    if isinstance(span, str):
        return _parsed(span, what)
    raise FlowError(f"{what} is a text such as '10s', a timedelta, or a number of seconds, got {span!r}")


def checked_span(given: Span, what: str, *, least: int = 0) -> int:
    """The microseconds of a span that must not be below zero, or must be at least `least`.

    >>> checked_span("10s", "lateness")
    10000000
    """
    span = micros(given, what)
    if span < 0 or span < least:
        above = "is below zero" if least <= 0 else "must be above zero, such as '1h'"
        raise FlowError(f"{what} is a span of time; {given!r} {above}")
    return span


def _parsed(text: str, what: str) -> int:
    written = text.strip().lower()
    if re.fullmatch(r"\d+(\.\d+)?", written):
        return round(float(written) * 1_000_000)
    if not written or _SPAN.sub("", written):
        raise FlowError(f"{what}: expected {WRITTEN}, got {text!r}")
    return sum(round(float(n) * _UNITS[unit]) for n, unit in _SPAN.findall(written))


def shown(span: int) -> str:
    """A span of microseconds as people write it.

    >>> shown(5400000000), shown(500000), shown(0), shown(7)
    ('1h30m', '500ms', '0s', '7us')
    """
    made, rest = "", span
    for unit, size in _SHOWN:
        many, rest = divmod(rest, size)
        made += f"{many}{unit}" if many else ""
    return f"{made}{rest}us" if rest else made or "0s"
