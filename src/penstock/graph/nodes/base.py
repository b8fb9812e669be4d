"""What every step of a flow is: a frozen record of its name, its inputs and its own settings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.graph.schema import Schema


@dataclass(frozen=True)
class Port:
    """The address of a stream: the step that gives it, and which of its outputs."""

    step: str
    name: str = "out"

    def __str__(self) -> str:
        return self.step if self.name == "out" else f"{self.step}.{self.name}"


@dataclass(frozen=True)
class Output:
    """A stream as a step gives it.

    `updates` names the key fields when each record replaces the earlier one of the same key (a running total),
    and is None for a stream of independent records.
    """

    schema: Schema
    name: str = "out"
    updates: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Node:
    """A step. Subclasses add their settings as fields and say where they run."""

    name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Output, ...]
    line: str = field(default="", kw_only=True, compare=False)
    parallelism: int | None = field(default=None, kw_only=True)

    kind: ClassVar[str] = "node"
    python: ClassVar[bool] = False
    keyed: ClassVar[bool] = False

    @property
    def runs_python(self) -> bool:
        """Whether the step's records pass through a Python worker."""
        return self.python

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
