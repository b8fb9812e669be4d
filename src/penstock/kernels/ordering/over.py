"""Kernels of rows over their neighbours: in the order of event time or of arrival, and of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import astuple
from typing import Any

import pyarrow as pa

from penstock.graph.nodes.relational.over import ROWS, Over, OverTable
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.table import times_of
from penstock.graph.state.timers import EVENT, STEP, Timers
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.base import Context, Out, RecordFailed
from penstock.kernels.changes.base import Signed
from penstock.kernels.changes.rows import Bag
from penstock.kernels.changes.top import KeptRowsKernel
from penstock.kernels.keyed.keyed import Key, hashes_of, prefetch
from penstock.kernels.ordering.frames import Frames, Partition, Passed, Row, measure
from penstock.kernels.ordering.order import in_order, order_of, sorted_by
from penstock.kernels.ordering.sort import BufferKernel, keys_in
from penstock.kernels.records.arrow import arrow_type, to_columns
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import shaped

ALL: Key = (0,)
"""The key of a step without one."""


class OverKernel(BufferKernel):
    """Rows in time. Of a key it keeps the rows that later ones see, and what is known of all before them."""

    node: Over  # type: ignore[assignment]  # it is no step that emits what it buffers

    def __init__(self, node: Over, schema: Schema) -> None:
        super().__init__(node, schema)  # type: ignore[arg-type]  # it has the settings of one
        calls = node.functions(schema)
        self.frames = Frames(calls, node.frame, schema)
        self.ahead = node.ahead(schema)
        rows = (node.frame.before or 0) if node.frame.unit == ROWS else 0
        self.back = max(rows, *(c.offset for c in calls if c.function == "lag"), 0)
        self.order = (*self.order, *node.by)
        keys = tuple(Column(k, arrow_type(schema.field(k).type)) for k in node.keys)
        self.key_columns = keys or (Column("all", pa.int64()),)
        self.terms = [(schema.names.index(term.column)) for term in node.by]

    def open(self, context: Context) -> None:
        """Finds the rows that event time has not passed, and what is kept of each key."""
        self.state = context.state(self.node.name)
        self.state.describe(Layout(self.key_columns, (Column("rows"),), single=True, timers=True))
        self.timers = context.timers(self.node.name)
        self.timers.hash_with(self._hashes)
        if not self.node.arrival:
            self.waiting = context.table(self.node.waiting)
            self.table_timers: Timers = context.timers(self.node.waiting)

    def _hashes(self, keys: list[Key]) -> list[int]:
        return hashes_of(keys, self.key_columns) if self.node.keys else [0] * len(keys)

    def wake_at(self, time: int) -> None:
        """Sets when event time passes the next row that waits."""
        self.table_timers.set(STEP, EVENT, time)

    def wake(self, clock: str) -> int:
        """The earliest time at which a row is passed, or rows of a key are needed no more."""
        table = FOREVER if self.node.arrival else self.table_timers.next(clock)
        return min(super().wake(clock), table)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Keeps what is not late; in the order of arrival nothing is."""
        if not self.node.arrival:
            yield from super().take(chunk, source)
            return
        self.fresh.append(chunk.batch())

    def advance(self, times: Times) -> Out:
        """The rows whose frame is complete."""
        self.move(times)
        if self.node.arrival:
            yield from self._answered(self._arrived())
            return
        edge = self.edge(times.watermark)
        due = self.due(edge)
        if edge > NEVER:
            self.waiting.forget(edge)
        woken = [timer.key for timer in self.key_timers.due(EVENT, times.watermark)]
        yield from self._answered(self._passed(due), woken)

    @property
    def key_timers(self) -> Timers:
        """The timers of keys."""
        assert self.timers is not None
        return self.timers

    def _arrived(self) -> dict[Key, list[tuple[int, Row]]]:
        rows = pa.Table.from_batches(self.fresh) if self.fresh else None
        self.fresh = []
        return {} if rows is None else self._by_key(rows, [self.times.now] * rows.num_rows)

    def _passed(self, due: pa.Table | None) -> dict[Key, list[tuple[int, Row]]]:
        if due is None:
            return {}
        rows = sorted_by(due, self.order, self.schema.names)
        return self._by_key(rows, times_of(rows).tolist())

    def _by_key(self, rows: pa.Table, times: list[int]) -> dict[Key, list[tuple[int, Row]]]:
        keys = keys_in(rows, self.node.keys) if self.node.keys else [ALL] * rows.num_rows
        found: dict[Key, list[tuple[int, Row]]] = {}
        values = zip(*to_columns(rows.select(self.schema.names)), strict=True)
        for key, time, row in zip(keys, times, values, strict=True):
            found.setdefault(key, []).append((time, row))
        return found

    def _answered(
        self, new: dict[Key, list[tuple[int, Row]]], woken: Iterable[Key] = ()
    ) -> Iterator[tuple[str, Chunk]]:
        keys = [*new, *(key for key in woken if key not in new)]
        if self.times.watermark == FOREVER and self.ahead:
            keys += [key for key, _ in self.state.items() if key not in new]
        prefetch(self.state, keys, self._hashes(keys) if keys else [], self.key_columns)
        made: list[Row] = []
        for key in dict.fromkeys(keys):
            made += self._of_key(key, new.get(key, []))
        if made:
            yield "out", shaped(self, "out", made)

    def _of_key(self, key: Key, new: list[tuple[int, Row]]) -> list[Row]:
        """The rows of a key whose frame is complete, with their results."""
        kept, begin, passed = self.state.get(key) or ([], 0, ())
        rows = [*kept, *new]
        times = [time for time, _ in rows]
        orders = [(time, *(row[at] for at in self.terms)) for time, row in rows]
        given = Partition([row for _, row in rows], orders, times, begin, Passed(*passed))
        until = self._complete(times)
        try:
            results = self.frames.answers(given, until)
        except Exception as error:
            raise RecordFailed(self.node, rows[begin][1] if begin < len(rows) else None, None, error) from error
        made = [(*row, *found) for (_, row), found in zip(rows[begin:until], results, strict=True)]
        self._keep(key, rows, given)
        return made

    def _complete(self, times: list[int]) -> int:
        """Up to before which row frames are complete."""
        if self.node.arrival and not self.ahead:
            return len(times)
        if self.times.watermark == FOREVER:
            return len(times)
        ready = max(0, len(times) - self.ahead)
        if self.node.hold:
            while ready and times[ready - 1] + self.node.hold >= self.times.watermark:
                ready -= 1
        return ready

    def _keep(self, key: Key, rows: list[tuple[int, Row]], given: Partition) -> None:
        """Keeps the rows that are not answered and those that later ones see, and says when they are needed no more."""
        first, until = self._first_kept(rows, given.begin), FOREVER
        kept = rows[first:]
        span = self.node.frame.before if self.node.frame.unit != ROWS else None
        if kept and span and not self.node.arrival:
            until = rows[given.begin][0] + self.node.hold + 1 if given.begin < len(rows) else kept[0][0] + span + 1
        if kept or self._counts:
            self.state.put(key, (kept, given.begin - first, astuple(given.passed)))
        elif self.state.get(key) is not None:
            self.state.delete(key)
        if until < FOREVER:
            self.key_timers.set(key, EVENT, until)
        elif given.begin < len(rows) and self.node.hold:
            self.key_timers.set(key, EVENT, rows[given.begin][0] + self.node.hold + 1)

    @property
    def _counts(self) -> bool:
        """Whether something must be known of all rows that were there."""
        ranked = any(c.function in ("row_number", "rank", "dense_rank") for c in self.frames.calls)
        return ranked or self.node.frame.before is None

    def _first_kept(self, rows: list[tuple[int, Row]], begin: int) -> int:
        """The first row that one after it sees."""
        first = max(0, begin - self.back)
        span = self.node.frame.before if self.node.frame.unit != ROWS else None
        if not span:
            return first
        horizon = rows[begin][0] if begin < len(rows) else self._horizon()
        at = 0
        while at < first and rows[at][0] < horizon - span:
            at += 1
        while at < begin and at >= first and rows[at][0] < horizon - span and not self.back:
            at += 1
        return at

    def _horizon(self) -> int:
        """The earliest time that a later row can have."""
        return self.times.now if self.node.arrival else self.times.watermark


class OverTableKernel(KeptRowsKernel):
    """Rows of a table: those whose answer is another one now are taken back and added."""

    node: OverTable

    def __init__(self, node: OverTable, schema: Schema) -> None:
        super().__init__(node, schema)
        self.frames = Frames(node.functions(schema), node.frame, self.visible)
        self.terms = [(self.visible.names.index(term.column), term.descending) for term in node.by]

    def answer(self, rows: Bag) -> Iterable[Signed]:
        """Every row with its results."""
        every = in_order((row for row, count in rows for _ in range(count)), self.node.by, self.visible.names)
        orders = [tuple(order_of(row[at]) for at, _ in self.terms) for row in every]
        try:
            found = self.frames.answers(Partition(every, orders, self._distances(every)), len(every))
        except Exception as error:
            raise RecordFailed(self.node, every[0] if every else None, None, error) from error
        return [((*row, *results), 1) for row, results in zip(every, found, strict=True)]

    def _distances(self, rows: list[Row]) -> list[Any]:
        """What a range is measured by, growing with the order; only a range of a distance needs it, and its order has one."""
        if not self.node.frame.has_distance:
            return []
        at, descending = self.terms[0]
        values = [measure(row[at]) for row in rows]
        return [None if v is None else -v for v in values] if descending else values
