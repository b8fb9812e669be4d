"""Event time: the step that says when the records of a stream happened."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import SchemaError
from penstock.graph import types as t
from penstock.graph.duration import shown
from penstock.graph.expr import Cast, Expr, to_text, type_of_expr
from penstock.graph.nodes.base import OUT, Inputs, Node, Output, Settings, TimeField
from penstock.graph.nodes.stateless import as_they_are

BAD = "bad"
"""The output of records whose event time is missing, unreadable, or far in the future."""


@dataclass(frozen=True)
class EventTime(Node):
    """Reads the event time of each record, and says how far event time has come; native.

    `time` is the timestamp that lands in `column`; a text is read as one. Records may be up to `lateness` older than those before them. A record
    more than `max_lead` in the future is bad, so that it cannot move time. A partition (value of `partition`) that has been
    quiet for `idle` does not hold time back any more; None means that it always does. All spans are microseconds.
    """

    column: str
    time: Expr
    lateness: int
    max_lead: int
    idle: int | None
    partition: str = ""
    of_table: bool = field(default=False, kw_only=True)
    """Whether it reads a table: a row far in the future moves no time then, and stays, because it must be the same row when it goes."""
    kind: ClassVar[str] = "event_time"
    over_tables: ClassVar[bool] = True

    def resolve(self, given: Inputs) -> Self:
        """What is not a timestamp yet is read as one; what cannot be read is bad."""
        kind = type_of_expr(self.time, given[0].schema)
        _check_type(self.time, kind)
        made = replace(self, of_table=self.of_table or given[0].changes is not None)
        return made if kind == t.TIMESTAMP else replace(made, time=Cast(self.time, t.TIMESTAMP, True))

    def check(self, given: Inputs) -> None:
        """The partition is a field."""
        if self.partition:
            given[0].schema.field(self.partition)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The stream with its time, and the bad records as they were."""
        schema = given[0].schema
        made = schema.with_fields((t.Field(self.column, t.TIMESTAMP),))
        changed = given[0].filtered().selected(made, as_they_are(schema) | {self.column: self.time}).changes
        return Output(made, OUT, changed, TimeField(self.column)), Output(schema, BAD, given[0].filtered().changes)

    def settings(self) -> Settings:
        """The expression and the spans."""
        idle: Settings = {} if self.idle is None else {"idle": shown(self.idle)}
        return {self.column: to_text(self.time), "lateness": shown(self.lateness), **idle}


def _check_type(written: Expr, kind: t.DataType) -> None:
    if kind in t.INTEGERS:
        raise SchemaError(
            f"event time is a timestamp; {to_text(written)} is {kind}. Say what it counts: timestamp_millis({to_text(written)}) "
            f"or timestamp_seconds({to_text(written)}), with into='ts'"
        )
    if kind not in (t.TIMESTAMP, t.TIMESTAMP_NTZ, t.DATE, t.STRING):
        raise SchemaError(f"event time is a timestamp, or a text to be read as one; {to_text(written)} is {kind}")
