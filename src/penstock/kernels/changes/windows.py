"""The kernel of windows over a table that need their rows: sessions, windows of a function, and the first of an order.

Of a key it keeps the rows of its open windows, and which windows have been emitted. A change is taken into the windows that are open;
the results of those that it touches are computed anew. A row that comes or goes when all its windows are over is late.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa

from penstock.graph.nodes import Window
from penstock.graph.nodes.changes import WindowChanges
from penstock.graph.nodes.window import APPEND
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.timers import EVENT
from penstock.graph.times import FOREVER, NEVER, Times, to_moment
from penstock.graph.windows import GlobalWindow, SessionWindow, Span
from penstock.kernels.base import Context, Out, RecordFailed
from penstock.kernels.changes.accumulators import accumulator_of
from penstock.kernels.changes.bags import bag_columns, bag_of, checkpoint_content_of
from penstock.kernels.changes.base import GatheredChangesKernel, negative
from penstock.kernels.changes.rows import Bag, NegativeCount, Row
from penstock.kernels.keyed.keyed import Key
from penstock.kernels.ordering.order import in_order
from penstock.kernels.records.chunk import shape_of
from penstock.kernels.stateless import shaped
from penstock.kernels.windows.window import WindowFold, WindowReduce, overlap, spans_of

Windows = dict[Span, Bag]
"""Windows, each with its rows."""


@dataclass
class KeyRows:
    """What is kept of a key: the rows of its open windows, and the windows that have been emitted and may change."""

    rows: Bag
    emitted: set[Span]


class WindowChangesKernel(GatheredChangesKernel):
    """Windows over signed rows, which are kept."""

    node: WindowChanges

    def __init__(self, node: WindowChanges, schema: Schema) -> None:
        super().__init__(node, schema)
        self.window = node.of
        self.make = shape_of(self.visible).make
        self.spans_of = spans_of(self.window, self.visible)
        self.folding = WindowResults(self.window, self.visible)
        self.is_session = isinstance(self.window.spec, SessionWindow)

    def layout(self) -> Layout:
        """The rows, the bounds of the windows that were emitted; timers say when a window ends."""
        bounds = (Column(f"emitted.{name}", pa.list_(pa.int64())) for name in ("start", "end"))
        return Layout(self.key_columns, (*bag_columns("row.", self.visible), *bounds), timers=True)

    def open(self, context: Context) -> None:
        """Finds the state and the timers."""
        super().open(context)
        self.ends = self.timers = self.timers_of(context)

    def advance(self, times: Times) -> Out:
        """The windows that end, and those that changed."""
        self.move(times)
        new, self.new = self.new, {}
        due = (each.key for each in self.ends.due(EVENT, times.watermark))
        made = [row for key in dict.fromkeys((*new, *due)) for row in self._moved(key, new.get(key))]
        if made:
            yield "out", shaped(self, "out", made)

    def _moved(self, key: Key, new: Bag | None) -> Iterator[Row]:
        """What a key emits when its changes are in and time moves."""
        kept = self._read(key)
        before = self._windows(kept.rows)
        if new is not None:
            self._change(key, kept, new)
        after = self._windows(kept.rows)
        for span in sorted({*before, *after, *kept.emitted}):
            yield from self._emitted(key, span, before.get(span), after.get(span), kept)
        self._keep(key, kept, after)

    # -- what is kept -----------------------------------------------------------------------------------------------

    def _read(self, key: Key) -> KeyRows:
        found = self.state.get(key)
        if found is None:
            return KeyRows(Bag(self.identity), set())
        starts, ends = found[-2:]
        return KeyRows(bag_of(found[:-2], self.identity), set(zip(starts or (), ends or (), strict=True)))

    def _keep(self, key: Key, kept: KeyRows, windows: Windows) -> None:
        """Keeps the rows of windows that time has not passed, and forgets the rest."""
        mark = self.times.watermark
        open_ = {span: rows for span, rows in windows.items() if not is_over(self.window, span, mark)}
        emitted = sorted(span for span in kept.emitted if not is_over(self.window, span, mark))
        if not open_ and not emitted:
            self.state.delete(key)
            self.ends.clear(key)
            return
        rows = Bag(self.identity)
        for each in open_.values():
            rows.update((row, count) for row, count in each if not rows.count(row))
        starts, ends = [list(bounds) for bounds in zip(*emitted, strict=True)] if emitted else ([], [])
        self.state.put(key, (*checkpoint_content_of(rows, self.width), starts, ends))
        self.ends.set(key, EVENT, wake_of(self.window, (*open_, *emitted), mark))

    # -- which rows are in which window -----------------------------------------------------------------------------

    def _change(self, key: Key, kept: KeyRows, new: Bag) -> None:
        """Takes the changes into the rows of a key, and counts those that are late."""
        late = self._late(kept.rows, new)
        for at, (row, count) in enumerate(new):
            if at in late:
                self.counters.late += abs(count)
            elif kept.rows.add(row, count) < 0:
                raise negative(self, key, NegativeCount(f"{row!r} was taken back more often than it was there"))

    def _late(self, rows: Bag, new: Bag) -> set[int]:
        """Which of some changes, by number, are of windows that were over before."""
        edge = self.times.previous
        if not self.is_session:
            return {
                at for at, (row, _) in enumerate(new) if all(is_over(self.window, s, edge) for s in self._spans(row))
            }
        both = rows.copy()
        both.update((row, count) for row, count in new if count > 0)
        over = [span for span in self._windows(both) if is_over(self.window, span, edge)]
        return {at for at, (row, count) in enumerate(new) if self._is_past(row, count, both, over)}

    def _is_past(self, row: Row, count: int, rows: Bag, over: list[Span]) -> bool:
        """Whether a row comes into a session that is over, or goes from one that is forgotten."""
        if count < 0:
            return rows.count(row) + count < 0
        return not (spans := self._spans(row)) or any(overlap(spans[0], span) for span in over)

    def _spans(self, row: Row) -> list[Span]:
        made = self.make(row)
        try:
            return self.spans_of(row, made, 0)
        except Exception as error:
            raise RecordFailed(self.node, made, None, error) from error

    def _windows(self, rows: Bag) -> Windows:
        """The windows of some rows; sessions that overlap are one."""
        made: Windows = {}
        by_span = [(span, row, count) for row, count in rows for span in self._spans(row)]
        if self.is_session:
            by_span = list(_sessions(sorted(by_span, key=lambda each: each[0])))
        for span, row, count in by_span:
            made.setdefault(span, Bag(self.identity)).add(row, count)
        return made

    # -- what is emitted --------------------------------------------------------------------------------------------

    def _emitted(self, key: Key, span: Span, before: Bag | None, after: Bag | None, kept: KeyRows) -> Iterator[Row]:
        """The row of a window that is to be emitted; of one that is gone, where rows may go."""
        if is_over(self.window, span, self.times.previous) or not self._triggered(span, before, after):
            return
        if after is not None:
            kept.emitted.add(span)
            yield self._row(key, span, self.folding.results(after), 1)
        elif span in kept.emitted:
            kept.emitted.discard(span)
            assert before is not None, "a window that was emitted had rows"
            yield self._row(key, span, self.folding.results(before), -1)

    def _triggered(self, span: Span, before: Bag | None, after: Bag | None) -> bool:
        ends_now = max(self.times.previous, NEVER) < span[1] <= self.times.watermark
        if self.window.mode == APPEND and span[1] > self.times.watermark:
            return False
        return (ends_now and self.window.mode == APPEND) or not _equal(before, after)

    def _row(self, key: Key, span: Span, results: Iterable[Any], count: int) -> Row:
        bounds = () if isinstance(self.window.spec, GlobalWindow) else tuple(map(to_moment, span))
        return (*key, *bounds, *results, *((count,) if self.node.counted else ()))


def is_over(window: Window, span: Span, mark: int) -> bool:
    """Whether a window takes no more changes when event time has come to `mark`."""
    return span[1] <= mark if span[1] == FOREVER else span[1] + window.lateness <= mark


def wake_of(window: Window, spans: Iterable[Span], mark: int) -> int:
    """When the first of some windows ends, or is forgotten, after event time has come to `mark`."""
    return min(end if end > mark else end + window.lateness for _, end in spans)


def _sessions(by_span: list[tuple[Span, Row, int]]) -> Iterator[tuple[Span, Row, int]]:
    """Rows in the order of their spans, each with the session that it is in."""
    group: list[tuple[Span, Row, int]] = []
    end = NEVER
    for each in by_span:
        if group and each[0][0] >= end:
            yield from (((group[0][0][0], end), row, count) for _, row, count in group)
            group, end = [], NEVER
        group.append(each)
        end = max(end, each[0][1])
    yield from (((group[0][0][0], end), row, count) for _, row, count in group)


def _equal(one: Bag | None, other: Bag | None) -> bool:
    """Whether two windows have the same rows."""
    if one is None or other is None:
        return one is other
    return len(one) == len(other) and all(other.count(row) == count for row, count in one)


def _folding_of(window: Window, schema: Schema) -> WindowFold | None:
    """How rows are folded one by one, where they are: by a function, or into the first of an order."""
    if window.function is not None:
        return WindowReduce(window, schema)
    return WindowFold(window, schema) if window.ranked is not None else None


class WindowResults:
    """What a window step answers for the rows of a window."""

    def __init__(self, window: Window, schema: Schema) -> None:
        self.names, self.make = schema.names, shape_of(schema).make
        self.folding = _folding_of(window, schema)
        self.accumulators = [accumulator_of(a, schema) for a in window.aggregates] if self.folding is None else []

    def results(self, rows: Bag) -> Iterable[Any]:
        """The fields of a result."""
        if self.folding is not None:
            every = in_order((row for row, count in rows for _ in range(count)), (), self.names)
            whole = reduce(self.folding.merge, (self.folding.begin(row, self.make(row)) for row in every), None)
            assert whole is not None, "a window has rows"
            return self.folding.results(whole)
        total, made = rows.total(), list[Any]()
        for accumulator in self.accumulators:
            parts = accumulator.empty()
            for row, count in rows:
                accumulator.add(parts, 0, row, self.make(row), count)
            made.append(accumulator.result(parts, 0, total))
        return made
