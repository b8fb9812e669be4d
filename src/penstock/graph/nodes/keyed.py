"""Steps that keep something for each key: aggregates, reduce, and the user's own classes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar

from penstock.graph.aggregates import Aggregate
from penstock.graph.nodes.base import Node, Timed, label


@dataclass(frozen=True)
class Keyed(Node):
    """The base of the keyed steps: `keys` are fields of the input, in the input's order."""

    keys: tuple[str, ...]
    keyed: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The key."""
        return {"key": ", ".join(self.keys)}


@dataclass(frozen=True)
class AggregateBy(Keyed):
    """Running aggregates per key: native before the shuffle, merged with what was there before."""

    aggregates: tuple[Aggregate, ...]
    combined: str = ""
    kind: ClassVar[str] = "aggregate"

    @property
    def runs_python(self) -> bool:
        """Python when one of the aggregates is the user's own, or when parts are merged with kept state."""
        return bool(self.combined) or any(a.own is not None for a in self.aggregates)

    def settings(self) -> dict[str, Any]:
        """The key and the aggregates by name."""
        return {**super().settings(), **{a.name: str(a) for a in self.aggregates}}


@dataclass(frozen=True)
class Reduce(Keyed):
    """A Python function that folds two records of a key into one."""

    function: Callable[..., Any]
    kind: ClassVar[str] = "reduce"
    python: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The key and the function."""
        return {**super().settings(), "function": label(self.function)}


@dataclass(frozen=True)
class Fold(Keyed):
    """A Python function that takes a record into the running value of its key."""

    init: Any
    function: Callable[..., Any]
    kind: ClassVar[str] = "fold"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The key and the function."""
        return {**super().settings(), "init": repr(self.init), "function": label(self.function)}


@dataclass(frozen=True)
class Process(Keyed):
    """The user's own class, with state per key. `event_time` says where that of its records is."""

    logic: Any
    event_time: Timed | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = "process"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The key and the class."""
        return {**super().settings(), "class": label(self.logic)}


@dataclass(frozen=True)
class TimedProcess(Process):
    """The same with timers, or with state that is forgotten after a time."""

    timed: ClassVar[bool] = True


@dataclass(frozen=True)
class Combine(Node):
    """The half of a Python aggregate or reduce that runs before the shuffle; the compiler puts it in."""

    of: AggregateBy | Reduce
    kind: ClassVar[str] = "combine"
    python: ClassVar[bool] = True


@dataclass(frozen=True)
class Parts(Keyed):
    """The native half of a live aggregate: a `groupBy` over one batch; the compiler puts it in."""

    of: AggregateBy
    kind: ClassVar[str] = "parts"
    keyed: ClassVar[bool] = False
