"""The rows of the last span of event time, as a table: a row comes when event time reaches it, and goes when it is that old."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError
from penstock.graph.duration import shown
from penstock.graph.nodes.base import Changes, Inputs, Output, Settings, TimeField, counted, is_plain
from penstock.graph.nodes.keyed import Keyed
from penstock.graph.nodes.ordering import time_of


@dataclass(frozen=True)
class Recent(Keyed):
    """Rows are in the table from their event time on, for less than a span. Late rows are counted.

    Args:
        span: how long, in microseconds.
    """

    span: int = field(kw_only=True)
    timed_by: TimeField = field(default=TimeField(""), kw_only=True)
    counted: bool = field(default=False, kw_only=True)
    """Whether the rows come as signed ones; the compiler says so."""
    kind: ClassVar[str] = "recent"
    python: ClassVar[bool] = True
    timed: ClassVar[bool] = True
    over_records: ClassVar[str] = "its rows come and go by their changes, not by their age"

    def resolve(self, given: Inputs) -> Self:
        """Where the event time is. Rows are shared out by all their fields."""
        plain = tuple(f.name for f in given[0].schema.fields if is_plain(f))
        return replace(self, timed_by=time_of(self, given, self.kind), keys=self.keys or plain)

    def check(self, given: Inputs) -> None:
        """The span is one."""
        super().check(given)
        if self.span <= 0:
            raise FlowError(f"expected a span of time above zero, got {shown(self.span)}")

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The rows, as a table without a key."""
        schema = given[0].schema
        return (Output(counted(schema)) if self.counted else Output(schema, changes=Changes(None)),)

    @property
    def stores(self) -> dict[str, str]:
        """The rows, in time."""
        return {self.name: "rows"}

    @property
    def keeps(self) -> str:
        """The rows that are there, and those that event time has not reached."""
        return f"the rows of the last {shown(self.span)} of event time"

    def settings(self) -> Settings:
        """The span."""
        return {"span": shown(self.span)}
