"""The kernel of an interval join.

New left rows meet the kept and the new right ones, kept left rows the new right ones; so each pair is found once, in the
batch that brings its second record. No row is marked as matched: whether it is gone without a match is asked of the other
side's rows when the watermark says that no more matches can come, and these are kept for as long as that takes.

With a watermark W, records still to come have times from W on. A left row matches rights from `low` to `high` after it. So

- left rows are needed for matches from W - high on, and right rows from W + low on;
- a left row is judged when W passes its time + high, a right row when W passes its time - low;
- left rows that are not judged yet (from W - high on) need right rows from W - high + low on, and the other way round.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.graph import Graph
from penstock.graph.nodes import IntervalJoin
from penstock.graph.nodes.join import LEFT, RIGHT
from penstock.graph.times import FOREVER, Times
from penstock.kernels.base import Out
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.joins.output import moments
from penstock.kernels.joins.rows import Rows, matched, pairs, together
from penstock.kernels.joins.sides import moved
from penstock.kernels.joins.streams import StreamJoinKernel
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import evaluated


class IntervalJoinKernel(StreamJoinKernel):
    """Pairs of records whose times are within an interval of each other."""

    node: IntervalJoin

    def __init__(self, node: IntervalJoin, graph: Graph) -> None:
        super().__init__(node, graph)
        self.condition = None if node.condition is None else compile_expr(node.condition, node.output().schema)

    def advance(self, times: Times) -> Out:
        """The pairs that the new records complete, and the rows that the movement of time leaves without a match."""
        self.move(times)
        fresh = [side.fresh(self.times.previous) for side in self.sides]
        yield from self.too_late(fresh)
        new = [each.rows for each in fresh]
        hits = [np.zeros(0 if rows is None else len(rows), bool) for rows in new]
        yield from self._matches(new, hits)
        for side in (LEFT, RIGHT):
            if self.node.outer(side):
                yield from self._alone(side, fresh[side].lone)
                yield from self._judged(side, new, hits[side])
        for side, rows in enumerate(new):
            self.sides[side].keep(rows, self._horizon(side))
        self._wake()
        self.since = times.watermark

    def _reach(self, side: int) -> tuple[int, int]:
        """How far after a row of a side its matches on the other side may be."""
        low, high = self.node.low, self.node.high
        return (low, high) if side == LEFT else (-high, -low)

    def _horizon(self, side: int) -> int:
        """Before which time rows of a side are not needed any more."""
        low, high = self._reach(1 - side)
        return moved(self.times.watermark, low - (max(high, 0) if self.node.outer(1 - side) else 0))

    def _matches(self, new: list[Rows | None], hits: list[Any]) -> Iterator[tuple[str, Chunk]]:
        low, high = self.node.low, self.node.high
        left, right = new
        kept = self.sides[RIGHT].candidates(left, low, high)
        every = together(kept, right)
        if left is not None and every is not None:
            before = 0 if kept is None else len(kept)
            for at, other in self._meeting(LEFT, left, every):
                hits[LEFT][at] = True
                hits[RIGHT][other[other >= before] - before] = True
                yield "out", self._both(left, at, every, other)
        older = self.sides[LEFT].candidates(right, -high, -low)
        if older is not None and right is not None:
            for at, other in self._meeting(LEFT, older, right):
                hits[RIGHT][other] = True
                yield "out", self._both(older, at, right, other)

    def _meeting(self, side: int, mine: Rows, others: Rows) -> Iterator[tuple[IntArray, IntArray]]:
        """The rows of a side and of the other that match and meet the condition, by number, some at a time."""
        for at, other in pairs(mine, others, *self._reach(side)):
            if self.condition is None:
                yield at, other
                continue
            both = self._both(mine, at, others, other) if side == LEFT else self._both(others, other, mine, at)
            found = evaluated(self.node, self.condition, list(both.values()))
            flags = np.array([each is True for each in found], bool)
            yield at[flags], other[flags]

    def _has_match(self, side: int, rows: Rows, others: Rows | None) -> BoolArray:
        """Which rows of a side have a match."""
        if self.condition is None or others is None:
            return matched(rows, others, *self._reach(side))
        flags = np.zeros(len(rows), bool)
        for at, _ in self._meeting(side, rows, others):
            flags[at] = True
        return flags

    def _both(self, left: Rows, at: IntArray, right: Rows, other: IntArray) -> Chunk:
        later = {self.node.into: moments(np.maximum(left.times[at], right.times[other]))} if self.node.into else {}
        return self.joined.both(left, at, right, other, later)

    def _alone(self, side: int, rows: Rows | None) -> Iterator[tuple[str, Chunk]]:
        if rows is not None:
            own = {self.node.into: moments(rows.times)} if self.node.into else {}
            yield "out", self.joined.alone(rows, side, own)

    def _judged(self, side: int, new: list[Rows | None], hits: BoolArray) -> Iterator[tuple[str, Chunk]]:
        """The rows of a side for which no match can come any more, and none has."""
        low, high = self._reach(side)
        mine, end = new[side], moved(self.times.watermark, -high)
        if mine is not None:
            yield from self._alone(side, mine.where((mine.times < end) & ~hits))
        old = self.sides[side].span(moved(self.since, -high), end)
        if old is not None:
            others = together(self.sides[1 - side].candidates(old, low, high), new[1 - side])
            yield from self._alone(side, old.where(~self._has_match(side, old, others)))

    def _wake(self) -> None:
        """Sets the timer of the rows that wait for their judgement."""
        self.wake_at(min((self._judgement(side) for side in (LEFT, RIGHT) if self.node.outer(side)), default=FOREVER))

    def _judgement(self, side: int) -> int:
        """When the next row of a side is judged."""
        high = self._reach(side)[1]
        return moved(self.sides[side].first(moved(self.times.watermark, -high)), high + 1)
