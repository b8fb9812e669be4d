"""Event time: when the records of a stream happened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from penstock.errors import FlowError, SchemaError
from penstock.frontends.streams.naming import names_step
from penstock.graph import types as t
from penstock.graph.caller import user_line
from penstock.graph.duration import micros
from penstock.graph.expr import Expr, as_expr, name_of, to_sql, type_of_expr
from penstock.graph.nodes import BAD, EventTime, Output, Timed
from penstock.graph.schema import Schema

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream


class Timing:
    """The step that gives a stream its event time."""

    @names_step
    def event_time(
        self,
        name: str,
        time: str | Expr,
        *,
        lateness: Any = 0,
        idle: Any = "1m",
        max_lead: Any = "1d",
        into: str = "",
        partition: str = "",
    ) -> Stream:
        """Says when each record happened: a timestamp field, a text field to be read as one, or an expression.

        Records may come up to `lateness` out of order. An input that is quiet for `idle` stops holding time back (None: it
        never does). A record whose time is missing, unreadable, or further than `max_lead` in front of the clock is bad: it goes to
        `.side("bad")`, or is counted. `partition` names a field whose values each keep a time of their own.
        """
        stream = cast("Stream", self)
        stream._need_records(name, "event_time")
        column, written, schema = _timestamp(name, stream.schema, as_expr(time), into)
        if partition:
            stream.schema.field(partition)
        settings = (
            column,
            written,
            _span(lateness, "lateness"),
            _span(max_lead, "max_lead"),
            None if idle is None else _span(idle, "idle"),
            partition,
        )
        outputs = (Output(schema, event_time=Timed(column)), Output(stream.schema, BAD))
        return stream.flow.add(EventTime(name, (stream.port,), outputs, *settings, line=user_line()))


def _span(given: Any, what: str) -> int:
    span = micros(given, what)
    if span < 0:
        raise FlowError(f"{what} is a span of time; {given!r} is below zero")
    return span


def _timestamp(step: str, schema: Schema, written: Expr, into: str) -> tuple[str, Expr, Schema]:
    """The field that carries the time, the expression that fills it, and the schema with it."""
    kind = type_of_expr(written, schema)
    column = into or name_of(written)
    if kind in t.INTEGERS:
        raise SchemaError(
            f"event time is a timestamp; {to_sql(written)} is {kind}. Say what it counts: timestamp_millis({to_sql(written)}) "
            f"or timestamp_seconds({to_sql(written)}), with into='ts'"
        )
    if kind not in (t.TIMESTAMP, t.TIMESTAMP_NTZ, t.DATE, t.STRING):
        raise SchemaError(f"event time is a timestamp, or a text to be read as one; {to_sql(written)} is {kind}")
    cast_ = written if kind == t.TIMESTAMP else as_expr(f"try_cast({to_sql(written)} as timestamp)")
    return column, cast_, schema.with_fields((t.Field(column, t.TIMESTAMP),))
