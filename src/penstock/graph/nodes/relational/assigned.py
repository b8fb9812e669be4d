"""Windows as fields: each record once for every window that holds it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.nodes.base import Changes, Inputs, Node, Output, Settings, TimeField
from penstock.graph.nodes.ordering import time_of
from penstock.graph.nodes.window import EVENT, PROCESSING, WINDOW_END, WINDOW_START
from penstock.graph.windows import TimeWindow

WINDOW_TIME = "window_time"
"""The field of the last millisecond of a window: the event time of what is made of it."""
BOUNDS = (WINDOW_START, WINDOW_END, WINDOW_TIME)
MILLISECOND = 1_000
LAST_MOMENT = TimeField(WINDOW_TIME, MILLISECOND - 1)
"""The event time of a row in a window: the last microsecond of the window, so that it is late when the window has ended, and not before."""


@dataclass(frozen=True)
class AssignWindows(Node):
    """Each record once for every window that holds it, with the bounds of the window as fields; native, and it keeps nothing."""

    windows: TimeWindow = field(kw_only=True)
    clock: str = field(default=EVENT, kw_only=True)
    timed_by: TimeField | None = field(default=None, kw_only=True)
    """Where the event time is; None means processing time."""
    kind: ClassVar[str] = "assign_windows"
    over_tables: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is."""
        if self.clock not in (EVENT, PROCESSING):
            raise FlowError(f"expected clock 'event' or 'processing', got {self.clock!r}")
        return replace(self, timed_by=None if self.clock == PROCESSING else time_of(self, given, self.kind))

    def check(self, given: Inputs) -> None:
        """The windows are spans of time that are known from a record's time, and their fields are not there yet."""
        if not isinstance(self.windows, TimeWindow):
            raise FlowError(
                f"assign_windows expects ps.tumbling('10s'), ps.sliding('60s', every='10s') or ps.cumulating('1d', every='1h'), got "
                f"{self.windows!r}. Windows of other kinds depend on other records; say .window(...) and what to make of them"
            )
        taken = next((name for name in BOUNDS if name in given[0].schema), None)
        if taken:
            raise SchemaError(
                f"{taken!r} is the name of a field that assign_windows adds; rename yours with select first"
            )
        if self.timed_by is None and given[0].changes is not None:
            raise FlowError(
                "in processing time a row is in the window in which it was added, and nobody knows that when it goes; go by event time"
            )

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The fields of the input, and the bounds. Of a table the key and the window are the key."""
        schema = given[0].schema.with_fields(tuple(t.Field(name, t.TIMESTAMP) for name in BOUNDS))
        changes = given[0].changes
        if changes is not None:
            changes = Changes(None if changes.key is None else (*changes.key, WINDOW_START, WINDOW_END))
        return (Output(schema, changes=changes, event_time=None if self.timed_by is None else LAST_MOMENT),)

    def settings(self) -> Settings:
        """The windows."""
        made: Settings = {"windows": str(self.windows)}
        return made if self.timed_by is not None else {**made, "clock": PROCESSING}
