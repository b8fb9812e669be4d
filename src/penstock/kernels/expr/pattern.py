"""Java's patterns for dates and times: the letters y M d H h m s S a E, and text in quotes.

>>> format_moment(datetime.datetime(2024, 5, 1, 9, 7), "dd/MM/yy H:mm")
'01/05/24 9:07'
"""

from __future__ import annotations

import calendar
import datetime
import re
from functools import lru_cache

from penstock.errors import NotYet

_PIECE = re.compile(r"([A-Za-z])\1*|'((?:[^']|'')*)'|([^A-Za-z']+)")
_MONTHS = list(calendar.month_name)
_SHORT = {name[:3]: number for number, name in enumerate(_MONTHS) if name}
_WIDTHS = {"y": 4, "M": 2, "d": 2, "H": 2, "h": 2, "m": 2, "s": 2}


@lru_cache(maxsize=256)
def pieces(pattern: str) -> tuple[tuple[str, int, str], ...]:
    """The pattern as letters with their count, and fixed texts (with an empty letter)."""
    found, at = [], 0
    while at < len(pattern):
        piece = _PIECE.match(pattern, at)
        if not piece or (piece[1] and piece[1] not in "yMdHhmsSaE"):
            raise NotYet(f"the pattern {pattern!r} has a part that runs on Spark only: {pattern[at:]!r}")
        text = (piece[2].replace("''", "'") or "'") if piece[2] is not None else piece[3] or ""
        found.append((piece[1] or "", len(piece[0]), text))
        at = piece.end()
    return tuple(found)


def format_moment(moment: datetime.datetime, pattern: str) -> str:
    """The moment as the pattern shows it."""
    return "".join(_shown(moment, *piece) for piece in pieces(pattern))


def _shown(moment: datetime.datetime, letter: str, count: int, text: str) -> str:
    if not letter:
        return text
    if letter == "S":
        return f"{moment.microsecond:06}".ljust(count, "0")[:count]
    if letter == "a":
        return "AM" if moment.hour < 12 else "PM"
    if letter == "E":
        name = calendar.day_name[moment.weekday()]
        return name if count == 4 else name[:3]
    if letter == "M" and count > 2:
        return _MONTHS[moment.month] if count == 4 else _MONTHS[moment.month][:3]
    if letter == "y" and count == 2:
        return f"{moment.year % 100:02}"
    return str(_number(moment, letter)).rjust(count, "0")


def _number(moment: datetime.datetime, letter: str) -> int:
    if letter == "h":
        return moment.hour % 12 or 12
    names = {"y": "year", "M": "month", "d": "day", "H": "hour", "m": "minute", "s": "second"}
    return int(getattr(moment, names[letter]))


def read_moment(text: str, pattern: str) -> datetime.datetime:
    """The moment that the text spells after the pattern, in UTC."""
    compiled, letters = _reader(pattern)
    found = compiled.fullmatch(text)
    if not found:
        raise ValueError(f"the text {text!r} does not follow the pattern {pattern!r}")
    parts = dict(zip(letters, found.groups(), strict=True))
    try:
        return _made(parts)
    except ValueError as error:
        raise ValueError(f"the text {text!r} does not follow the pattern {pattern!r}: {error}") from None


def _made(parts: dict[str, str]) -> datetime.datetime:
    return datetime.datetime(
        _year(parts.get("y", "1970")),
        _month(parts.get("M", "1")),
        int(parts.get("d", 1)),
        _hour(parts),
        int(parts.get("m", 0)),
        int(parts.get("s", 0)),
        int(parts.get("S", "0").ljust(6, "0")[:6]),
        tzinfo=datetime.UTC,
    )


def _year(text: str) -> int:
    return 2000 + int(text) if len(text) == 2 else int(text)


def _month(text: str) -> int:
    return int(text) if text.isdigit() else _SHORT[text[:3]]


def _hour(parts: dict[str, str]) -> int:
    if "h" not in parts:
        return int(parts.get("H", 0))
    hour = int(parts["h"])
    if not 1 <= hour <= 12:
        raise ValueError("an hour of h lies between 1 and 12")
    return hour % 12 + (12 if parts.get("a", "AM") == "PM" else 0)


@lru_cache(maxsize=256)
def _reader(pattern: str) -> tuple[re.Pattern[str], tuple[str, ...]]:
    found = pieces(pattern)
    letters = tuple(letter for letter, _, _ in found if letter)
    if len(set(letters)) != len(letters) or "E" in letters:
        raise NotYet(f"reading the pattern {pattern!r} runs on Spark only")
    return re.compile("".join(_readable(*piece) for piece in found), re.ASCII), letters


def _readable(letter: str, count: int, text: str) -> str:
    if not letter:
        return re.escape(text)
    if letter == "a":
        return "(AM|PM)"
    if letter == "M" and count > 2:
        names = _MONTHS[1:] if count == 4 else [name[:3] for name in _MONTHS[1:]]
        return f"({'|'.join(names)})"
    if letter == "S" or count > 1:
        return rf"(\d{{{count}}})"
    return rf"(\d{{1,{_WIDTHS[letter]}}})"
