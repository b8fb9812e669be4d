"""Event time: when the records of a stream happened, and in which windows they are."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, cast

from penstock.frontends.streams.naming import names_step
from penstock.graph.caller import user_line
from penstock.graph.compose import event_time_column
from penstock.graph.duration import Span, checked_span
from penstock.graph.expr import Expr, as_expr
from penstock.graph.nodes import AssignWindows, EventTime, Recent
from penstock.graph.nodes.window import EVENT
from penstock.graph.windows import TimeWindow

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
        lateness: Span = 0,
        idle: Span | None = "1m",
        max_lead: Span = "1d",
        into: str = "",
        partition: str = "",
    ) -> Stream:
        """Says when each record happened.

        A record whose time is missing, unreadable, or too far in the future is bad: it goes to `.side("bad")`, or is counted.

        Args:
            name: the name of the step.
            time: a timestamp field, a text field to be read as one, or an expression.
            lateness: how far out of order records may come.
            idle: an input that is quiet for so long stops holding time back; None: it never does.
            max_lead: how far in the future a record may be; one further away is bad, so that it cannot move time.
            into: the field in which the time lands; else the one it is read from.
            partition: a field whose values each keep a time of their own.

        Returns:
            The stream with its event time.

        Raises:
            SchemaError: the expression is no timestamp, and no text to be read as one.
            FlowError: a span of time is not one.

        >>> import penstock as ps
        >>> clicks = ps.Flow("demo").source("clicks", ps.items([], "user string, at string"))
        >>> clicks.event_time("timed", "at", lateness="10s")
        Stream('timed': user string, at timestamp, event time at)
        """
        stream = cast("Stream", self)
        made = event_time_node(
            name, time, lateness=lateness, idle=idle, max_lead=max_lead, into=into, partition=partition
        )
        return stream._add(replace(made, inputs=(stream.port,)))

    @names_step
    def recent(self, name: str, span: Span) -> Stream:
        """The rows of the last span of event time, as a table: a row comes when event time reaches it, and goes when it is that old.

        Args:
            name: the name of the step.
            span: how long a row is there. At the moment at which it is that old it is gone.

        Returns:
            The table. Late records are counted, and left out. When the input is over, all time has passed, and it is empty.

        Raises:
            FlowError: the stream has no event time, or the span is none.

        >>> import penstock as ps
        >>> from penstock.testing import BARRIER, run_local
        >>> words = ps.Flow("demo").source("words", ps.items([], "word string, at string"), event_time="at")
        >>> words.recent("minute", "1m").changelog("log").select("short", "op", "word").sink("out", ps.console())
        >>> rows = [("a", "2026-01-01 10:00:00"), BARRIER, ("b", "2026-01-01 10:00:50"), BARRIER, ("c", "2026-01-01 10:01:10")]
        >>> [tuple(row) for row in run_local(words.flow, {"words": rows})["out"]][:2]
        [('insert', 'a'), ('delete', 'a')]
        """
        stream = cast("Stream", self)
        return stream._add(Recent(name, (stream.port,), span=checked_span(span, "span", least=1), line=user_line()))

    @names_step
    def assign_windows(self, name: str, windows: TimeWindow, *, clock: str = EVENT) -> Stream:
        """Each record once for every window that holds it, with `window_start`, `window_end` and `window_time` as fields.

        Nothing is kept, and nothing waits. The event time of the result is the end of the window, so that whatever groups, joins or
        ranks by these fields is final when event time has passed the window.

        Args:
            name: the name of the step.
            windows: `ps.tumbling`, `ps.sliding` or `ps.cumulating`.
            clock: "event", or "processing" to go by processing time.

        Returns:
            The stream with the windows of its records. `window_time` is a millisecond before `window_end`, as in SQL.

        Raises:
            FlowError: the stream has no event time, or the windows are no such ones.
            SchemaError: a field has one of the names already.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> rows = [("a", "2026-01-01 10:00:15")]
        >>> words = ps.Flow("demo").source("words", ps.items(rows, "word string, at string"), event_time="at")
        >>> windows = words.assign_windows("windows", ps.cumulating("30s", every="10s"))
        >>> windows.select("short", "word", until="second(window_end)").sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(word='a', until=20), Row(word='a', until=30)]
        """
        stream = cast("Stream", self)
        return stream._add(AssignWindows(name, (stream.port,), windows=windows, clock=clock, line=user_line()))


def event_time_node(
    name: str,
    time: str | Expr,
    *,
    lateness: Span = 0,
    idle: Span | None = "1m",
    max_lead: Span = "1d",
    into: str = "",
    partition: str = "",
) -> EventTime:
    """The step that `event_time` adds, over nothing yet."""
    written = as_expr(time)
    return EventTime(
        name,
        (),
        event_time_column(written, into),
        written,
        checked_span(lateness, "lateness"),
        checked_span(max_lead, "max_lead"),
        None if idle is None else checked_span(idle, "idle"),
        partition,
        line=user_line(),
    )
