"""Windows in Python, a key at a time: every kind of window over time, every trigger, aggregates of any kind.

What a key keeps is its open windows, each with the parts of its aggregates. The local runtime uses this for all windows over time; on Spark
those that are given once, of native aggregates, have a quicker kernel (`window_panes.py`, `window_sessions.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from penstock.errors import FlowError
from penstock.graph.aggregates.aggregate import Aggregate
from penstock.graph.duration import micros
from penstock.graph.expr import Expr
from penstock.graph.graph import Graph
from penstock.graph.nodes import LATE, Window
from penstock.graph.nodes.window import COMPLETE, PANE, START, UPDATE
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.timers import EVENT, PROCESSING, DueTimer
from penstock.graph.times import FOREVER, NEVER, Times, to_micros, to_moment
from penstock.graph.windows import (
    EveryInterval,
    EveryRecords,
    GlobalWindow,
    SessionWindow,
    Span,
    TimeWindow,
    gap_expression,
)
from penstock.kernels.base import Context, Out, RecordFailed
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.keyed.aggregates import begins, finish, merges
from penstock.kernels.keyed.keyed import Key, KeyedKernel
from penstock.kernels.records.chunk import Chunk, shape_of
from penstock.kernels.stateless import shaped

Parts = tuple[Any, ...]


@dataclass(slots=True)
class OpenWindow:
    """An open window of a key: its parts, of how many records, and how many of them are new since it was emitted."""

    parts: Parts | None
    rows: int
    fresh: int
    given: bool = False


class WindowFold:
    """How the parts of a window step are made of records, go together, and become the fields of a result."""

    def __init__(self, node: Window, schema: Schema) -> None:
        self.aggregates: tuple[Aggregate, ...] = node.aggregates
        self.begins = [b for a in node.aggregates for b in begins(a, schema)] if not node.parts else []
        self.merges = [m for a in node.aggregates for m in merges(a)]
        self.widths = [len(merges(a)) for a in node.aggregates]

    def begin(self, values: Sequence[Any], row: object) -> Parts:
        """What one record makes."""
        return tuple(b(values, row) for b in self.begins)

    def merge(self, one: Parts | None, other: Parts | None) -> Parts | None:
        """Two together."""
        if one is None or other is None:
            return other if one is None else one
        return tuple(m(a, b) for m, a, b in zip(self.merges, one, other, strict=True))

    def results(self, parts: Parts) -> Iterator[Any]:
        """The fields of a result."""
        at = 0
        for aggregate, width in zip(self.aggregates, self.widths, strict=True):
            yield finish(aggregate, parts[at : at + width])
            at += width

    def nothing(self) -> Iterable[Any]:
        """The fields of a result that is taken back."""
        return [None] * len(self.aggregates)


class WindowReduce(WindowFold):
    """The same for a function of two records."""

    def __init__(self, node: Window, schema: Schema) -> None:
        super().__init__(node, schema)
        self.function = node.function or max
        self.shape = shape_of(schema)
        self.keys = [schema.names.index(k) for k in node.keys]
        self.others = [at for at, name in enumerate(schema.names) if name not in node.keys]

    def begin(self, values: Sequence[Any], row: object) -> Parts:
        """The record itself."""
        return tuple(values)

    def merge(self, one: Parts | None, other: Parts | None) -> Parts | None:
        """The function's record, as plain values."""
        if one is None or other is None:
            return other if one is None else one
        made = self.shape.values(self.function(self.shape.make(one), self.shape.make(other)))
        values = tuple(c[0] for c in self.shape.checked([[v] for v in made]))
        if [values[at] for at in self.keys] != [one[at] for at in self.keys]:
            raise ValueError(f"reduce must keep the key fields as they are, got {made!r}")
        return values

    def results(self, parts: Parts) -> Iterator[Any]:
        """The fields beside the key."""
        return (parts[at] for at in self.others)

    def nothing(self) -> Iterable[Any]:
        """The fields of a result that is taken back."""
        return [None] * len(self.others)


class WindowKernel(KeyedKernel):
    """Windows over time, sessions, and the one over all time."""

    node: Window

    def __init__(self, node: Window, graph: Graph) -> None:
        schema = graph.output(node.inputs[0]).schema
        super().__init__(node, schema)
        self.folding = (WindowReduce if node.function is not None else WindowFold)(node, schema)
        self.cache: dict[Key, dict[Span, OpenWindow]] = {}
        self.back: list[tuple[Key, Span, Parts | None]] = []
        self.spans_of = spans_of(node, schema)

    def layout(self) -> Layout:
        """The windows of a key; timers say when it next has work."""
        return Layout(self.key_columns, (Column("windows"),), single=True, timers=True)

    def open(self, context: Context) -> None:
        """Finds the state, the timers and the processing time."""
        super().open(context)
        self.waits = self.timers = self.timers_of(context)
        self.now = context.now

    @property
    def by_clock(self) -> bool:
        """Whether windows go by processing time."""
        return self.node.time is None and not isinstance(self.node.spec, GlobalWindow)

    def moves(self) -> tuple[int, int]:
        """From when to when time moves in this batch."""
        times = self.times
        if self.by_clock:
            return times.before, FOREVER if times.watermark == FOREVER else times.now
        return times.previous, times.watermark

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Puts records into their windows, and returns those that are too late for all of them."""
        late = self._take_parts(chunk) if self.node.parts else self._take_records(chunk)
        if late:
            flags = [False] * len(chunk)
            for at in late:
                flags[at] = True
            yield LATE, chunk.keep(flags)

    def _take_records(self, chunk: Chunk) -> list[int]:
        rows, late, closed_until = chunk.rows(), [], self.moves()[0] - self.node.lateness
        now = max(self.times.now, round(self.now() * 1_000_000))
        for at, (values, key) in enumerate(zip(chunk.values(), self.keys(chunk), strict=True)):
            try:
                spans = self.open_spans(key, self.spans_of(values, rows[at], now), closed_until)
                for span in spans:
                    self.put(key, span, self.folding.begin(values, rows[at]), 1)
            except Exception as error:
                raise RecordFailed(self.node, rows[at], at, error) from error
            if not spans:
                late.append(at)
        return late

    def _take_parts(self, chunk: Chunk) -> list[int]:
        """Parts: the key, the pane or the span, the parts, and of how many records they are made."""
        closed_until, width = self.moves()[0] - self.node.lateness, len(self.node.keys)
        for values, key in zip(chunk.values(), self.keys(chunk), strict=True):
            self.counters.native += values[-1]
            spans = [] if values[width] is None else self.open_spans(key, self.spans_of(values, None, 0), closed_until)
            for span in spans:
                self.put(key, span, values[width + self._bounds : -1], values[-1])
            if not spans:
                self.counters.late += values[-1]
        return []

    def open_spans(self, key: Key, spans: list[Span], closed_until: int) -> list[Span]:
        """Those of a record's windows that are not over; a session that is goes on if it meets one that is not."""
        if not isinstance(self.node.spec, SessionWindow):
            return [s for s in spans if s[1] > closed_until]
        return [s for s in spans if s[1] > closed_until or any(overlap(s, o) for o in self.windows(key))]

    @property
    def _bounds(self) -> int:
        return 1 if isinstance(self.node.spec, TimeWindow) else 2

    def windows(self, key: Key) -> dict[Span, OpenWindow]:
        """The open windows of a key."""
        if key not in self.cache:
            kept = self.state.get(key)
            self.cache[key] = {} if kept is None else kept
        return self.cache[key]

    def put(self, key: Key, span: Span, parts: Parts, rows: int) -> None:
        """Puts parts into a window; sessions that overlap become one."""
        windows = self.windows(key)
        held = OpenWindow(parts, rows, rows)
        if isinstance(self.node.spec, SessionWindow):
            span, held = self._joined(key, windows, span, held)
        elif span in windows:
            held = self._both(windows[span], held)
        windows[span] = held

    def _both(self, one: OpenWindow, other: OpenWindow) -> OpenWindow:
        parts = self.folding.merge(one.parts, other.parts)
        return OpenWindow(parts, one.rows + other.rows, one.fresh + other.fresh, one.given)

    def _joined(
        self, key: Key, windows: dict[Span, OpenWindow], span: Span, held: OpenWindow
    ) -> tuple[Span, OpenWindow]:
        met = sorted(s for s in windows if overlap(s, span))
        whole = (min([span[0], *(s[0] for s in met)]), max([span[1], *(s[1] for s in met)]))
        for each in met:
            before = windows.pop(each)
            if before.given and self.node.accumulate and each != whole:
                self.back.append((key, each, before.parts))
            held = self._both(OpenWindow(before.parts, before.rows, before.fresh, before.given and each == whole), held)
        return whole, held

    def advance(self, times: Times) -> Out:
        """Time moves: windows that it ends, and those that a trigger names, are emitted."""
        self.move(times)
        mark = self.moves()[1]
        for due in self._due(mark):
            self.windows(due.key)
        made = [self._record(key, span, parts, -1) for key, span, parts in self.back]
        if self.node.mode == COMPLETE:
            made += self._complete()
        for key, windows in self.cache.items():
            made += self._given(key, windows, mark)
            self._settle(key, windows, mark)
        self.cache, self.back = {}, []
        if made:
            yield "out", shaped(self, "out", made)

    def _due(self, mark: int) -> list[DueTimer]:
        """The keys whose windows end, or whose early trigger has come."""
        if self.by_clock:
            return list(self.waits.due(PROCESSING, mark))
        return [*self.waits.due(EVENT, mark), *self.waits.due(PROCESSING, self.times.now)]

    def _ticked(self) -> bool:
        """Whether processing time has passed a step of the early trigger since the last batch."""
        early, before = self.node.early, self.times.before
        if not isinstance(early, EveryInterval) or before == NEVER:
            return False
        return self.times.now // early.interval > before // early.interval

    def _complete(self) -> Iterator[Any]:
        """All that is kept, if anything of it changed."""
        if not any(h.fresh for windows in self.cache.values() for h in windows.values()):
            return
        for key, _ in list(self.state.items()):
            self.windows(key)
        for key, windows in self.cache.items():
            for span, held in windows.items():
                held.fresh, held.given = 0, True
                yield self._record(key, span, held.parts)

    def _given(self, key: Key, windows: dict[Span, OpenWindow], mark: int) -> Iterator[Any]:
        for span in sorted(windows):
            held = windows[span]
            if held.fresh and self._triggered(span, held, mark):
                assert held.parts is not None
                yield self._record(key, span, held.parts)
                held.fresh, held.given = 0, True
                held.parts = held.parts if self.node.accumulate else None

    def _triggered(self, span: Span, held: OpenWindow, mark: int) -> bool:
        if self.node.mode == UPDATE or span[1] <= mark:
            return True
        early = self.node.early
        if isinstance(early, EveryRecords):
            return held.rows // early.records > (held.rows - held.fresh) // early.records
        return self._ticked()

    def _record(self, key: Key, span: Span, parts: Parts | None, many: int = 1) -> tuple[Any, ...]:
        bounds = () if isinstance(self.node.spec, GlobalWindow) else tuple(map(to_moment, span))
        results = self.folding.nothing() if parts is None else self.folding.results(parts)
        return (*key, *bounds, *results, *((many,) if self.node.counted else ()))

    def _settle(self, key: Key, windows: dict[Span, OpenWindow], mark: int) -> None:
        """Forgets the windows whose time is over, and keeps the others."""
        for span in [s for s in windows if s[1] + self.node.lateness <= mark or s[1] == mark == FOREVER]:
            del windows[span]
        if not windows:
            self.state.delete(key)
            self.waits.clear(key)
            return
        self.state.put(key, windows)
        ends = min(end if end > mark else end + self.node.lateness for _, end in windows)
        tick = self._next_tick(windows)
        if self.by_clock:
            self.waits.set(key, PROCESSING, min(ends, tick))
        else:
            self.waits.set(key, EVENT, ends)
            self._wait_for_tick(key, tick)

    def _wait_for_tick(self, key: Key, tick: int) -> None:
        if tick < FOREVER:
            self.waits.set(key, PROCESSING, tick)
        else:
            self.waits.delete(key, PROCESSING)

    def _next_tick(self, windows: dict[Span, OpenWindow]) -> int:
        early = self.node.early
        if isinstance(early, EveryInterval) and any(h.fresh for h in windows.values()):
            return (self.times.now // early.interval + 1) * early.interval
        return FOREVER


def overlap(one: Span, other: Span) -> bool:
    """Whether two sessions are one; the end is not in a span, so those that only touch are two.

    >>> overlap((0, 10), (9, 12)), overlap((0, 10), (10, 12))
    (True, False)
    """
    return one[0] < other[1] and other[0] < one[1]


SpansOf = Callable[[Any, Any, int], list[Span]]
"""The windows of a record: of its values, its row, and processing time."""


def spans_of(node: Window, schema: Schema) -> SpansOf:
    """How the windows of a record are found."""
    spec = node.spec
    if isinstance(spec, TimeWindow):
        if node.parts:
            pane = schema.names.index(PANE)
            return lambda values, row, now: spec.spans(values[pane])
        time_of = time_getter(node, schema)
        return lambda values, row, now: [s for at in time_of(values, now) for s in spec.spans(spec.pane_of(at))]
    if isinstance(spec, SessionWindow):
        return _sessions_of(node, spec, schema)
    return lambda values, row, now: [GlobalWindow.span]


def _sessions_of(node: Window, spec: SessionWindow, schema: Schema) -> SpansOf:
    if node.parts:
        start = schema.names.index(START)
        return lambda values, row, now: [(values[start], values[start + 1])]
    gap_of, time_of = gap_getter(spec, schema), time_getter(node, schema)
    return lambda values, row, now: [(at, at + gap_of(values, row)) for at in time_of(values, now)]


def time_getter(node: Window, schema: Schema) -> Callable[[Any, int], list[int]]:
    """When a record happened, from its values and processing time; nothing when it does not say."""
    if node.time is None:
        return lambda values, now: [now]
    at, shift = schema.names.index(node.time.column), node.time.shift
    return lambda values, now: [] if values[at] is None else [to_micros(values[at]) + shift]


def gap_getter(spec: SessionWindow, schema: Schema) -> Callable[[Any, Any], int]:
    """The gap after a record, in microseconds, from its values and its row."""
    gap = spec.gap
    if isinstance(gap, int):
        return lambda values, row: gap
    if isinstance(gap, Expr):
        of = compile_expr(gap_expression(gap), schema)
        return lambda values, row: checked_gap(of(values))
    return lambda values, row: gap_by(gap, row)


def gap_by(function: Callable[[Any], Any], row: object) -> int:
    """The gap that a function returns for a record, in microseconds."""
    return checked_gap(micros(function(row), "the gap of a session"))


def checked_gap(gap: int | None) -> int:
    """A gap that can be used."""
    if gap is None or gap <= 0:
        raise FlowError(f"the gap of a session is a span of time above zero, got {gap!r}")
    return int(gap)
