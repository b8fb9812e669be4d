"""The kinds of values that options have: each is read from a program's values, from text and from JSON, and written as JSON."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar
from urllib.parse import urlsplit

from penstock.errors import FlowError
from penstock.graph.duration import WRITTEN, micros
from penstock.graph.state.key_groups import is_power_of_two
from penstock.graph.times import to_micros, to_moment
from penstock.location import Address, Location, address_of, is_url, lacks_a_slash

T = TypeVar("T")
Json = str | int | float | bool | list[str] | dict[str, str] | None
"""What an option is in JSON."""

_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off", "")


@dataclass(frozen=True)
class Kind(Generic[T]):
    """How the values of an option are read and written.

    `read` takes what a program, a command line, the environment or JSON has and raises ValueError with what it expected.
    """

    metavar: str
    read: Callable[[object], T]
    write: Callable[[T], Json]
    is_repeated: bool = False
    """Whether the option may be given many times on a command line."""
    is_flag: bool = False


def flag() -> Kind[bool]:
    """Yes or no."""
    return Kind("", _flag, bool, is_flag=True)


def _flag(value: object) -> bool:
    if isinstance(value, bool):
        return value
    text = str(value).strip().lower()
    if text not in _TRUE + _FALSE:
        raise ValueError("expected true or false")
    return text in _TRUE


def whole(least: int, most: int | None = None) -> Kind[int | None]:
    """A whole number, or none."""
    bounds = f"a whole number of at least {least}" + (f" and at most {most}" if most is not None else "")

    def read(value: object) -> int | None:
        number = None if value is None or value == "" else _whole(value, bounds)
        if number is not None and (number < least or (most is not None and number > most)):
            raise ValueError(f"expected {bounds}")
        return number

    return Kind("N", read, lambda value: value)


def _whole(value: object, bounds: str) -> int:
    exact = (isinstance(value, int) and not isinstance(value, bool)) or isinstance(value, str)
    try:
        return int(str(value)) if exact else _refuse(bounds)
    except ValueError:
        return _refuse(bounds)


def _refuse(expected: str) -> int:
    raise ValueError(f"expected {expected}")


def power_of_two(most: int) -> Kind[int | None]:
    """A power of two, or none."""
    bounds = f"a power of two of at most {most:,}"

    def read(value: object) -> int | None:
        if value is None or value == "":
            return None
        number = _whole(value, bounds)
        return number if is_power_of_two(number) and number <= most else _refuse(bounds)

    return Kind("N", read, lambda value: value)


def count(least: int) -> Kind[int]:
    """A whole number that is always there."""
    inner = whole(least)

    def read(value: object) -> int:
        number = inner.read(value)
        return _refuse(f"a whole number of at least {least}") if number is None else number

    return Kind("N", read, lambda value: value)


def span(least: float = 0.0) -> Kind[float]:
    """A span of time, in seconds."""

    def read(value: object) -> float:
        try:
            seconds = micros(value) / 1_000_000
        except FlowError:
            raise ValueError(f"expected {WRITTEN}") from None
        if seconds < least:
            raise ValueError(f"expected a span of at least {least:g} s")
        return seconds

    return Kind("SPAN", read, float)


def maybe_span() -> Kind[float | None]:
    """A span of time, in seconds, or none."""
    inner = span()
    return Kind("SPAN", lambda v: None if v is None or v == "" else inner.read(v), lambda value: value)


def moment() -> Kind[int | None]:
    """A moment in event time, in microseconds since 1970; in UTC unless it has a zone."""
    return Kind("MOMENT", _moment, lambda value: None if value is None else to_moment(value).isoformat())


def _moment(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if value is None or value == "":
        return None
    try:
        return to_micros(value if isinstance(value, datetime.datetime) else datetime.datetime.fromisoformat(str(value)))
    except ValueError:
        raise ValueError("expected a moment such as 2024-05-01T12:00:00") from None


def directory(metavar: str = "DIR") -> Kind[Path | None]:
    """A path, or none."""
    return Kind(metavar, _path, lambda value: None if value is None else str(value))


def address() -> Kind[Address | None]:
    """A path or a URL, or none."""
    return Kind("DIR|URL", _address, lambda value: None if value is None else str(value))


def _address(value: object) -> Address | None:
    if isinstance(value, Location) or (isinstance(value, str) and is_url(value)):
        return address_of(value)
    if isinstance(value, str) and lacks_a_slash(value):
        raise ValueError(f"expected a path, or a URL with two slashes such as {value.replace(':/', '://', 1)}")
    return _path(value)


def _path(value: object) -> Path | None:
    if value is None or value == "":
        return None
    if not isinstance(value, str | Path):
        raise ValueError("expected a path")
    return Path(value)


def text(metavar: str = "TEXT") -> Kind[str]:
    """Text; a path will do where a name may be one."""

    def read(value: object) -> str:
        if isinstance(value, Path):
            return str(value.absolute())
        if value is not None and not isinstance(value, str):
            raise ValueError("expected text")
        return value or ""

    return Kind(metavar, read, str)


def url() -> Kind[str]:
    """The address of a server that speaks HTTP, or none."""

    def read(value: object) -> str:
        if value is None or value == "":
            return ""
        try:
            found = urlsplit(str(value))
            is_url = found.scheme in ("http", "https") and bool(found.hostname) and (found.port or 1) > 0
        except ValueError:
            is_url = False
        if not is_url or any(c.isspace() for c in str(value)):
            raise ValueError("expected a URL such as http://127.0.0.1:4318")
        return str(value)

    return Kind("URL", read, str)


def choice(*names: str) -> Kind[str]:
    """One of a few words."""

    def read(value: object) -> str:
        if value not in names:
            raise ValueError(f"expected one of {', '.join(n for n in names if n)}")
        return str(value)

    return Kind("|".join(n for n in names if n), read, str)


def names(metavar: str = "NAME") -> Kind[tuple[str, ...]]:
    """Any number of names; on a command line the option is given once for each."""
    return Kind(metavar, lambda value: _texts(value, None), list, is_repeated=True)


def listed(metavar: str = "LIST") -> Kind[tuple[str, ...]]:
    """Any number of names; in one text with commas between."""
    return Kind(metavar, lambda value: _texts(value, ","), list)


def _texts(value: object, separator: str | None) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str | Path):
        return tuple(part for part in (str(value).split(separator) if separator else [str(value)]) if part)
    if not isinstance(value, Iterable) or isinstance(value, bytes | Mapping):
        raise ValueError("expected names")
    return tuple(str(part) for part in value)


def pairs(metavar: str = "KEY=VALUE", example: str = "") -> Kind[dict[str, str]]:
    """Values by name, in text as KEY=VALUE; on a command line the option is given once for each."""

    def read(value: object) -> dict[str, str]:
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return {str(k): _plain(v) for k, v in value.items()}
        cut = [each.partition("=") for each in _texts(value, None)]
        if any(not equals or not key.strip() for key, equals, _ in cut):
            raise ValueError(f"expected {metavar}" + (f", such as {example}" if example else ""))
        return {key.strip(): rest for key, _, rest in cut}

    return Kind(metavar, read, dict, is_repeated=True)


def _plain(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
