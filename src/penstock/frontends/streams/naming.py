"""Names: how they must look, and how they get into the errors of the steps that carry them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from penstock.errors import FlowError
from penstock.graph.caller import user_line

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def checked_name(name: Any, what: str = "a step", method: str = "") -> str:
    """A name that may stand in file names, metrics and dotted paths."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        came = repr(name) if isinstance(name, str | int | float) else f"a {type(name).__name__}"
        hint = f". The name comes first: {method}('a-name', ...)" if method else ""
        raise FlowError(f"{what} needs a name of letters, digits, '-', '_' and '.' ({user_line()}), got {came}{hint}")
    return name


def names_step(method: Callable[Concatenate[S, str, P], R]) -> Callable[Concatenate[S, str, P], R]:
    """For methods that make a step: whatever is wrong with it, the error names the step and the user's line."""

    @wraps(method)
    def named(self: S, name: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        checked_name(name, method=method.__name__)
        try:
            return method(self, name, *args, **kwargs)
        except FlowError as error:
            text = _blamed(str(error), name, user_line())
            raise (error if text == str(error) else type(error)(text)) from None

    return named


def _blamed(text: str, name: str, line: str) -> str:
    """An error's text with the step and the line in it, if they are not yet.

    >>> _blamed("no field 'wrod'", "pick", "count.py:3")
    "step 'pick' (count.py:3): no field 'wrod'"
    """
    step = f"step {name!r}"
    if f"({line})" in text:
        return text
    if text.startswith(step):
        return text.replace(step, f"{step} ({line})", 1)
    return f"{step} ({line}): {text}"
