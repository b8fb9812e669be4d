"""Windows: aggregates over the records of a key in a span of time, or over so many of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.graph.aggregates import Aggregate
from penstock.graph.duration import shown
from penstock.graph.nodes.base import Node, Timed, label
from penstock.graph.nodes.keyed import Keyed
from penstock.graph.windows import CountWindow, Early, SessionWindow, TimeWindow, WindowSpec

WINDOW_START, WINDOW_END, WINDOW_NUMBER = "window_start", "window_end", "window"
PANE, START, END, GAP = "__pane", "__start", "__end", "__gap"
"""The fields of parts: where a pane begins; from when to when a piece of a session is; the gap of a record."""
APPEND, UPDATE, COMPLETE = "append", "update", "complete"


@dataclass(frozen=True)
class Window(Keyed):
    """Aggregates, or a fold by `function`, per key and window.

    `time` says where the event time is; None means that windows go by the clock. Records may come `lateness` behind the end of their
    window. `mode` says when results are given: once when the window ends (and what changes later), whenever they change, or all that
    are kept. `parts` says what comes in: records, or parts of aggregates that a native step made before the shuffle.
    """

    spec: WindowSpec
    aggregates: tuple[Aggregate, ...]
    function: Callable[..., Any] | None
    time: Timed | None
    lateness: int = 0
    early: Early | None = None
    accumulate: bool = True
    mode: str = APPEND
    parts: bool = False
    kind: ClassVar[str] = "window"
    python: ClassVar[bool] = True
    timed: ClassVar[bool] = True

    @property
    def ordered(self) -> bool:  # type: ignore[override]  # known when the windows are
        """Windows by count take the records as they came."""
        return isinstance(self.spec, CountWindow)

    @property
    def native(self) -> bool:
        """Whether parts can be made before the shuffle, by Spark: windows over time, all aggregates native."""
        over_time = isinstance(self.spec, TimeWindow | SessionWindow)
        return over_time and self.function is None and all(a.own is None for a in self.aggregates)

    @property
    def once(self) -> bool:
        """Whether parts come in and each window is given once, when event time ends it: then nothing need be looked up."""
        late = bool(self.early or self.lateness) or self.time is None
        return self.parts and self.mode == APPEND and not late

    @property
    def stores(self) -> dict[str, str]:
        """Rows in time for windows that are given once; else a value for each key."""
        return {self.name: "rows" if self.once else "values"}

    @property
    def hold(self) -> int:
        """Corrections may come as late as late records may."""
        return self.lateness

    def settings(self) -> dict[str, Any]:
        """The key, the windows, what is aggregated, and when it is given."""
        made: dict[str, Any] = {**super().settings(), "windows": str(self.spec)}
        made |= {a.name: str(a) for a in self.aggregates}
        if self.function is not None:
            made["function"] = label(self.function)
        made |= (
            {"clock": "processing"} if self.time is None and isinstance(self.spec, TimeWindow | SessionWindow) else {}
        )
        made |= {"lateness": shown(self.lateness)} if self.lateness else {}
        made |= {"early": str(self.early)} if self.early else {}
        made |= {"accumulate": False} if not self.accumulate else {}
        return made | ({"mode": self.mode} if self.mode != APPEND else {})


@dataclass(frozen=True)
class WindowParts(Node):
    """The native half of a window step: parts of its aggregates by key and pane, over one batch; the compiler puts it in."""

    of: Window
    counted: bool = True
    """Whether late records come as parts too, to be counted; else they have an output of their own."""
    kind: ClassVar[str] = "parts"
