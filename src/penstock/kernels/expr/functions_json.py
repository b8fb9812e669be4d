"""get_json_object, for paths of names and indexes."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from penstock.errors import NotYet
from penstock.kernels.expr.json_spelling import json_spelling, plain_spelling

_HALF = re.compile("[\ud800-\udfff]")
"""Half of a character, which is none; Spark has a question mark for it."""
_STEP = re.compile(r"\.([^.\[\]*?]+)|\[(\d+)\]|\['([^']*)'\]")


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
    except (ValueError, RecursionError):
        return None
    try:
        for step in steps:
            value = _follow(value, step)
    except LookupError:
        return None
    if value is None:
        return "null" if steps and isinstance(steps[-1], int) else None
    return _HALF.sub("?", value) if isinstance(value, str) else json_spelling(value)


def _follow(value: object, step: str | int) -> object:
    if isinstance(step, int) and isinstance(value, list):
        return value[step]
    if isinstance(step, str) and isinstance(value, dict):
        return value[step]
    raise LookupError(step)


def _refused(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


class _Object(dict[str, Any]):
    """An object of JSON, of which the first of two equal names counts; it knows all its pairs."""

    def __init__(self, pairs: list[tuple[str, Any]]) -> None:
        super().__init__(reversed(pairs))
        self.pairs = pairs


_DECODER = json.JSONDecoder(parse_constant=_refused, object_pairs_hook=_Object)

PLAIN: dict[str, Callable[..., Any]] = {"get_json_object": get_json_object, "json_string": plain_spelling}
