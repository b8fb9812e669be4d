"""How the name of a step gets into the errors of the call that makes it, and how a flow remembers the calls that made it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from penstock.graph.binding import naming
from penstock.graph.caller import user_line
from penstock.graph.ids import checked_name

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")
_WAYS = ("flow", "source", "keyed")
"""The attributes that lead from a stream, a stream by key or by window to its flow."""


@dataclass(frozen=True)
class StepCall:
    """A call that made a step, or that says something of one: on what, which method, with which arguments, and what it returned."""

    receiver: object
    method: str
    name: str
    args: tuple[object, ...]
    kwargs: Mapping[str, object]
    result: object


@dataclass
class CallRecord:
    """The calls that made a flow, in order. A call inside another one is the other's own affair."""

    calls: list[StepCall] = field(default_factory=list)
    depth: int = 0


def names_step(method: Callable[Concatenate[S, str, P], R]) -> Callable[Concatenate[S, str, P], R]:
    """For methods that make a step: whatever is wrong with it, the error names the step and the user's line."""

    @wraps(method)
    def named(self: S, name: str, /, *args: P.args, **kwargs: P.kwargs) -> R:
        checked_name(name, example=f"{method.__name__}('a-name', ...)")
        with naming("step", name, user_line):
            return _recorded(self, method.__name__, name, args, kwargs, lambda: method(self, name, *args, **kwargs))

    named.makes_step = True  # type: ignore[attr-defined]  # what flow files find steps by
    return named


def is_step(method: object) -> bool:
    """Whether a method makes a step with a name."""
    return bool(getattr(method, "makes_step", False))


def recorded(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """For methods that say something of a step, or of the flow, without making a step."""

    @wraps(method)
    def wrapped(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return _recorded(self, method.__name__, "", args, kwargs, lambda: method(self, *args, **kwargs))

    return wrapped


def _recorded(
    receiver: object, method: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], call: Callable[[], R]
) -> R:
    record = _record_of(receiver)
    record.depth += 1
    try:
        result = call()
    finally:
        record.depth -= 1
    if record.depth == 0:
        record.calls.append(StepCall(receiver, method, name, args, kwargs, result))
    return result


def _record_of(receiver: object) -> CallRecord:
    found: Any = receiver
    while "_recording" not in vars(found):
        found = next(vars(found)[way] for way in _WAYS if way in vars(found))
    record: CallRecord = found._recording
    return record
