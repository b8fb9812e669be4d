"""The kernel of a window join: records of both sides that fall into the same window, given when it closes.

Rows are kept as they are read. When event time moves, the windows that end on its way are filled from the rows of their time, and joined as a
whole: so a row of many windows is kept once, and who matches nothing is known at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from penstock.graph.arrays import IntArray
from penstock.graph.nodes import WindowJoin
from penstock.graph.nodes.join import LEFT, RIGHT
from penstock.graph.nodes.window import WINDOW_END, WINDOW_START
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.graph.windows import TimeWindow
from penstock.kernels.base import Out
from penstock.kernels.joins.match import runs
from penstock.kernels.joins.output import moments
from penstock.kernels.joins.rows import Rows, equal, together
from penstock.kernels.joins.sides import whole
from penstock.kernels.joins.streams import StreamJoinKernel
from penstock.kernels.records.chunk import Chunk


@dataclass(frozen=True)
class InWindows:
    """Rows in the windows that close: the number of the row, and the window, for each; some stand in several."""

    rows: Rows
    at: Any
    starts: Any
    ends: Any

    @property
    def keyed(self) -> IntArray:
        """Which of them have a key; the others match nothing."""
        return np.flatnonzero(whole(self.rows.batch, self.rows.keys)[self.at])


class WindowJoinKernel(StreamJoinKernel):
    """Pairs of each window."""

    node: WindowJoin

    def advance(self, times: Times) -> Out:
        """The windows that close."""
        self.move(times)
        fresh = [side.fresh(self._edge(self.times.previous)) for side in self.sides]
        yield from self.too_late(fresh)
        new = [together(each.rows, each.lone if self.node.outer(side) else None) for side, each in enumerate(fresh)]
        if self.times.watermark > self.since:
            yield from self._closed(*(self._closing(side, rows) for side, rows in enumerate(new)))
        for side, rows in enumerate(new):
            self.sides[side].keep(rows, self._edge(self.times.watermark))
        self._wake()
        self.since = times.watermark

    def _edge(self, mark: int) -> int:
        """Where the first window begins that is open when event time stands at a mark; rows before it are done with."""
        return mark if mark in (NEVER, FOREVER) else self.node.window.time(self.node.window.late_before(mark))

    def _closing(self, side: int, new: Rows | None) -> InWindows | None:
        """The rows of a side in the windows that close."""
        rows = together(new, self.sides[side].span(self._edge(self.since), self.times.watermark))
        if rows is None:
            return None
        at, starts, ends = in_windows(self.node.window, rows.times)
        now = (ends > self.since) & (ends <= self.times.watermark)
        return InWindows(rows, at[now], starts[now], ends[now]) if now.any() else None

    def _closed(self, left: InWindows | None, right: InWindows | None) -> Iterator[tuple[str, Chunk]]:
        hits = [np.zeros(0 if each is None else len(each.at), bool) for each in (left, right)]
        if left is not None and right is not None:
            yield from self._pairs(left, right, hits)
        for side, each in enumerate((left, right)):
            if each is not None and self.node.outer(side) and not hits[side].all():
                lone = np.flatnonzero(~hits[side])
                yield "out", self.joined.alone(each.rows.take(each.at[lone]), side, _bounds(each, lone))

    def _pairs(self, left: InWindows, right: InWindows, hits: list[Any]) -> Iterator[tuple[str, Chunk]]:
        mine, theirs = left.keyed, right.keyed
        one_side = left.rows.hashes[left.at[mine]], left.ends[mine]
        other_side = right.rows.hashes[right.at[theirs]], right.ends[theirs]
        for at, other in runs(one_side, other_side, 0, 0).pieces():
            one, two = mine[at], theirs[other]
            same = equal(left.rows, left.at[one], right.rows, right.at[two])
            one, two = one[same], two[same]
            hits[LEFT][one], hits[RIGHT][two] = True, True
            yield "out", self.joined.both(left.rows, left.at[one], right.rows, right.at[two], _bounds(left, one))

    def _wake(self) -> None:
        """Sets the timer for the next end of a window of kept rows."""
        first = min(side.first(self._edge(self.times.watermark)) for side in self.sides)
        spans = self.node.window.spans(self.node.window.pane_of(first)) if first < FOREVER else []
        self.wake_at(min((end for _, end in spans if end > self.times.watermark), default=FOREVER))


def _bounds(each: InWindows, at: IntArray) -> dict[str, Any]:
    return {WINDOW_START: moments(each.starts[at]), WINDOW_END: moments(each.ends[at])}


def in_windows(window: TimeWindow, times: IntArray) -> tuple[Any, Any, Any]:
    """The windows of some times: for each the number of the time, and where the window begins and ends.

    >>> [each.tolist() for each in in_windows(TimeWindow(20, 10), np.array([5, 12]))]
    [[0, 0, 1, 1], [0, -10, 10, 0], [20, 10, 30, 20]]
    """
    panes, of = np.unique(_panes(window, times), return_inverse=True)
    spans = [window.spans(int(pane)) for pane in panes]
    many = np.array([len(each) for each in spans], np.int64)
    flat = np.array([span for each in spans for span in each], np.int64).reshape(-1, 2)
    begins, counts = (np.cumsum(many) - many)[of], many[of]
    at = np.repeat(np.arange(len(times)), counts)
    to = np.repeat(begins - (np.cumsum(counts) - counts), counts) + np.arange(len(at))
    return at, flat[to, 0], flat[to, 1]


def _panes(window: TimeWindow, times: IntArray) -> IntArray:
    if window.timezone:
        return np.fromiter(map(window.pane_of, times.tolist()), np.int64)
    return times - (times - window.offset) % window.pane
