"""The kernel of a row pattern: rows wait until event time has passed them, then the search goes on over each key that has new ones.

A key keeps the rows that a match may still need, as rows of its own in the state, and how far its search has come. A match is emitted when no
later row can change it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.patterns.row_pattern import TIMED_OUT, MatchRows
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.timers import EVENT, STEP, Timers
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.base import Context, Out
from penstock.kernels.joins.rows import one_batch
from penstock.kernels.keyed.keyed import hashes_of, prefetch
from penstock.kernels.ordering.sort import BufferKernel, with_key_hashes
from penstock.kernels.patterns.rows.grouped import KeyedRows, grouped
from penstock.kernels.patterns.rows.measures import Measures, Output
from penstock.kernels.patterns.rows.search import Now, Progress, Rows, RowSearch
from penstock.kernels.patterns.rows.values import RowValues
from penstock.kernels.records.arrow import arrow_schema, arrow_type, to_columns
from penstock.kernels.records.chunk import Chunk

Key = tuple[Any, ...]
WAITS_FOR = "more rows"
"""What an open match waits for."""
ALL: Key = (0,)
"""The key of a step without one."""


class MatchRowsKernel(BufferKernel):
    """The matches of a row pattern."""

    node: MatchRows  # type: ignore[assignment]  # it is no step that emits what it buffers

    def __init__(self, node: MatchRows, schema: Schema) -> None:
        super().__init__(node, schema)  # type: ignore[arg-type]  # it has the settings of one
        expressions = node.expressions(schema)
        self.search = RowSearch(node, expressions, schema)
        self.measures = Measures(node, expressions, schema)
        self.shape = arrow_schema(schema)
        keys = tuple(Column(k, arrow_type(schema.field(k).type)) for k in node.keys)
        self.key_columns = keys or (Column("all", pa.int64()),)
        self.has_timed_out = any(o.name == TIMED_OUT for o in node.outputs)

    def open(self, context: Context) -> None:
        """Finds the rows that event time has not passed, and what is kept of each key."""
        self.state = context.state(self.node.name)
        self.state.describe(self._layout())
        self.timers = context.timers(self.node.name)
        self.timers.hash_with(self._hashes)
        self.waiting = context.table(self.node.waiting)
        self.table_timers: Timers = context.timers(self.node.waiting)

    def _layout(self) -> Layout:
        """The rows of a key, and how far its search has come."""
        rows = pa.list_(pa.struct(list(self.shape)))
        numbers = tuple(Column(name, pa.int64()) for name in ("start", "before", "matches", "matched"))
        return Layout(self.key_columns, (Column("rows", rows), *numbers), timers=True)

    def _hashes(self, keys: list[Key]) -> list[int]:
        return hashes_of(keys, self.key_columns) if self.node.keys else [0] * len(keys)

    def begin(self, times: Times) -> None:
        """A batch begins, in which nothing has changed yet."""
        super().begin(times)
        self.run_changes = {}

    def wake_at(self, time: int) -> None:
        """Sets when event time passes the next row that waits."""
        self.table_timers.set(STEP, EVENT, time)

    def wake(self, clock: str) -> int:
        """The earliest time at which a row is passed, or the time of a match is up."""
        return min(super().wake(clock), self.table_timers.next(clock))

    def advance(self, times: Times) -> Out:
        """The matches that are sure now."""
        self.move(times)
        edge = self.edge(times.watermark)
        due = self.due(edge)
        if edge > NEVER:
            self.waiting.forget(edge)
        woken = [timer.key for timer in self._timers.due(EVENT, times.watermark)]
        rows = self._gathered(due, woken)
        if rows is not None:
            yield from self._found(rows, Now(times.watermark))

    @property
    def _timers(self) -> Timers:
        assert self.timers is not None
        return self.timers

    def _gathered(self, due: pa.Table | None, woken: list[Key]) -> KeyedRows | None:
        """The new rows and those that are kept of the same keys, by key and in order."""
        rows = None if due is None else grouped(due, self.node, self.schema)
        keys = {} if rows is None else dict(zip(rows.names(ALL), rows.hashes, strict=True))
        more = [key for key in woken if key not in keys]
        keys |= dict(zip(more, self._hashes(more), strict=True)) if more else {}
        prefetch(self.state, list(keys), list(keys.values()), self.key_columns)
        self.progress = {key: self._progress(key) for key in keys}
        kept = [row for key in keys for row in (self.state.get(key) or ((),))[0] or ()]
        if not kept:
            return rows
        tables = [self._kept(kept), *(() if due is None else [pa.Table.from_batches([one_batch(due)])])]
        return grouped(pa.concat_tables(tables, promote_options="default"), self.node, self.schema)

    def _progress(self, key: Key) -> Progress:
        kept = self.state.get(key)
        return Progress() if kept is None else Progress(*kept[1:])

    def _kept(self, rows: list[Any]) -> pa.Table:
        """Rows from the state, with their key hash and time."""
        array = pa.array(rows, pa.struct(list(self.shape)))
        batch = pa.RecordBatch.from_struct_array(array)
        chunk = Chunk(self.schema, batch=batch)
        return pa.Table.from_batches([with_key_hashes(chunk, self.node.keys, self.node.timed_by)])

    def _found(self, rows: KeyedRows, now: Now) -> Iterator[tuple[str, Chunk]]:
        values = RowValues(rows.batch)
        masks = self.search.masks.of(rows.batch, rows.first, rows.after)
        seen = Rows(values, masks, rows.times, self._starts(masks))
        found, late = self.measures.output(rows.batch, values), None
        if self.has_timed_out:
            late = self.measures.output(rows.batch, values)
        for key, span in rows.keys(ALL):
            progress = self.progress[key]
            self._take_out(key, rows, span, progress)
            self.search.run(seen, span, progress, now, found, late)
            self._keep(key, rows, span, progress, now)
        yield from self._emitted("out", found, one=self.node.pattern.rows.is_one)
        if late is not None:
            yield from self._emitted(TIMED_OUT, late, one=True)

    def _starts(self, masks: Any) -> list[int] | None:
        bits = self.search.first_bits
        if bits is None or len(self.search.masks.conditions) > 62:
            return None
        found: list[int] = np.flatnonzero(np.array(masks, np.int64) & bits).tolist()
        return found

    def _emitted(self, port: str, output: Output, *, one: bool) -> Iterator[tuple[str, Chunk]]:
        if not len(output):
            return
        schema = self.node.output(port).schema
        fields = output.fields(self.node.keys if one else self.schema.names)
        shape = arrow_schema(schema)
        arrays = [a.cast(f.type) for a, f in zip([*fields, *output.values()], shape, strict=True)]
        yield port, Chunk(schema, batch=pa.RecordBatch.from_arrays(arrays, schema=shape))

    def _keep(self, key: Key, rows: KeyedRows, span: range, progress: Progress, now: Now) -> None:
        """Keeps what a later search needs of a key, and when it has something to do without a new row."""
        if now.has_ended:
            if self.state.get(key) is not None:
                self.state.delete(key)
            return
        if progress.start < len(span):
            self._timers.set(key, EVENT, self._due_at(rows.times[span.start + progress.start], now))
        elif self._timers.of(key):
            self._timers.delete(key, EVENT)
        left, dropped = self.search.left_of(progress)
        kept = self._left(key, rows, span, dropped)
        if kept or left.before or left.matches:
            self.state.put(key, (kept, left.start, left.before, left.matches, left.matched))
            began = rows.times[span.start + progress.start : span.stop][:1]
            self.changes_of(self.node.name).put({WAITS_FOR: len(began)}, began, len(kept))
        elif self.state.get(key) is not None:
            self.state.delete(key)

    def _take_out(self, key: Key, rows: KeyedRows, span: range, progress: Progress) -> None:
        """Counts what was kept of a key before its new rows: its open match, if it had one."""
        kept = self.state.get(key)
        if kept is not None:
            many = len(kept[0] or ())
            began = rows.times[span.start + progress.start : span.start + many][:1]
            self.changes_of(self.node.name).take_out({WAITS_FOR: len(began)}, began, many)

    def _left(self, key: Key, rows: KeyedRows, span: range, dropped: int) -> list[dict[str, Any]]:
        """The rows of a key that are kept on, those that were kept before as they are: event time has passed them, so they come first."""
        before = (self.state.get(key) or ((),))[0] or []
        begin = max(len(before), dropped)
        return [*before[dropped:], *_listed(rows.batch.slice(span.start + begin, len(span) - begin))]

    def _due_at(self, start: int, now: Now) -> int:
        """When the time of a match that starts at some time is up, if that is to come."""
        within = self.node.pattern.within
        return FOREVER if within is None or start + within <= now.watermark else start + within


def _listed(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Rows as dicts, with maps as dicts too."""
    columns = to_columns(batch)
    return [dict(zip(batch.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]
