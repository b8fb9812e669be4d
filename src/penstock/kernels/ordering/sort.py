"""Kernels of the steps that hold records until event time has passed them: sorting, and deduplication in time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.nodes import LATE, BufferedStep, Distinct, DistinctInTime, Sort, Term, TimeField
from penstock.graph.schema import Schema
from penstock.graph.state.table import KEY_HASH, TIME, TimeTable, column, key_hashes_of, some, times_of
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.base import Context, Kernel, Out
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.ordering.order import sorted_by
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk

Key = tuple[Any, ...]


def moved(time: int, by: int) -> int:
    """A time moved by a span; the ends of time stay where they are."""
    return time if time in (NEVER, FOREVER) else time + by


def keys_in(rows: pa.Table | pa.RecordBatch, keys: tuple[str, ...]) -> list[Key]:
    """The key of each row, as a tuple."""
    columns = [_listed(rows.column(k)) for k in keys]
    return list(zip(*columns, strict=True)) if keys else [()] * int(rows.num_rows)


def _listed(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """A column as a list; whole numbers take the quick way."""
    if pa.types.is_integer(column.type) and not column.null_count:
        return (
            list(column.to_numpy(zero_copy_only=False).tolist())
            if isinstance(column, pa.Array)
            else _listed(column.combine_chunks())
        )
    return list(column.to_pylist())


def with_key_hashes(chunk: Chunk, keys: tuple[str, ...], timed_by: TimeField | None) -> pa.RecordBatch:
    """The records of a chunk as an Arrow batch, with the hash of their key and their event time."""
    batch = chunk.batch()
    made = batch.append_column(KEY_HASH, pa.array(_key_hashes(chunk, keys), pa.int64()))
    if timed_by is None:
        return made.append_column(TIME, pa.array(np.zeros(batch.num_rows, np.int64)))
    times = pc.add(batch.column(timed_by.column).cast(pa.int64()), timed_by.shift)
    return made.append_column(TIME, pc.fill_null(times, NEVER))


def _key_hashes(chunk: Chunk, keys: tuple[str, ...]) -> pa.Array:
    if chunk.key_hashes is not None:
        return chunk.key_hashes
    return key_hashes([chunk.batch().column(k) for k in keys], len(chunk))


def given(rows: pa.Table | pa.RecordBatch, schema: Schema) -> Chunk:
    """A chunk of rows that were held, without their key hash and time."""
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
    made = table.select(schema.names).cast(arrow_schema(schema)).combine_chunks().to_batches()
    return Chunk(schema, batch=made[0] if len(made) == 1 else _one(made, schema))


def _one(batches: list[Any], schema: Schema) -> pa.RecordBatch:
    return pa.concat_batches(batches) if batches else pa.RecordBatch.from_pylist([], schema=arrow_schema(schema))


class DistinctKernel(Kernel):
    """The first of each key to come. What it keeps are the keys, at the time of their kept record."""

    node: Distinct

    def __init__(self, node: Distinct, schema: Schema) -> None:
        super().__init__(node)
        self.schema = schema
        self.cache: dict[Key, list[int]] = {}

    def open(self, context: Context) -> None:
        """Finds what was seen before."""
        self.seen: TimeTable = context.table(self.node.name)

    def begin(self, times: Times) -> None:
        """Forgets keys whose time to live is over before records come for them."""
        super().begin(times)
        if self.node.ttl is not None:
            self.seen.forget(times.now - self.node.ttl)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records that are the first of their key."""
        rows = with_key_hashes(chunk, self.node.keys, self.node.timed_by)
        if self.node.ttl is not None:
            now = pa.array(np.full(rows.num_rows, self.times.now), pa.int64())
            rows = rows.set_column(rows.schema.get_field_index(TIME), TIME, now)
        if self.node.within is not None:
            on_time = times_of(rows) >= max(self.times.previous, NEVER + 1)
            if not on_time.all():
                yield LATE, given(some(rows, ~on_time), self.schema)
            rows = some(rows, on_time)
        if rows is not None and rows.num_rows:
            yield "out", self._first(rows)

    def _first(self, rows: pa.Table | pa.RecordBatch) -> Chunk:
        keys = keys_in(rows, self.node.keys)
        self._look_up(keys, rows)
        flags = self._ever(keys) if self.node.within is None else self._within(keys, times_of(rows).tolist())
        kept = rows.filter(pa.array(flags))
        self.seen.add(kept.select([*self.node.keys, KEY_HASH, TIME]))
        return given(kept, self.schema)

    def _look_up(self, keys: list[Key], rows: pa.Table | pa.RecordBatch) -> None:
        hashes = dict(zip(keys, key_hashes_of(rows).tolist(), strict=True))
        wanted = [hashes[k] for k in hashes.keys() - self.cache.keys()]
        found = self.seen.at(np.array(wanted, np.int64)) if wanted else None
        if found is not None:
            for key, time in zip(keys_in(found, self.node.keys), times_of(found).tolist(), strict=True):
                self.cache.setdefault(key, []).append(time)

    def _ever(self, keys: list[Key]) -> list[bool]:
        """Which keys have never been seen."""
        cache, flags = self.cache, [False] * len(keys)
        for at, key in enumerate(keys):
            if key not in cache:
                cache[key] = []
                flags[at] = True
        return flags

    def _within(self, keys: list[Key], times: list[int]) -> list[bool]:
        """Which records are far enough from all that were kept."""
        return [self._far(self.cache.setdefault(k, []), t) for k, t in zip(keys, times, strict=True)]

    def _far(self, kept: list[int], time: int) -> bool:
        within = self.node.within or 0
        if any(abs(time - k) < within for k in kept):
            return False
        kept.append(time)
        return True

    def advance(self, times: Times) -> Out:
        """Keys of which no record can be a double any more are forgotten."""
        self.move(times)
        if self.node.within is not None:
            self.seen.forget(moved(times.watermark, 1 - self.node.within))
        return ()

    def barrier(self) -> Out:
        """All that was looked up is in the table."""
        self.cache = {}
        return ()


class BufferKernel(Kernel):
    """The base: keeps records until event time has passed them, and emits them in order then."""

    node: BufferedStep
    order: tuple[Term, ...] = (Term(TIME),)

    def __init__(self, node: BufferedStep, schema: Schema) -> None:
        super().__init__(node)
        self.schema = schema
        self.fresh: list[Any] = []

    def open(self, context: Context) -> None:
        """Finds the records that wait."""
        self.waiting: TimeTable = context.table(self.node.name)
        self.timers = context.timers(self.node.name)

    def edge(self, time: int) -> int:
        """Up to which time records are given when event time has come to `time`."""
        return time

    def reached(self, time: int) -> int:
        """The event time at which a record of some time is given."""
        return time + 1

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Keeps what is not late."""
        rows = with_key_hashes(chunk, self.node.keys, self.node.timed_by)
        on_time = times_of(rows) >= max(self.edge(self.times.previous), NEVER + 1)
        if not on_time.all():
            yield LATE, given(some(rows, ~on_time), self.schema)
        rows = some(rows, on_time)
        if rows is not None:
            self.fresh.append(rows)

    def advance(self, times: Times) -> Out:
        """What event time has passed, in order; the rest waits on."""
        self.move(times)
        edge = self.edge(times.watermark)
        due = self.due(edge)
        if edge > NEVER:
            self.waiting.forget(edge)
        if due is not None:
            yield "out", given(self.chosen(sorted_by(due, self.order, self.schema.names)), self.schema)

    def due(self, edge: int) -> pa.Table | None:
        """Takes the rows before `edge`, and keeps the new ones that are not."""
        old = self.waiting.span(NEVER, edge)
        new, rest = self._parted(edge)
        for batch in rest.to_batches() if rest is not None else ():
            self.waiting.add(batch)
        first = self.waiting.first(edge)
        self.wake_at(self.reached(first) if first < FOREVER else FOREVER)
        due = [rows for rows in (old, new) if rows is not None]
        return pa.concat_tables(due, promote_options="default").combine_chunks() if due else None

    def _parted(self, edge: int) -> tuple[Any, Any]:
        """Of the new records those that are due, and the others."""
        if not self.fresh:
            return None, None
        rows, self.fresh = pa.Table.from_batches(self.fresh), []
        passed = times_of(rows) < edge
        return some(rows, passed), some(rows, ~passed)

    def chosen(self, rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
        """Of the records in order those that are given."""
        return rows


class SortKernel(BufferKernel):
    """All records, in order."""

    node: Sort

    def __init__(self, node: Sort, schema: Schema) -> None:
        super().__init__(node, schema)
        self.order = (Term(TIME), *node.by)

    def edge(self, time: int) -> int:
        """The begin of the span that is open."""
        return time if not self.node.span or time in (NEVER, FOREVER) else time - time % self.node.span

    def reached(self, time: int) -> int:
        """The end of the span of a record."""
        return self.edge(time) + self.node.span if self.node.span else time + 1

    def chosen(self, rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
        """All; within spans the order is that of the terms alone."""
        if not self.node.span:
            return rows
        times = times_of(rows)
        spans = rows.append_column("__span", pa.array(times - times % self.node.span))
        return sorted_by(spans, (Term("__span"), *self.node.by, Term(TIME)), self.schema.names)


class DistinctInTimeKernel(BufferKernel):
    """The earliest of each key."""

    node: DistinctInTime

    def open(self, context: Context) -> None:
        """Finds the records that wait, and what was kept before."""
        super().open(context)
        self.kept: TimeTable = context.table(self.node.kept)

    def chosen(self, rows: pa.Table | pa.RecordBatch) -> pa.Table | pa.RecordBatch:
        """The first of each key, and those far enough after the last kept one."""
        keys, times = keys_in(rows, self.node.keys), times_of(rows).tolist()
        last = self._last(rows)
        flags = [self._new(last, k, t) for k, t in zip(keys, times, strict=True)]
        made = rows.filter(pa.array(flags))
        for batch in made.select([*self.node.keys, KEY_HASH, TIME]).to_batches():
            self.kept.add(batch)
        return made

    def _last(self, rows: pa.Table | pa.RecordBatch) -> dict[Key, int]:
        """When the last kept record of each of these keys was."""
        found = self.kept.at(np.unique(key_hashes_of(rows)))
        if found is None:
            return {}
        times = column(found, TIME)
        order = np.argsort(times, kind="stable")
        return dict(zip(keys_in(found.take(pa.array(order)), self.node.keys), times[order].tolist(), strict=True))

    def _new(self, last: dict[Key, int], key: Key, time: int) -> bool:
        before = last.get(key)
        if before is not None and (self.node.within is None or time - before < self.node.within):
            return False
        last[key] = time
        return True

    def advance(self, times: Times) -> Iterator[tuple[str, Chunk]]:
        """As ever, and what was kept is forgotten when no record can be a double of it any more."""
        yield from super().advance(times)
        if self.node.within is not None:
            self.kept.forget(moved(times.watermark, 1 - self.node.within))
