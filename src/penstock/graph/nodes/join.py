"""Joins of a stream with something else: a static table, or another stream."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.graph.duration import shown
from penstock.graph.nodes.base import Node, Timed, label
from penstock.graph.nodes.endpoint import Endpoint
from penstock.graph.nodes.keyed import Keyed
from penstock.graph.windows import TimeWindow

LATE_RIGHT = "late_right"
"""The output of records of the right stream that came too late; those of the left are on `late`."""
LEFT, RIGHT = 0, 1
CHANGED = "changed"


@dataclass(frozen=True)
class JoinStatic(Node):
    """Each record with the rows of a static table that share its key; native."""

    table: Endpoint
    on: tuple[str, ...]
    how: str
    refresh: Any = None
    """When the table is read again: after so many microseconds, when its files have CHANGED, or when what a function says has."""
    kind: ClassVar[str] = "join"

    def settings(self) -> dict[str, Any]:
        """The table, the key, the kind of join and when the table is read again."""
        told = {"with": self.table.kind, **self.table.shown(), "on": ", ".join(self.on), "how": self.how}
        return told if self.refresh is None else {**told, "refresh": self._refresh()}

    def _refresh(self) -> str:
        if callable(self.refresh):
            return label(self.refresh)
        return self.refresh if isinstance(self.refresh, str) else f"every {shown(self.refresh)}"


@dataclass(frozen=True)
class StreamJoin(Keyed):
    """The base of joins of two streams by key and time; `keys` are fields of the left one.

    `timed_by` says where the event time of each side is. `columns` has, for each field of the result, the field of the left and
    of the right that it is taken from; empty where a side has none. A field of both is taken from whichever side is there.
    """

    right_keys: tuple[str, ...]
    how: str
    timed_by: tuple[Timed, Timed]
    columns: tuple[tuple[str, str], ...]
    python: ClassVar[bool] = True
    timed: ClassVar[bool] = True

    @property
    def stores(self) -> dict[str, str]:
        """The rows of each side that may still be needed."""
        return {f"{self.name}@left": "rows", f"{self.name}@right": "rows"}

    def keys_of(self, place: int) -> tuple[str, ...]:
        """The key fields of a side."""
        return self.right_keys if place == RIGHT else self.keys

    def outer(self, side: int) -> bool:
        """Whether records of a side that match nothing come out too."""
        return self.how in (("left", "full"), ("right", "full"))[side]

    def settings(self) -> dict[str, Any]:
        """The keys and the kind of join."""
        pairs = zip(self.keys, self.right_keys, strict=True)
        return {"on": ", ".join(one if one == other else f"{one} = {other}" for one, other in pairs), "how": self.how}


@dataclass(frozen=True)
class IntervalJoin(StreamJoin):
    """Records of two streams whose times are near each other.

    A pair matches when the right's time is between `low` and `high` microseconds behind the left's, both included; below zero
    is before it. `into` names a field that gets the later time of the two; empty means that there is none.
    """

    low: int
    high: int
    into: str = ""
    kind: ClassVar[str] = "interval_join"

    @property
    def hold(self) -> int:
        """A pair comes out with its second record, and a record without a match when no match can come any more."""
        waits = (max(self.high, 0), max(-self.low, 0))
        if self.into:
            return max((waits[side] for side in (LEFT, RIGHT) if self.outer(side)), default=0)
        return waits[RIGHT] if self.how == "right" else waits[LEFT]

    def settings(self) -> dict[str, Any]:
        """The keys, the kind of join and the interval."""
        return {**super().settings(), "within": f"{signed(self.low)} to {signed(self.high)}"}


@dataclass(frozen=True)
class AsOfJoin(StreamJoin):
    """Each left record with the one right record that is nearest in time: before it, behind it, or on either side.

    `tolerance` is how far away it may be at most; None means any distance, which only makes sense backward.
    """

    direction: str
    tolerance: int | None
    kind: ClassVar[str] = "asof_join"

    @property
    def reach(self) -> tuple[int | None, int]:
        """How far before and behind a left record the right one may be."""
        before = None if self.tolerance is None else -self.tolerance
        behind = self.tolerance or 0
        return (0 if self.direction == "forward" else before, 0 if self.direction == "backward" else behind)

    @property
    def stores(self) -> dict[str, str]:
        """The rows that may still be needed; without a tolerance also the newest right record of each key."""
        return super().stores | ({f"{self.name}@last": "values"} if self.tolerance is None else {})

    @property
    def hold(self) -> int:
        """A left record comes out when the right one is sure."""
        return self.reach[1]

    def settings(self) -> dict[str, Any]:
        """The keys, the direction and the tolerance."""
        tolerance = {} if self.tolerance is None else {"tolerance": shown(self.tolerance)}
        return {**super().settings(), "direction": self.direction, **tolerance}


@dataclass(frozen=True)
class WindowJoin(StreamJoin):
    """Records of two streams that fall into the same window, given when the window closes."""

    window: TimeWindow
    kind: ClassVar[str] = "window_join"

    def settings(self) -> dict[str, Any]:
        """The keys, the kind of join and the windows."""
        return {**super().settings(), "window": str(self.window)}


@dataclass(frozen=True)
class Rules(Keyed):
    """Keeps the newest rule of each key, and gives all of them in every batch; the first half of a broadcast."""

    logic: Any
    kind: ClassVar[str] = "rules"
    python: ClassVar[bool] = True
    ordered: ClassVar[bool] = True


@dataclass(frozen=True)
class WithBroadcast(Node):
    """The user's own class, called for each event with all rules at hand; its second input is the rules."""

    logic: Any
    kind: ClassVar[str] = "with_broadcast"
    python: ClassVar[bool] = True

    def settings(self) -> dict[str, Any]:
        """The class."""
        return {"class": label(self.logic)}


def signed(span: int) -> str:
    """A span of time that may be below zero, as people write it.

    >>> signed(-5_000_000), signed(0)
    ('-5s', '0s')
    """
    return f"-{shown(-span)}" if span < 0 else shown(span)
