"""What every step of a flow is: a frozen record of its name, its inputs and its own settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.graph.schema import Schema

LATE = "late"
"""The output of records that came too late; where nobody reads it, they are counted."""


@dataclass(frozen=True)
class Port:
    """The address of a stream: the step that gives it, and which of its outputs."""

    step: str
    name: str = "out"

    def __str__(self) -> str:
        return self.step if self.name == "out" else f"{self.step}.{self.name}"


@dataclass(frozen=True)
class Timed:
    """Where the event time of a stream's records is: a timestamp column, and microseconds to add to it."""

    column: str
    shift: int = 0


@dataclass(frozen=True)
class Output:
    """A stream as a step gives it.

    `updates` names the key fields when each record replaces the earlier one of the same key (a running total),
    and is None for a stream of independent records; `removes` names the boolean field that is true in a row which takes its key
    out of the table, if rows can. `event_time` says when its records happened, if anything does.
    """

    schema: Schema
    name: str = "out"
    updates: tuple[str, ...] | None = None
    event_time: Timed | None = None
    removes: str = ""


@dataclass(frozen=True)
class Node:
    """A step. Subclasses add their settings as fields and say where they run."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Output, ...]
    line: str = field(default="", kw_only=True, compare=False)
    parallelism: int | None = field(default=None, kw_only=True)
    on_error: Any = field(default=None, kw_only=True)
    """What happens to a record the step fails on, a `policy.OnError`; None means what the flow says."""

    kind: ClassVar[str] = "node"
    python: ClassVar[bool] = False
    keyed: ClassVar[bool] = False
    timed: ClassVar[bool] = False
    """Whether the step does something when time moves, so that it may have work without records."""
    ordered: ClassVar[bool] = False
    """Whether a keyed step needs the records of a key in the order they came."""

    @property
    def runs_python(self) -> bool:
        """Whether the step's records pass through a Python worker."""
        return self.python

    @property
    def stores(self) -> dict[str, str]:
        """What the step keeps from batch to batch: stores by name, each of "values" (one per key) or "rows" (in time)."""
        return {self.name: "values"} if self.keyed else {}

    @property
    def hold(self) -> int:
        """How far behind its own watermark the step may give records, in microseconds."""
        return 0

    def keys_of(self, place: int) -> tuple[str, ...]:
        """The key fields of the input at a place."""
        keys: tuple[str, ...] = getattr(self, "keys", ())
        return keys

    def output(self, port: str = "out") -> Output:
        """The output of that name."""
        return next(o for o in self.outputs if o.name == port)

    def settings(self) -> dict[str, Any]:
        """What the step was told, for people and tools to read."""
        return {}


def label(function: Any) -> str:
    """How a user's function or class is shown: its module and qualified name.

    >>> label(len)
    'builtins:len'
    """
    target = function if hasattr(function, "__qualname__") else type(function)
    return f"{target.__module__}:{target.__qualname__}"
