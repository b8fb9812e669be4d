"""The kernel of windows over a table whose results can be taken back value by value.

Of a key it keeps its open windows, each with the parts of its aggregates. Sessions, which fall apart when a row goes, and functions,
which cannot take a row back, keep the rows instead (`windows.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.graph.nodes.changes import WindowChanges
from penstock.graph.nodes.window import APPEND
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.timers import EVENT
from penstock.graph.times import Times, to_moment
from penstock.graph.windows import GlobalWindow, Span
from penstock.kernels.base import Context, Out, RecordFailed
from penstock.kernels.changes.accumulators import Accumulator, accumulator_of
from penstock.kernels.changes.base import ChangesKernel, negative, signed_rows
from penstock.kernels.changes.rows import NegativeCount, Row
from penstock.kernels.changes.windows import WindowChangesKernel, is_over, wake_of
from penstock.kernels.keyed.keyed import Key
from penstock.kernels.ordering.ranking import same
from penstock.kernels.records.chunk import Chunk, shape_of
from penstock.kernels.stateless import shaped
from penstock.kernels.windows.window import spans_of


@dataclass(slots=True)
class OpenWindow:
    """A window of a key: how many rows are in it, the parts of its aggregates, and the results that were emitted last."""

    rows: int
    parts: list[Any]
    emitted: Row | None = None


class WindowTotalsKernel(ChangesKernel):
    """Windows over time and the one over all time, over signed rows."""

    node: WindowChanges

    def __init__(self, node: WindowChanges, schema: Schema) -> None:
        super().__init__(node, schema)
        self.window = node.of
        self.make = shape_of(self.visible).make
        self.spans_of = spans_of(self.window, self.visible)
        self.accumulators: list[tuple[Accumulator, int]] = []
        at = 0
        for aggregate in self.window.aggregates:
            made = accumulator_of(aggregate, self.visible)
            self.accumulators.append((made, at))
            at += made.width
        self.cache: dict[Key, dict[Span, OpenWindow]] = {}

    def layout(self) -> Layout:
        """The windows of a key; timers say when one ends."""
        return Layout(self.key_columns, (Column("windows"),), single=True, timers=True)

    def open(self, context: Context) -> None:
        """Finds the state and the timers."""
        super().open(context)
        self.ends = self.timers = self.timers_of(context)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Adds what comes to the windows that are open, and takes back what goes; the rest is late."""
        for at, (key, (values, count)) in enumerate(zip(self.keys(chunk), signed_rows(chunk), strict=True)):
            row = self.make(values)
            try:
                spans = [s for s in self.spans_of(values, row, 0) if not is_over(self.window, s, self.times.previous)]
                for accumulator, _ in self.accumulators if self.guarded else ():
                    accumulator.probe(values, row)
                for span in spans:
                    self._add(self._of(key, span), values, row, count)
            except Exception as error:
                raise RecordFailed(self.node, row, at, error) from error
            self.counters.late += 0 if spans else abs(count)
        return ()

    def _windows(self, key: Key) -> dict[Span, OpenWindow]:
        if key not in self.cache:
            kept: dict[Span, OpenWindow] | None = self.state.get(key)
            self.cache[key] = {} if kept is None else kept
        return self.cache[key]

    def _of(self, key: Key, span: Span) -> OpenWindow:
        windows = self._windows(key)
        if span not in windows:
            windows[span] = OpenWindow(0, [part for made, _ in self.accumulators for part in made.empty()])
        return windows[span]

    def _add(self, window: OpenWindow, values: Row, row: object, count: int) -> None:
        window.rows += count
        for accumulator, at in self.accumulators:
            accumulator.add(window.parts, at, values, row, count)

    def advance(self, times: Times) -> Out:
        """The windows that end, and those that changed."""
        self.move(times)
        for due in self.ends.due(EVENT, times.watermark):
            self._windows(due.key)
        made = [row for key in self.cache for row in self._emitted(key)]
        for key, windows in self.cache.items():
            self._keep(key, windows)
        self.cache = {}
        if made:
            yield "out", shaped(self, "out", made)

    def _emitted(self, key: Key) -> Iterator[Row]:
        for span, window in sorted(self.cache[key].items(), key=lambda each: each[0]):
            if self.window.mode == APPEND and span[1] > self.times.watermark:
                continue
            after, before = self._results(key, window), window.emitted
            if not same(before, after):
                window.emitted = after
                yield self._row(key, span, after, 1) if after is not None else self._row(key, span, before or (), -1)

    def _results(self, key: Key, window: OpenWindow) -> Row | None:
        """What a window answers; None when it has no rows."""
        try:
            if window.rows < 0:
                raise NegativeCount(f"{-window.rows} more rows were taken back than were there")
            if not window.rows:
                return None
            return tuple(made.result(window.parts, at, window.rows) for made, at in self.accumulators)
        except NegativeCount as error:
            raise negative(self, key, error) from error

    def _row(self, key: Key, span: Span, results: Row, count: int) -> Row:
        bounds = () if isinstance(self.window.spec, GlobalWindow) else tuple(map(to_moment, span))
        return (*key, *bounds, *results, *((count,) if self.node.counted else ()))

    def _keep(self, key: Key, windows: dict[Span, OpenWindow]) -> None:
        """Keeps the windows that time has not passed and that have rows, or had some that were emitted."""
        mark = self.times.watermark
        left = {
            span: window
            for span, window in windows.items()
            if not is_over(self.window, span, mark) and (window.rows or window.emitted is not None)
        }
        if left:
            self.state.put(key, left)
            self.ends.set(key, EVENT, wake_of(self.window, left, mark))
        else:
            self.state.delete(key)
            self.ends.clear(key)


def window_changes_kernel(node: WindowChanges, schema: Schema) -> ChangesKernel:
    """The kernel of windows over a table: with their rows, or with the parts of their aggregates alone."""
    return WindowChangesKernel(node, schema) if node.keeps_rows else WindowTotalsKernel(node, schema)
