"""How the name of a step gets into the errors of the call that makes it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from penstock.graph.binding import naming
from penstock.graph.caller import user_line
from penstock.graph.ids import checked_name

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")


def names_step(method: Callable[Concatenate[S, str, P], R]) -> Callable[Concatenate[S, str, P], R]:
    """For methods that make a step: whatever is wrong with it, the error names the step and the user's line."""

    @wraps(method)
    def named(self: S, name: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        checked_name(name, example=f"{method.__name__}('a-name', ...)")
        with naming("step", name, user_line):
            return method(self, name, *args, **kwargs)

    return named
