"""The kernel of top-n: the best records of each key."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.nodes import Term, Top
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.table import key_hashes_of
from penstock.graph.times import Times
from penstock.kernels.base import Out
from penstock.kernels.keyed.keyed import Key, KeyedKernel
from penstock.kernels.ordering.order import in_order, sorted_by
from penstock.kernels.ordering.sort import keys_in, with_key_hashes
from penstock.kernels.records.arrow import to_columns
from penstock.kernels.records.chunk import Chunk

Values = tuple[Any, ...]


def same(one: object, other: object) -> bool:
    """Whether rows are equal; not-a-number is equal to itself here.

    >>> same((1, float("nan")), (1, float("nan"))), same((1,), None)
    (True, False)
    """
    return bool(one == other) or repr(one) == repr(other)


class TopKernel(KeyedKernel):
    """The first records of each key; what changed of their ranks is emitted when the host advances.

    Records wait as Arrow batches. When many have come, and then, all but the best of each key are dropped; only those
    are looked at one by one.
    """

    node: Top
    most = 1 << 18
    """How many records may wait before the best are picked."""

    def __init__(self, node: Top, schema: Schema) -> None:
        super().__init__(node, schema)
        self.names = schema.names
        self.fresh: list[Any] = []
        self.waiting = 0

    def layout(self) -> Layout:
        """The best records of a key, as one object."""
        return Layout(self.key_columns, (Column("rows"),), single=True)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Keeps the records until the host advances."""
        self.fresh.append(with_key_hashes(chunk, self.node.keys, None))
        self.waiting += len(chunk)
        if self.waiting > self.most:
            self.fresh = self._picked().to_batches()
            self.waiting = sum(b.num_rows for b in self.fresh)
            self.most = max(self.most, 2 * self.waiting)
        return ()

    def _picked(self) -> pa.Table:
        """The best of each key among the records that wait."""
        keys = tuple(map(Term, self.node.keys))
        rows = sorted_by(pa.Table.from_batches(self.fresh).combine_chunks(), (*keys, *self.node.by), self.names)
        return rows.filter(pa.array(numbers_within(rows, self.node.keys) < self.node.n)).combine_chunks()

    def advance(self, times: Times) -> Out:
        """The rows of the ranks that changed."""
        self.move(times)
        if not self.fresh:
            self.forget_idle(())
            return
        rows = self._picked()
        self.fresh, self.waiting = [], 0
        keys = keys_in(rows, self.node.keys)
        self.state.prefetch(keys, key_hashes_of(rows).tolist())
        best: dict[Key, list[Values]] = {}
        for key, values in zip(keys, zip(*to_columns(rows.select(self.names)), strict=True), strict=True):
            best.setdefault(key, []).append(values)
        self.forget_idle(best)
        made = [row for key, records in best.items() for row in self._changes(key, records)]
        if made:
            yield "out", Chunk.of(self.node.output().schema, made)

    def _changes(self, key: Key, records: list[Values]) -> list[Values]:
        before = self.state.get(key) or []
        after = in_order([*before, *records], self.node.by, self.names)[: self.node.n] if before else records
        if same(after, before):
            return []
        self.state.put(key, after)
        return _changed(before, after)


def numbers_within(rows: pa.Table, keys: tuple[str, ...]) -> IntArray:
    """The number of each row among those of its key, from 0, in a table that is sorted by key."""
    fresh = np.ones(rows.num_rows, bool)
    if rows.num_rows:
        fresh[1:] = False
        for key in keys:
            fresh[1:] |= _differ(rows.column(key).slice(1), rows.column(key).slice(0, rows.num_rows - 1))
    at = np.arange(rows.num_rows)
    return at - np.maximum.accumulate(np.where(fresh, at, 0))


def _differ(one: pa.ChunkedArray, other: pa.ChunkedArray) -> BoolArray:
    """Where two columns differ; null is equal to null."""
    unequal = pc.fill_null(pc.not_equal(one, other), False)
    nulls = pc.xor(pc.is_null(one), pc.is_null(other))
    return np.asarray(pc.or_(unequal, nulls))


def _changed(before: list[Values], after: list[Values]) -> list[Values]:
    """The records whose rank is new to them, with the rank."""
    old: list[Values | None] = [*before, *([None] * (len(after) - len(before)))]
    return [(*new, at) for at, (was, new) in enumerate(zip(old, after, strict=True), 1) if not same(was, new)]
