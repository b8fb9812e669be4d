"""The kernel of an as-of join: each left row with the right row of its key that is nearest in time.

A left row is answered when the watermark has passed the last moment at which a better right row could come. Right rows are kept for
as long as a left row that is not answered yet, or still to come, may need them. Backward without a tolerance that is the
newest row of each key before the watermark, however old: it is kept by key.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import IntArray
from penstock.graph.nodes import AsOfJoin
from penstock.graph.nodes.join import LEFT, RIGHT
from penstock.graph.schema import Schema
from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.layout import Column, Layout, key_columns
from penstock.graph.state.table import KEY_HASH, TIME
from penstock.graph.times import NEVER, Times
from penstock.kernels.base import Context, Out
from penstock.kernels.joins.rows import Rows, equal, found, together
from penstock.kernels.joins.sides import moved
from penstock.kernels.joins.streams import StreamJoinKernel
from penstock.kernels.records.arrow import arrow_schema, to_columns
from penstock.kernels.records.chunk import Chunk

_NONE = -1


class AsOfJoinKernel(StreamJoinKernel):
    """One right row for each left row, or none."""

    node: AsOfJoin

    def open(self, context: Context) -> None:
        """Finds what is kept; without a tolerance also the newest right row of each key."""
        super().open(context)
        self.last = None
        if self.node.tolerance is None:
            self.last = Last(self.node, self.schemas[RIGHT], context.state(self.node.last))

    def advance(self, times: Times) -> Out:
        """The left rows whose answer is sure."""
        self.move(times)
        fresh = [side.fresh(self.times.previous) for side in self.sides]
        yield from self.too_late(fresh)
        left, right = (each.rows for each in fresh)
        lone = fresh[LEFT].lone
        if self.node.outer(LEFT) and lone is not None:
            yield "out", self.joined.alone(lone, LEFT)
        yield from self._answers(left, right)
        self._keep(left, right)
        self.since = times.watermark

    def _answers(self, left: Rows | None, right: Rows | None) -> Iterator[tuple[str, Chunk]]:
        before, after = self.node.reach
        end = moved(self.times.watermark, -after)
        new = None if left is None else left.where(left.times < end)
        sure = together(new, self.sides[LEFT].span(moved(self.since, -after), end))
        if sure is None:
            return
        low = NEVER if before is None else before
        kept = self.sides[RIGHT].candidates(sure, low, after)
        old = None if self.last is None else self.last.candidates(sure)
        others = together(kept, right, old)
        best = self._best(sure, others) if others is not None else np.full(len(sure), _NONE)
        at = np.flatnonzero(best != _NONE)
        if others is not None and len(at):
            yield "out", self.joined.both(sure, at, others, best[at])
        alone = sure.where(best == _NONE)
        if self.node.outer(LEFT) and alone is not None:
            yield "out", self.joined.alone(alone, LEFT)

    def _best(self, left: Rows, right: Rows) -> IntArray:
        """The number of the right row for each left row."""
        before, after = self.node.reach
        low = -_span(left, right) if before is None else before
        if self.node.direction != "nearest":
            return _nearest(left, right, low, after, newest=self.node.direction == "backward")
        one, two = _nearest(left, right, low, 0, newest=True), _nearest(left, right, 0, after, newest=False)
        closer = (left.times - right.times[one]) <= (right.times[two] - left.times)
        return np.where((two == _NONE) | ((one != _NONE) & closer), one, two)

    def _keep(self, left: Rows | None, right: Rows | None) -> None:
        before, after = self.node.reach
        watermark = self.times.watermark
        mine, other = self.sides
        mine.keep(left, moved(watermark, -after))
        if self.last is not None:
            passed = None if right is None else right.where(right.times < watermark)
            self.last.keep(together(passed, other.span(self.since, watermark)))
        other.keep(right, moved(watermark, -after + (before or 0)))
        self.wake_at(moved(mine.first(moved(watermark, -after)), after + 1))


def _span(left: Rows, right: Rows) -> int:
    """A distance that no two rows of these are apart."""
    return int(max(left.times.max(), right.times.max()) - min(left.times.min(), right.times.min()))


def _nearest(left: Rows, right: Rows, low: int, high: int, *, newest: bool) -> IntArray:
    """For each left row the newest (or the oldest) right row in its interval; of several at one moment always the same."""
    order = _settled(right, descending=not newest)
    seen = Rows(right.batch, right.keys, right.hashes[order], right.times[order])
    matches = found(left, seen, low, high)
    best = np.full(len(left), _NONE)
    at = np.flatnonzero(matches.many)
    best[at] = order[matches.order[(matches.stop[at] - 1) if newest else matches.first[at]]]
    wrong = at[~equal(left, at, right, best[at])]
    for row in wrong:
        best[row] = _NONE
        run = order[matches.order[matches.first[row] : matches.stop[row]]]
        same = run[equal(left, np.full(len(run), row), right, run)]
        if len(same):
            best[row] = same[-1 if newest else 0]
    return best


def _settled(rows: Rows, *, descending: bool) -> IntArray:
    """An order of rows in which those of one key hash and moment stand by their values, so that every run picks the same."""
    order = np.lexsort((rows.times, rows.hashes))
    hashes, times = rows.hashes[order], rows.times[order]
    same = (hashes[1:] == hashes[:-1]) & (times[1:] == times[:-1])
    if not same.any():
        return order
    shared = np.flatnonzero(np.concatenate([same, [False]]) | np.concatenate([[False], same]))
    ranks = np.zeros(len(rows), np.int64)
    picked = rows.batch.take(pa.array(order[shared]))
    texts = list(map(repr, zip(*to_columns(picked.drop_columns([KEY_HASH])), strict=True)))
    ranks[order[shared]] = np.unique(np.array(texts), return_inverse=True)[1]
    return np.lexsort((-ranks if descending else ranks, rows.times, rows.hashes))


class Last:
    """The newest right row of each key that event time has passed."""

    def __init__(self, node: AsOfJoin, schema: Schema, state: KeyedState) -> None:
        self.keys, self.state = node.right_keys, state
        self.shape = arrow_schema(schema).append(pa.field(TIME, pa.int64()))
        columns = {f.name: Column(f.name, f.type) for f in self.shape}
        state.describe(Layout(key_columns([columns[k] for k in self.keys]), tuple(columns.values())))

    def candidates(self, rows: Rows) -> Rows | None:
        """The rows of the keys of some left rows."""
        keys = dict(zip(_keys(rows), rows.hashes.tolist(), strict=True))
        self.state.prefetch(list(keys), list(keys.values()))
        there = [(value, key_hash) for key, key_hash in keys.items() if (value := self.state.get(key)) is not None]
        if not there:
            return None
        columns = zip(*(value for value, _ in there), strict=True)
        arrays = [pa.array(c, f.type) for c, f in zip(columns, self.shape, strict=True)]
        arrays.insert(-1, pa.array([key_hash for _, key_hash in there], pa.int64()))
        names = [*self.shape.names[:-1], KEY_HASH, TIME]
        return Rows.of(pa.RecordBatch.from_arrays(arrays, names), self.keys)

    def keep(self, rows: Rows | None) -> None:
        """Takes in rows that event time has passed: the newest of each key is kept."""
        if rows is None:
            return
        order = _settled(rows, descending=False)
        newest = dict(zip(_keys(rows.take(order)), order.tolist(), strict=True))
        at = list(newest.values())
        picked = rows.batch.take(pa.array(at))
        self.state.prefetch(list(newest), rows.hashes[at].tolist())
        values = zip(*to_columns(picked.select(self.shape.names)), strict=True)
        for key, value in zip(newest, values, strict=True):
            kept = self.state.get(key)
            if kept is None or kept[-1] <= value[-1]:
                self.state.put(key, value)


def _keys(rows: Rows) -> list[tuple[Any, ...]]:
    return list(zip(*(to_columns(rows.batch.select(list(rows.keys)))), strict=True))
