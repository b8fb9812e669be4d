"""Event time: the step that says when the records of a stream happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from penstock.graph.duration import shown
from penstock.graph.expr import Expr, to_sql
from penstock.graph.nodes.base import Node

BAD = "bad"
"""The output of records whose event time is missing, unreadable, or far ahead of the clock."""


@dataclass(frozen=True)
class EventTime(Node):
    """Reads the event time of each record, and says how far event time has come; native.

    `time` gives the timestamp that lands in `column`. Records may come up to `lateness` behind those before them. A record
    more than `max_lead` in front of the clock is bad, so that it cannot move time. A partition (value of `partition`) that has been
    quiet for `idle` does not hold time back any more; None means that it always does. All spans are microseconds.
    """

    column: str
    time: Expr
    lateness: int
    max_lead: int
    idle: int | None
    partition: str = ""
    kind: ClassVar[str] = "event_time"

    def settings(self) -> dict[str, Any]:
        """The expression and the spans."""
        idle = {} if self.idle is None else {"idle": shown(self.idle)}
        return {self.column: to_sql(self.time), "lateness": shown(self.lateness), **idle}
