"""get_json_object, for paths of names and indexes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from penstock.errors import NotYet
from penstock.kernels.expr.text import double_text

_STEP = re.compile(r"\.([^.\[\]*?]+)|\[(\d+)\]|\['([^']*)'\]")


class _Real(float):
    """A number with a fraction, which JSON text shows as Java does."""

    def __repr__(self) -> str:
        return double_text(float(self))


@lru_cache(maxsize=512)
def json_path(path: str) -> tuple[str | int, ...] | None:
    """The steps of a path, or None when it is no path; wildcards are refused."""
    if not path.startswith("$"):
        return None
    if "*" in path:
        raise NotYet(f"the wildcard in the JSON path {path!r} runs on Spark only")
    steps: list[str | int] = []
    at = 1
    while at < len(path):
        found = _STEP.match(path, at)
        if not found:
            return None
        steps.append(int(found[2]) if found[2] else found[1] or found[3])
        at = found.end()
    return tuple(steps)


def get_json_object(text: str, path: str) -> str | None:
    """The part of a JSON text that a path leads to, as text; null when there is none."""
    steps = json_path(path)
    if steps is None:
        return None
    try:
        value, _ = _DECODER.raw_decode(text.lstrip())
    except ValueError:
        return None
    try:
        for step in steps:
            value = _follow(value, step)
    except LookupError:
        return None
    if value is None:
        return "null" if steps and isinstance(steps[-1], int) else None
    return value if isinstance(value, str) else _write(value)


def _follow(value: object, step: str | int) -> object:
    if isinstance(step, int) and isinstance(value, list):
        return value[step]
    if isinstance(step, str) and isinstance(value, dict):
        return value[step]
    raise LookupError(step)


def _write(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_quoted(k)}:{_write(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_write, value)) + "]"
    return repr(value) if isinstance(value, _Real) else _quoted(value)


def _quoted(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _first_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for name, value in pairs:
        made.setdefault(name, value)
    return made


_DECODER = json.JSONDecoder(parse_float=_Real, parse_constant=_refused, object_pairs_hook=_first_wins)

PLAIN: dict[str, Callable[..., Any]] = {"get_json_object": get_json_object}
