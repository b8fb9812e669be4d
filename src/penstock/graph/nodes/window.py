"""Windows: aggregates over the records of a key in a span of time, or over so many of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from penstock.errors import FlowError, SchemaError, nearest
from penstock.graph import types as t
from penstock.graph.aggregates.aggregate import ROWS, RankedRows
from penstock.graph.duration import shown
from penstock.graph.expr import Column, Expr, to_text, type_of_expr
from penstock.graph.ids import child
from penstock.graph.logic.capture import check_function
from penstock.graph.node_expressions import calls_in
from penstock.graph.nodes.base import (
    ALL,
    FOR_EVER,
    LATE,
    OUT,
    Changes,
    Inputs,
    Node,
    Output,
    Port,
    Settings,
    TimeField,
    counted,
    has_hidden,
    label,
)
from penstock.graph.nodes.keyed import AggregateStep
from penstock.graph.nodes.ordering import check_top
from penstock.graph.nodes.stateless import Explode, RowFunction, Select
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

WINDOW_START, WINDOW_END, WINDOW_NUMBER = "window_start", "window_end", "window"
ROW = "__row"
"""The field of a ranked record, before its own fields are taken out of it."""
PANE, START, END, GAP, RECORD = "__pane", "__start", "__end", "__gap", "__record"
"""The fields of parts: where a pane begins; from when to when a piece of a session is; the gap of a record; the record itself."""
APPEND, UPDATE, COMPLETE = "append", "update", "complete"
EVENT, PROCESSING = "event", "processing"


@dataclass(frozen=True)
class Windows:
    """Which windows, and when their results are emitted; checked when it is made.

    Args:
        spec: the windows, such as `ps.tumbling("10s")`.
        lateness: microseconds for which a window is kept after its end, for corrections.
        early: when results are emitted before the end, if at all.
        accumulate: whether a result holds all so far, and not only what is new since the last one.
        mode: "append", "update" or "complete".
        clock: "event" time, or "processing" time.

    Raises:
        FlowError: two of them do not go together.
    """

    spec: WindowSpec
    lateness: int = 0
    early: Early | None = None
    accumulate: bool = True
    mode: str = APPEND
    clock: str = EVENT

    def __post_init__(self) -> None:
        if not isinstance(self.spec, TimeWindow | SessionWindow | CountWindow | GlobalWindow):
            raise FlowError(
                f"window takes a kind of windows: ps.tumbling('10s'), ps.sliding('60s', every='10s'), ps.cumulating('1d', every='1h'), ps.session('5m'), "
                f"ps.count_window(100) or ps.global_window(), got {self.spec!r}"
            )
        if self.mode not in (APPEND, UPDATE, COMPLETE):
            raise FlowError(f"mode is append, update or complete; {nearest(self.mode, (APPEND, UPDATE, COMPLETE))}")
        if self.clock not in (EVENT, PROCESSING):
            raise FlowError(f"clock is 'event' or 'processing', got {self.clock!r}")
        if self.early is not None and not isinstance(self.early, EveryInterval | EveryRecords):
            raise FlowError(f"early is ps.every_interval('5s') or ps.every_records(100), got {self.early!r}")
        self._check_together()
        self._check_lateness()

    def _check_together(self) -> None:
        if self.early is not None and self.mode != APPEND:
            raise FlowError(f"mode={self.mode!r} emits what changed after every batch; leave out early")
        if not self.accumulate and self.mode == COMPLETE:
            raise FlowError("mode='complete' emits complete results; it cannot go with accumulate=False")
        if isinstance(self.spec, CountWindow) and (self.early or self.lateness or self.mode != APPEND):
            raise FlowError("a count window is emitted when it is full; early, lateness and mode do not go with it")
        if isinstance(self.spec, GlobalWindow) and self.early is None and self.mode == APPEND:
            raise FlowError(
                "a window over all time never ends, so it would emit nothing; say early=ps.every_interval('5s'), "
                "early=ps.every_records(100) or mode='update'"
            )

    def _check_lateness(self) -> None:
        if isinstance(self.spec, GlobalWindow) and self.lateness:
            raise FlowError("nothing is late for a window over all time; leave out lateness")
        if self.clock == PROCESSING and self.lateness:
            raise FlowError("nothing is late in processing time; leave out lateness, or go by event time")

    @property
    def over_time(self) -> bool:
        """Whether the windows are spans of time that end."""
        return isinstance(self.spec, TimeWindow | SessionWindow)

    @property
    def changing(self) -> bool:
        """Whether a result may be emitted again for the same window, instead of the earlier one."""
        several = self.mode != APPEND or bool(self.lateness) or self.early is not None
        return several and self.accumulate and not isinstance(self.spec, CountWindow)

    def bounds(self) -> tuple[t.Field, ...]:
        """The fields that say which window a result is of."""
        if isinstance(self.spec, CountWindow):
            return (t.Field(WINDOW_NUMBER, t.BIGINT),)
        if isinstance(self.spec, GlobalWindow):
            return ()
        return (t.Field(WINDOW_START, t.TIMESTAMP), t.Field(WINDOW_END, t.TIMESTAMP))


@dataclass(frozen=True)
class Window(AggregateStep):
    """Aggregates, or a fold by `function`, per key and window.

    `time` is where the event time is; None means processing time. Records may be `lateness` later than the end of their
    window. `mode` says when results are emitted: once when the window ends (and what changes later), whenever they change, or all that
    are kept. `parts` says what comes in: records, or parts of aggregates that a native step made before the shuffle.
    """

    windows: Windows = field(kw_only=True)
    function: RowFunction | None = field(default=None, kw_only=True)
    time: TimeField | None = field(default=None, kw_only=True)
    parts: bool = field(default=False, kw_only=True)
    counted: bool = field(default=False, kw_only=True)
    """Whether each row has a count, below zero for a window that is gone; the compiler says so."""
    kind: ClassVar[str] = "window"
    python: ClassVar[bool] = True
    timed: ClassVar[bool] = True
    over_tables: ClassVar[bool] = True
    takes_functions: ClassVar[bool] = True

    @property
    def spec(self) -> WindowSpec:
        """The windows."""
        return self.windows.spec

    @property
    def lateness(self) -> int:
        """For how long a window is kept after its end, in microseconds."""
        return self.windows.lateness

    @property
    def early(self) -> Early | None:
        """When results are emitted before the end."""
        return self.windows.early

    @property
    def accumulate(self) -> bool:
        """Whether a result holds all so far."""
        return self.windows.accumulate

    @property
    def mode(self) -> str:
        """When results are emitted."""
        return self.windows.mode

    def resolve(self, given: Inputs) -> Self:
        """The aggregates over the fields of the input, and where its event time is."""
        if self.parts:
            return self
        if self.ranked is not None:
            self._check_ranked(self.ranked, given[0].schema)
        made = replace(self.over(given), time=self._time(given[0]))
        if made.results or made.is_kept or ALL not in made.keys or made.ranked is not None:
            return made
        return replace(made, results=tuple((f.name, Column(f.name)) for f in made._results(given[0].schema)))

    @property
    def ranked(self) -> RankedRows | None:
        """How records are ranked, where the first of each window are asked for."""
        return next((call.call for call in self.calls if isinstance(call.call, RankedRows)), None)

    @property
    def group(self) -> tuple[str, ...]:
        """The key and the bounds of the window."""
        keys = (key for key in self.keys if key != ALL)
        return (*keys, *(f.name for f in self.windows.bounds()))

    def finishing(self) -> tuple[Node, ...]:
        """The steps after `kept` that make the results; of ranked records a row for each."""
        if self.ranked is None or self.is_kept:
            return super().finishing()
        (rows,) = self.aggregates
        assert isinstance(rows.type, t.Array)
        assert isinstance(rows.type.item, t.Struct)
        each = Explode(child(self.name, "ranks"), (Port(self.name),), ROW, Column(rows.name), line=self.line)
        fields = ((f.name, Column(ROW).field(f.name)) for f in rows.type.item.fields)
        columns = (*((name, Column(name)) for name in self.group), *fields)
        return (each, Select(child(self.name, "results"), (Port(each.name),), columns, line=self.line))

    def _time(self, given: Output) -> TimeField | None:
        if not self.windows.over_time or self.windows.clock == PROCESSING:
            return None
        if given.event_time is None:
            raise FlowError(
                f"windows over time need to know when records happened, and {self.inputs[0]} does not say. Give its source "
                f"event_time='a timestamp field', put .event_time('time', 'field') before it, or say clock='processing' to go by processing time"
            )
        return given.event_time

    def check(self, given: Inputs) -> None:
        """Key, aggregates or function, and the gap of sessions fit the input."""
        super().check(given)
        if given[0].changes is not None:
            self._check_table()
        if self.function is None and self.ranked is None:
            self.check_aggregates()
        elif self.function is not None:
            check_function(self.name, self.function, self.line, arguments=2)
        if not self.parts:
            self._check_gap(given[0].schema)

    def _check_ranked(self, ranked: RankedRows, schema: Schema) -> None:
        check_top(ranked.n, ranked.by, ranked.into, schema)
        taken = next((f.name for f in schema.fields if f.name in self.group and f.name not in self.keys), None)
        if taken:
            raise SchemaError(f"{taken!r} is the name of a field that windows add; rename yours with select first")

    def _check_table(self) -> None:
        """Refuses windows in which a row that goes cannot be found again, and results that cannot be taken back."""
        said = "To window the changes as records, say .changelog('name') before it"
        if isinstance(self.spec, CountWindow):
            raise FlowError(
                f"a count window goes by the order in which records come, and the rows of a table have none. {said}"
            )
        if self.windows.over_time and self.windows.clock == PROCESSING:
            raise FlowError(
                f"in processing time a row is in the window in which it was added, and nobody knows that when it goes; go by event time. {said}"
            )
        if self.early is not None or not self.accumulate:
            raise FlowError(
                f"a window over a table is emitted when it ends, or with mode='update' after every batch that changes it; leave out "
                f"{'early' if self.early is not None else 'accumulate'}. {said}"
            )

    def _check_gap(self, schema: Schema) -> None:
        gap = self.spec.gap if isinstance(self.spec, SessionWindow) else None
        if isinstance(gap, Expr):
            kind = type_of_expr(gap, schema)
            if calls_in(gap):
                raise FlowError(
                    f"a Python function cannot be used in the gap of a session; compute it before, with with_columns, and name its field: {to_text(gap)}"
                )
            if not t.is_numeric(kind):
                raise SchemaError(f"the gap of a session is a number of seconds; {to_text(gap)} is {kind}")
        elif callable(gap):
            check_function(self.name, gap, self.line)

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The key, the bounds of the window and the results; and the late records, where records can be late."""
        bounds = self.windows.bounds()
        schema = _with_bounds(self.key_fields(given), bounds, self._results(given[0].schema))
        timed = TimeField(WINDOW_END, -1) if self.windows.over_time and self.time is not None else None
        of_table = given[0].changes is not None
        late = None if of_table else self._late_output(given[0])
        if self.counted:
            main = Output(counted(schema), OUT, None, timed)
        else:
            main = self.finished(Output(schema, OUT, self._changes(of_table), timed))
        return (main,) if late is None else (main, late)

    def _late_output(self, given: Output) -> Output | None:
        """The late records, where records can be late; of parts, where these have their records with them."""
        if self.time is None or (self.parts and RECORD not in given.schema):
            return None
        if not self.parts:
            return Output(self._late(given.schema), LATE, event_time=given.event_time)
        record = given.schema.field(RECORD).type
        assert isinstance(record, t.Struct)
        return Output(Schema(record.fields), LATE, event_time=self.time)

    def _late(self, schema: Schema) -> Schema:
        """Late records as they were read, without the hidden key."""
        if self.is_kept or ALL not in self.keys:
            return schema
        return schema.only(tuple(name for name in schema.names if name != ALL))

    def _changes(self, of_table: bool) -> Changes | None:
        """A table by key and window, where a window is emitted more than once.

        A session goes when it grows into another; a window over a table goes with its last row.
        """
        if not self.windows.changing:
            return None
        bounds = (f.name for f in self.windows.bounds())
        return Changes((*self.keys, *bounds), of_table or isinstance(self.spec, SessionWindow))

    def _results(self, schema: Schema) -> tuple[t.Field, ...]:
        if self.function is None:
            return self.aggregate_fields()
        return tuple(f for f in schema.fields if f.name not in self.keys)

    @property
    def ordered(self) -> bool:  # type: ignore[override]  # known when the windows are
        """Windows by count take the records in the order of arrival."""
        return isinstance(self.spec, CountWindow)

    @property
    def native(self) -> bool:
        """Whether parts can be made before the shuffle, by Spark: windows over time, all aggregates native."""
        over_time = isinstance(self.spec, TimeWindow | SessionWindow)
        return over_time and self.function is None and all(a.own is None for a in self.aggregates)

    @property
    def once(self) -> bool:
        """Whether each window is emitted once, when event time ends it, and is made of parts: then nothing need be looked up."""
        late = bool(self.early or self.lateness) or self.time is None
        return self.native and self.mode == APPEND and not late

    @property
    def stores(self) -> dict[str, str]:
        """Rows in time for windows that are emitted once; else a value for each key. How the plan splits the step makes no difference."""
        return {self.name: "rows" if self.once else "values"}

    @property
    def hold(self) -> int:
        """Corrections may come as late as late records may."""
        return self.lateness

    @property
    def keeps(self) -> str:
        """What open windows need, until they are over."""
        return f"{self.kept_values} {self.per_key} and window, {self._kept_until()}"

    def _kept_until(self) -> str:
        if isinstance(self.spec, CountWindow):
            return "until the window is full"
        if isinstance(self.spec, GlobalWindow):
            return FOR_EVER
        clock = "the watermark" if self.time is not None else "processing time"
        end = f"{clock} passes {WINDOW_END}"
        return f"until {end} + {shown(self.lateness)}" if self.lateness else f"until {end}"

    def settings(self) -> Settings:
        """The key, the windows, what is aggregated, and when it is given."""
        key = {} if ALL in self.keys else super().settings()
        made: Settings = {**key, "windows": str(self.spec)}
        made |= {"top": str(self.aggregates[0])} if self.ranked is not None else self.written_aggregates()
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

    @property
    def by_record(self) -> bool:
        """Whether each record is a piece of its own, and comes along: which records of a session are late shows only after the shuffle."""
        return isinstance(self.of.spec, SessionWindow) and not self.counted

    def derive(self, given: Inputs) -> tuple[Output, ...]:
        """The key, where the pane or the piece of a session is, the parts, and how many records they were made of; and the late records."""
        bounds = (START, END) if isinstance(self.of.spec, SessionWindow) else (PANE,)
        parts = (f for a in self.of.aggregates for f in a.part_fields)
        times = (t.Field(b, t.BIGINT) for b in bounds)
        fields = (*self.of.key_fields(given), *times, *parts, t.Field(ROWS, t.BIGINT))
        late = tuple(o for o in self.of.outputs if o.name == LATE)
        if self.by_record:
            return (Output(Schema((*fields, t.Field(RECORD, t.Struct(late[0].schema.fields))), internal=True)),)
        return (Output(Schema(fields, internal=True)), *late)


def _with_bounds(keys: tuple[t.Field, ...], bounds: tuple[t.Field, ...], results: tuple[t.Field, ...]) -> Schema:
    own = {f.name for f in bounds}
    taken = next((f.name for f in (*keys, *results) if f.name in own), None)
    if taken:
        raise SchemaError(f"{taken!r} is the name of a field that windows add; rename yours with select first")
    fields = keys + bounds + results
    return Schema(fields, internal=has_hidden(fields))
