"""The kernel of aggregates over a table that changes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph import types as t
from penstock.graph.expr import columns_of
from penstock.graph.nodes.base import COUNT
from penstock.graph.nodes.changes import AggregateChanges, visible
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.table import KEY_HASH
from penstock.graph.times import FOREVER, Times
from penstock.kernels.base import Out, RecordFailed
from penstock.kernels.changes.accumulators import Accumulator, accumulator_of
from penstock.kernels.changes.base import ChangesKernel, Signed, negative
from penstock.kernels.changes.rows import NegativeCount, Row, consolidated
from penstock.kernels.keyed.keyed import TOTAL, Key, key_getter, prefetch
from penstock.kernels.ordering.ranking import same
from penstock.kernels.records.arrow import to_columns
from penstock.kernels.records.chunk import Chunk, shape_of

MANY = 64
"""From so many rows on they are added up in columns first."""


class AggregateChangesKernel(ChangesKernel):
    """Of a group it keeps the number of rows and the parts of its aggregates; the answer that changed is taken back."""

    node: AggregateChanges
    of: AggregateChanges

    def __init__(self, node: AggregateChanges, schema: Schema) -> None:
        super().__init__(node, schema)
        self.needed = _needed(node, self.visible)
        self.reduced = Schema((*self.visible.only(self.needed).fields, t.Field(COUNT, t.BIGINT)), internal=True)
        self.visible = visible(self.reduced)
        self.key_of = key_getter(self.needed, node.keys)
        self.accumulators: list[tuple[Accumulator, int]] = []
        at = 1
        for aggregate in node.aggregates:
            made = accumulator_of(aggregate, self.visible)
            self.accumulators.append((made, at))
            at += made.width
        self.make = shape_of(self.visible).make
        self.before: dict[Key, Row | None] = {}
        self.ended = False

    def layout(self) -> Layout:
        """The number of rows, then the parts."""
        named = zip(self.of.aggregates, self.accumulators, strict=True)
        parts = [column for aggregate, (made, _) in named for column in made.columns(aggregate.name)]
        return Layout(self.key_columns, (Column("rows", pa.int64()), *parts))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Adds what comes and takes back what goes."""
        rows, hashes = self._reduced(chunk)
        keys = [self.key_of(values) for values, _ in rows]
        prefetch(self.state, keys, hashes, self.key_columns)
        get, groups = self.state.get, dict[Key, list[Any]]()
        try:
            for at, (key, (values, count)) in enumerate(zip(keys, rows, strict=True)):
                row = self._probed(at, values)
                parts = groups.get(key)
                if parts is None:
                    parts = groups[key] = self._touched(key, get(key))
                self._add(parts, values, row, count)
        finally:
            for key, parts in groups.items():
                self.state.put(key, tuple(parts))
        return ()

    def _probed(self, at: int, values: Row) -> object:
        """The row for the aggregates. Where the pass goes on without rows that fail, one that would is found before it changes anything."""
        row = self.make(values)
        if self.guarded:
            try:
                for accumulator, _ in self.accumulators:
                    accumulator.probe(values, row)
            except Exception as error:
                raise RecordFailed(self.node, row, at, error) from error
        return row

    def _reduced(self, chunk: Chunk) -> tuple[list[Signed], list[int] | None]:
        """The fields that are needed, rows that are equal in them added up; with the key hashes that the host has computed."""
        names = [*self.needed, *([COUNT] if COUNT in chunk.shape.schema else [])]
        if len(chunk) < MANY or self.guarded:
            columns = chunk.columns()
            at = [chunk.shape.schema.names.index(n) for n in self.needed]
            counts = columns[chunk.shape.schema.names.index(COUNT)] if COUNT in names else [1] * len(chunk)
            return list(zip(zip(*(columns[i] for i in at), strict=True), counts, strict=True)), chunk.key_hashes
        batch = pa.Table.from_batches([chunk.batch().select(names)])
        if COUNT not in names:
            batch = batch.append_column(COUNT, pa.array(np.ones(len(chunk), np.int64)))
        if chunk.key_hashes is not None:
            batch = batch.append_column(KEY_HASH, pa.array(chunk.key_hashes, pa.int64()))
        made = consolidated(batch)
        columns = to_columns(made.select([*self.needed, COUNT]))
        hashes = made.column(KEY_HASH).to_pylist() if chunk.key_hashes is not None else None
        return list(zip(zip(*columns[:-1], strict=True), columns[-1], strict=True)), hashes

    def _touched(self, key: Key, kept: tuple[Any, ...] | None) -> list[Any]:
        """The parts of a group that is about to change; what it answered before is noted."""
        if key not in self.before:
            self.before[key] = None if kept is None else self._row(key, kept)
        return list(kept) if kept is not None else [0, *(p for a, _ in self.accumulators for p in a.empty())]

    def _add(self, parts: list[Any], values: Row, row: object, count: int) -> None:
        parts[0] += count
        try:
            for accumulator, at in self.accumulators:
                accumulator.add(parts, at, values, row, count)
        except Exception as error:
            raise RecordFailed(self.node, row, None, error) from error

    def advance(self, times: Times) -> Out:
        """The answers that changed: the old ones are taken back, the new ones added."""
        self.move(times)
        made = self._of_nothing(times)
        for key, before in self.before.items():
            after = self._after(key)
            if same(before, after):
                continue
            made += [(before, -1)] if before is not None else []
            made += [(after, 1)] if after is not None else []
        self.before = {}
        yield from self.emit(made)

    def _of_nothing(self, times: Times) -> list[Signed]:
        """The total over no rows, where that is a row, once the input is over."""
        due = self.of.always and times.watermark == FOREVER and self.is_alone
        if not due or self.ended or self.before or self.state.get(TOTAL) is not None:
            return []
        self.ended = True
        return [(self._row(TOTAL, [0, *(part for made, _ in self.accumulators for part in made.empty())]), 1)]

    def _after(self, key: Key) -> Row | None:
        """What a group answers now; None when no rows are left, and the group is forgotten."""
        parts = self.state.get(key)
        try:
            if parts[0] < 0:
                raise NegativeCount(f"{-parts[0]} more rows were taken back than were there")
            if parts[0] or not self.node.keys:
                return self._row(key, parts)
        except NegativeCount as error:
            raise negative(self, key, error) from error
        self.state.delete(key)
        return None

    def _row(self, key: Key, parts: Any) -> Row:
        return (*key, *(made.result(parts, at, parts[0]) for made, at in self.accumulators))


def _needed(node: AggregateChanges, schema: Schema) -> tuple[str, ...]:
    """The fields that the keys and the aggregates read; all of them where one is the user's own."""
    if any(a.own is not None for a in node.aggregates):
        return schema.names
    read = {name for a in node.aggregates for argument in a.arguments for name in columns_of(argument)}
    return tuple(n for n in schema.names if n in read or n in node.keys)
