"""Functions of Flink's that Spark has not, or has with other rules: plain Python, with the same answers on every host."""

from __future__ import annotations

import datetime
import json
import re
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.graph import types as t
from penstock.graph.expr import ScalarFunction
from penstock.graph.expr.literals import time_zone

_TIME = "%Y-%m-%d %H:%M:%S"
_STEP = re.compile(r"\.([^.\[\]*?]+)|\[(\d+)\]|\['([^']*)'\]")
_NOTHING = object()


def parse_url(url: str, part: str, key: str | None = None) -> str | None:
    """A part of an address: HOST, PATH, QUERY, REF, PROTOCOL, AUTHORITY, FILE or USERINFO; of QUERY perhaps one value."""
    found = urllib.parse.urlsplit(url)
    if key is not None:
        values = dict(reversed(urllib.parse.parse_qsl(found.query, keep_blank_values=True)))
        return values.get(key) if part == "QUERY" else None
    user, at, host = found.netloc.rpartition("@")
    parts = {
        "HOST": re.sub(r":\d*$", "", host),
        "PATH": found.path,
        "QUERY": found.query,
        "REF": found.fragment,
        "PROTOCOL": found.scheme,
        "AUTHORITY": found.netloc,
        "FILE": f"{found.path}?{found.query}" if found.query else found.path,
        "USERINFO": user if at else "",
    }
    return (parts.get(part) or None) if found.scheme else None


def str_to_map(text: str, between: str = ",", inside: str = "=") -> dict[str, str | None]:
    """The pairs of a text; of equal keys the last counts."""
    made: dict[str, str | None] = {}
    for pair in text.split(between):
        key, sign, value = pair.partition(inside)
        made[key] = value if sign else None
    return made


def convert_tz(text: str, first: str, other: str) -> str | None:
    """A time of one zone as the clocks of another show it; null where the text is no time."""
    try:
        moment = datetime.datetime.strptime(text, _TIME)  # noqa: DTZ007 - its zone is the next argument
    except ValueError:
        return None
    zones = [time_zone(each) for each in (first, other)]
    return moment.replace(tzinfo=zones[0]).astimezone(zones[1]).strftime(_TIME)


def position(text: str, part: str, start: int, which: int = 1) -> int:
    """Where the n-th part begins, from 1; a negative start counts from the end, and searches backwards. 0 where there is none."""
    if which < 1 or start == 0:
        return 0
    at = start - 1 if start > 0 else len(text) + start
    for number in range(which):
        at = text.find(part, at + (number > 0)) if start > 0 else text.rfind(part, 0, at - (number > 0) + len(part))
        if at < 0:
            return 0
    return at + 1


def json_quote(text: str) -> str:
    """A text as a text of JSON."""
    return json.dumps(text)


def json_unquote(text: str) -> str:
    """What a text of JSON says; any other text as it is."""
    try:
        found = json.loads(text) if text[:1] == '"' else None
    except ValueError:
        return text
    return found if isinstance(found, str) else text


def is_json(text: str, kind: str) -> bool:
    """Whether a text is JSON: any VALUE, an OBJECT, an ARRAY or a SCALAR."""
    found = _read(text)
    if found is _NOTHING:
        return False
    is_ = {"OBJECT": isinstance(found, dict), "ARRAY": isinstance(found, list)}
    return {**is_, "SCALAR": not any(is_.values())}.get(kind, True)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _read(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return _NOTHING


def json_query(text: str, path: str, wrapper: str, empty: str) -> str | None:
    """What a path finds as JSON. `wrapper` says whether it is put into a list; `empty` is what comes where nothing is found."""
    found: Any = _read(text)
    at = path.find("$") + 1
    while at < len(path) and found is not _NOTHING:
        step = _STEP.match(path, at)
        if step is None:
            return None
        key: Any = int(step[2]) if step[2] else step[1] or step[3]
        try:
            found = found[key] if isinstance(found, list if step[2] else dict) else _NOTHING
        except (LookupError, TypeError):
            found = _NOTHING
        at = step.end()
    if found is _NOTHING:
        return empty or None
    if wrapper == "WITH" or (wrapper == "CONDITIONAL" and not isinstance(found, dict | list)):
        found = [found]
    return json.dumps(found, separators=(",", ":"), ensure_ascii=False) if isinstance(found, dict | list) else None


def json_items(text: str, path: str, wrapper: str, empty: str) -> list[str | None] | None:
    """The items of a list that a path finds, as texts."""
    found = json_query(text, path, wrapper, empty)
    listed = None if found is None else json.loads(found)
    if not isinstance(listed, list):
        return None
    return [each if isinstance(each, str | None) else json.dumps(each, separators=(",", ":")) for each in listed]


@dataclass(frozen=True)
class Formatting:
    """PRINTF with a format that is known: its arguments are of the types that it asks for."""

    template: str

    def __call__(self, *values: object) -> str:
        """The text."""
        return self.template % values


def _function(
    body: Callable[..., object], takes: tuple[t.DataType, ...], returns: t.DataType, least: int = -1
) -> ScalarFunction:
    count = len(takes) if least < 0 else least
    return ScalarFunction(body.__name__, body, takes, returns, count, null_on_null=True, deterministic=True)


_S = t.STRING
LIBRARY = {
    "parse_url": _function(parse_url, (_S, _S, _S), _S, 2),
    "str_to_map": _function(str_to_map, (_S, _S, _S), t.Map(_S, _S), 1),
    "convert_tz": _function(convert_tz, (_S, _S, _S), _S),
    "instr": _function(position, (_S, _S, t.INT, t.INT), t.INT, 3),
    "json_quote": _function(json_quote, (_S,), _S),
    "json_unquote": _function(json_unquote, (_S,), _S),
    "is_json": _function(is_json, (_S, _S), t.BOOLEAN),
    "json_query": _function(json_query, (_S, _S, _S, _S), _S),
    "json_items": _function(json_items, (_S, _S, _S, _S), t.Array(_S)),
}
"""The functions by the names that statements have for them."""


def formatting(template: str, takes: tuple[t.DataType, ...]) -> ScalarFunction:
    """PRINTF for one format."""
    return ScalarFunction("printf", Formatting(template), takes, _S, len(takes), null_on_null=True, deterministic=True)
