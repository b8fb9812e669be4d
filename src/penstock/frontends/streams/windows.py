"""Windows over a stream by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from penstock.errors import FlowError, SchemaError, nearest
from penstock.frontends.streams.naming import names_step
from penstock.frontends.streams.totals import Totals
from penstock.graph import types as t
from penstock.graph.aggregates import Aggregate
from penstock.graph.caller import user_line
from penstock.graph.duration import micros
from penstock.graph.expr import Expr, to_sql, type_of_expr
from penstock.graph.logic.capture import check_function
from penstock.graph.nodes import LATE, Output, Timed, Window
from penstock.graph.nodes.window import APPEND, COMPLETE, UPDATE, WINDOW_END, WINDOW_NUMBER, WINDOW_START
from penstock.graph.schema import Schema
from penstock.graph.windows import (
    CountWindow,
    Early,
    EveryInterval,
    EveryRecords,
    GlobalWindow,
    SessionWindow,
    TimeWindow,
    WindowSpec,
)

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream

EVENT, PROCESSING = "event", "processing"


class Windowing:
    """What makes windows of a stream by key."""

    def window(
        self,
        spec: WindowSpec,
        *,
        lateness: Any = 0,
        early: Early | None = None,
        accumulate: bool = True,
        mode: str = APPEND,
        clock: str = EVENT,
    ) -> WindowedStream:
        """The records of each key by window: `window(ps.tumbling("10s")).count("n")`.

        A window is given when event time has passed its end. `lateness` keeps it that much longer: what comes late then is given
        as a correction. `early` gives results before the end, each time so much time (`ps.every_interval("5s")`) or so many records (`ps.every_records(100)`)
        have come. With `accumulate=False` a result holds only what came since the last one. `mode` is "append", "update" (what changed, after
        every batch) or "complete" (all that is kept, after every batch with a change). `clock="processing"` goes by the clock instead of event time.
        """
        keyed = cast("KeyedStream", self)
        made = WindowedStream(keyed, spec, _lateness(lateness), early, bool(accumulate), mode, clock)
        made._check()
        return made


@dataclass(frozen=True)
class WindowedStream(Totals):
    """A stream by key and window. Each method adds a step that gives a record for each key and window."""

    keyed: KeyedStream
    spec: WindowSpec
    lateness: int
    early: Early | None
    accumulate: bool
    mode: str
    clock: str

    @names_step
    def aggregate(self, name: str, /, **aggregates: Any) -> Stream:
        """Several aggregates at once: `aggregate("stats", n="count(*)", top="max(score)")`, or your own Aggregator."""
        if not aggregates:
            raise FlowError(f"step {name!r} ({user_line()}): aggregate needs at least one, such as n='count(*)'")
        keyed = self.keyed
        known = keyed._schema()
        made = tuple(keyed._aggregate(name, known, field, given) for field, given in aggregates.items())
        fields = known.only(keyed.keys).fields + self._bounds() + tuple(t.Field(a.name, a.type) for a in made)
        return self._add(name, fields, made, None)

    @names_step
    def reduce(self, name: str, function: Callable[[Any, Any], Any]) -> Stream:
        """Folds the records of a window into one, two at a time. The function must not mind how they are paired."""
        check_function(name, function, user_line(), arguments=2)
        known = self.keyed._schema()
        others = tuple(f for f in known.fields if f.name not in self.keyed.keys)
        return self._add(name, known.only(self.keyed.keys).fields + self._bounds() + others, (), function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"a stream by window has no {name!r}; it has aggregate, count, reduce and sum")

    def _add(self, name: str, fields: tuple[t.Field, ...], aggregates: tuple[Aggregate, ...], function: Any) -> Stream:
        time, schema = self._time(name, self.keyed.source), self._schema(fields)
        self._check_gap(name, self.keyed._schema())
        stream = self.keyed._keyed(name)
        late = (Output(stream.schema, LATE, event_time=stream.event_time_of),) if time is not None else ()
        spec = (self.keyed.keys, self.spec, aggregates, function, time)
        how = (self.lateness, self.early, self.accumulate, self.mode)
        node = Window(name, (stream.port,), (self._output(schema, time), *late), *spec, *how, line=user_line())
        return stream.flow.add(node)

    def _schema(self, fields: tuple[t.Field, ...]) -> Schema:
        bounds = [f.name for f in self._bounds()]
        names = [f.name for f in fields]
        taken = next((b for b in bounds if names.count(b) > 1), None)
        if taken:
            raise SchemaError(f"{taken!r} is the name of a field that windows add; rename yours with select first")
        return Schema(fields)

    def _output(self, schema: Schema, time: Timed | None) -> Output:
        over_time = isinstance(self.spec, TimeWindow | SessionWindow)
        timed = Timed(WINDOW_END, -1) if over_time and time is not None else None
        changing = self.mode != APPEND or bool(self.lateness) or self.early is not None
        if isinstance(self.spec, CountWindow) or not changing or not self.accumulate:
            return Output(schema, event_time=timed)
        return Output(schema, updates=(*self.keyed.keys, *(f.name for f in self._bounds())), event_time=timed)

    def _bounds(self) -> tuple[t.Field, ...]:
        if isinstance(self.spec, CountWindow):
            return (t.Field(WINDOW_NUMBER, t.BIGINT),)
        if isinstance(self.spec, GlobalWindow):
            return ()
        return (t.Field(WINDOW_START, t.TIMESTAMP), t.Field(WINDOW_END, t.TIMESTAMP))

    def _time(self, name: str, stream: Stream) -> Timed | None:
        if isinstance(self.spec, CountWindow | GlobalWindow) or self.clock == PROCESSING:
            return None
        if stream.event_time_of is None:
            raise FlowError(
                f"step {name!r} ({user_line()}): windows over time need to know when records happened, and {stream.port} does "
                f"not say. Give its source event_time='a timestamp field', put .event_time('time', 'field') before it, or say "
                f"clock='processing' to go by the clock"
            )
        return stream.event_time_of

    def _check_gap(self, name: str, schema: Schema) -> None:
        gap = self.spec.gap if isinstance(self.spec, SessionWindow) else None
        if isinstance(gap, Expr):
            kind = type_of_expr(gap, schema)
            if not t.is_numeric(kind):
                raise SchemaError(f"the gap of a session is a number of seconds; {to_sql(gap)} is {kind}")
        elif callable(gap):
            check_function(name, gap, user_line())

    def _check(self) -> None:
        where = f"window ({user_line()})"
        if not isinstance(self.spec, TimeWindow | SessionWindow | CountWindow | GlobalWindow):
            raise FlowError(
                f"{where} takes a kind of windows: ps.tumbling('10s'), ps.sliding('60s', every='10s'), ps.session('5m'), "
                f"ps.count_window(100) or ps.global_window(), got {self.spec!r}"
            )
        if self.mode not in (APPEND, UPDATE, COMPLETE):
            raise FlowError(
                f"{where}: mode is append, update or complete; {nearest(self.mode, (APPEND, UPDATE, COMPLETE))}"
            )
        if self.clock not in (EVENT, PROCESSING):
            raise FlowError(f"{where}: clock is 'event' or 'processing', got {self.clock!r}")
        if self.early is not None and not isinstance(self.early, EveryInterval | EveryRecords):
            raise FlowError(f"{where}: early is ps.every_interval('5s') or ps.every_records(100), got {self.early!r}")
        self._check_together(where)

    def _check_together(self, where: str) -> None:
        if self.early is not None and self.mode != APPEND:
            raise FlowError(f"{where}: mode={self.mode!r} gives what changed after every batch; leave out early")
        if not self.accumulate and self.mode == COMPLETE:
            raise FlowError(f"{where}: mode='complete' gives whole results; it cannot go with accumulate=False")
        if isinstance(self.spec, CountWindow) and (self.early or self.lateness or self.mode != APPEND):
            raise FlowError(
                f"{where}: a count window is given when it is full; early, lateness and mode do not go with it"
            )
        if isinstance(self.spec, GlobalWindow) and self.early is None and self.mode == APPEND:
            raise FlowError(
                f"{where}: a window over all time never ends, so it would give nothing; say early=ps.every_interval('5s'), "
                f"early=ps.every_records(100) or mode='update'"
            )
        if isinstance(self.spec, GlobalWindow) and self.lateness:
            raise FlowError(f"{where}: nothing is late for a window over all time; leave out lateness")
        if self.clock == PROCESSING and self.lateness:
            raise FlowError(f"{where}: nothing is late by the clock; leave out lateness, or go by event time")


def _lateness(given: Any) -> int:
    span = micros(given, "lateness")
    if span < 0:
        raise FlowError(f"lateness is a span of time; {given!r} is below zero")
    return span
