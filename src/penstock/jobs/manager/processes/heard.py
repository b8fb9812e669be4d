"""What a driver says of itself, as far as it can be: a driver runs the code of others, and whoever reads its word must not stumble over it."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from typing import Any

LARGEST = 2**53
"""The largest count that JSON numbers carry exactly."""
LONGEST = 1_000
MOST = 10_000
AHEAD = 3_600.0
"""How many seconds a clock may be ahead."""
_UNSENDABLE = re.compile(rb"\\u[dD][89a-fA-F]|\xed[\xa0-\xbf]|NaN|Infinity|[0-9][eE]\+?[0-9]{3}|[0-9]{300}")
"""What may be half a character or no finite number. It is seldom there, and then looked at closely."""


def read_object(content: bytes) -> dict[str, object]:
    r"""An object that a driver wrote as JSON; empty where it is none.

    JSON can spell what no answer can repeat: half a character becomes `?`, and what is no finite number null.

    >>> read_object(rb'{"file": "a\udcff"}'), read_object(b'{"skew": NaN, "rate": 1e999, "n": 1}')
    ({'file': 'a?'}, {'skew': None, 'rate': None, 'n': 1})
    """
    try:
        found = json.loads(content)
        if _UNSENDABLE.search(content):
            text = json.dumps(found, ensure_ascii=False).encode(errors="replace")
            found = json.loads(text, parse_constant=lambda word: None)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def heard(said: Mapping[str, Any], now: float | None = None) -> dict[str, object]:
    """The progress of a driver: what is of another type than it should be was not said; what is not known here stays.

    >>> heard({"phase": "running", "batches": "many", "lags": [["a", "records", 3], 7]})
    {'phase': 'running', 'lags': [['a', 'records', 3.0]]}
    """
    made = {name: _READ[name](value) if name in _READ else value for name, value in said.items()}
    latest = (time.time() if now is None else now) + AHEAD
    for name in ("time", "since", "began", "waits_since"):
        at = made.get(name)
        made[name] = at if isinstance(at, float) and at < latest else None
    return {name: value for name, value in made.items() if value is not None}


def _text(value: object) -> str | None:
    return value[:LONGEST] if isinstance(value, str) and value.isprintable() else None


def _count(value: object) -> int | None:
    is_count = isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= LARGEST
    return int(value) if is_count else None  # type: ignore[call-overload]  # it is an int


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > LARGEST:
        return None
    return float(value) if math.isfinite(value) else None


def _table(read: Callable[[object], Any]) -> Callable[[object], dict[str, Any] | None]:
    """Values by name, those that can be read."""

    def table(value: object) -> dict[str, Any] | None:
        if not isinstance(value, dict):
            return None
        found = {name[:LONGEST]: read(each) for name, each in list(value.items())[:MOST]}
        return {name: each for name, each in found.items() if each is not None}

    return table


def _lags(value: object) -> list[list[object]] | None:
    if not isinstance(value, list):
        return None
    triples = [each for each in value[:MOST] if isinstance(each, list | tuple) and len(each) == 3]
    made = {(_text(source), _text(unit)): _number(many) for source, unit, many in triples}
    return [[source, unit, many] for (source, unit), many in made.items() if None not in (source, unit, many)]


def _totals(value: object) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    tables = {name: _figures(value.get(name)) or {} for name in ("figures", "watermarks", "measured")}
    return {**value, **tables}


def _last(value: object) -> dict[str, Any] | None:
    if not isinstance(value, dict):
        return None
    made = {name: _LAST[name](each) if name in _LAST else each for name, each in value.items()}
    return {name: each for name, each in made.items() if each is not None}


def _metric(value: object) -> Any:
    """A value of a metric of a spout or bolt: a number, a text, or numbers by name."""
    if isinstance(value, dict):
        return _table(_number)(value)
    return _text(value) if isinstance(value, str) else _number(value)


_figures = _table(_number)
_LAST: dict[str, Callable[[object], Any]] = {
    "finished": _number,
    "seconds": _number,
    "rows": _count,
    "batch": _count,
    "lag": _table(_table(_count)),
    "behind": _table(_table(_count)),
    "metrics": _table(_table(_table(_metric))),
}
_READ: dict[str, Callable[[object], Any]] = {
    "flow": _text,
    "phase": _text,
    "checkpoint": _text,
    "under_way": _text,
    "pid": _count,
    "generation": _count,
    "batches": _count,
    "rows": _count,
    "time": _number,
    "since": _number,
    "waits_since": _number,
    "began": _number,
    "lags": _lags,
    "totals": _totals,
    "last": _last,
}
