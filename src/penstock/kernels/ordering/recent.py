"""The kernel of the rows of the last span of event time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph.nodes import LATE
from penstock.graph.nodes.relational.recent import Recent
from penstock.graph.schema import Schema
from penstock.graph.state.table import TimeTable, some, times_of
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.base import Context, Kernel, Out
from penstock.kernels.ordering.sort import given, moved, with_key_hashes
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk


class RecentKernel(Kernel):
    """Keeps rows by their time: those between the watermark less the span and the watermark are in the table."""

    node: Recent

    def __init__(self, node: Recent, schema: Schema) -> None:
        super().__init__(node)
        self.schema = schema

    def open(self, context: Context) -> None:
        """Finds the rows that are kept."""
        self.rows: TimeTable = context.table(self.node.name)
        self.timers = context.timers(self.node.name)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Keeps what is not late."""
        rows = with_key_hashes(chunk, self.node.keys, self.node.timed_by)
        on_time = times_of(rows) >= max(self.since, NEVER + 1)
        if not on_time.all():
            yield LATE, given(some(rows, ~on_time), self.schema)
        kept = some(rows, on_time)
        if kept is not None:
            self.rows.add(kept)

    def advance(self, times: Times) -> Out:
        """The rows that event time has reached come, those that have become too old go. One that does both does neither."""
        self.move(times)
        before, now = self.since, times.watermark
        if now > before:
            edge = moved(now, -self.node.span)
            yield from self._changed(self.rows.span(max(before, edge), now), 1)
            yield from self._changed(self.rows.span(moved(before, -self.node.span), min(before, edge)), -1)
            self.rows.forget(edge)
            self.since = now
        self.wake_at(self._next())

    def _next(self) -> int:
        """When the next row comes, or goes."""
        coming, there = self.rows.first(max(self.since, NEVER)), self.rows.first(NEVER)
        goes = there + self.node.span + 1 if there < self.since else FOREVER
        return min(coming + 1 if coming < FOREVER else FOREVER, goes)

    def _changed(self, rows: pa.Table | None, sign: int) -> Iterator[tuple[str, Chunk]]:
        if rows is None or not rows.num_rows:
            return
        schema = self.node.output().schema
        signs: Any = pa.array(np.full(rows.num_rows, sign, np.int64))
        columns = [*(rows.column(name) for name in self.schema.names), signs]
        table = pa.Table.from_arrays(columns, schema.names).cast(arrow_schema(schema)).combine_chunks()
        yield "out", Chunk(schema, batch=table.to_batches()[0])
