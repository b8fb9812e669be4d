"""Windows of a fixed size that are given once, from parts by pane; all in columns.

Parts are kept as they come, without a look at what is there. When event time passes the ends of windows, the panes of these are read back, put
together and given.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.graph.aggregates.aggregate import ROWS
from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.graph import Graph
from penstock.graph.nodes import Window
from penstock.graph.nodes.window import PANE
from penstock.graph.state.table import KEY_HASH, TIME, column, some, times_of, within
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.graph.windows import TimeWindow
from penstock.kernels.base import Context, Kernel, Out
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.windows.rows import Rows, concat

_FIRST = "__first"


class PartsKernel(Kernel):
    """The base of kernels that take parts and keep them as rows in time."""

    node: Window

    def __init__(self, node: Window, graph: Graph) -> None:
        super().__init__(node)
        self.parts = Rows(node)
        self.new: list[pa.Table] = []

    def open(self, context: Context) -> None:
        """Finds the table."""
        self.table = context.table(self.node.name)
        self.timers = context.timers(self.node.name)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Keeps parts until the host advances; those without a time are of records that do not say when they happened."""
        batch = chunk.batch()
        self.counters.native += int(column(batch, ROWS).sum())
        hashes = chunk.key_hashes or key_hashes([batch.column(k) for k in self.node.keys], batch.num_rows)
        rows = pa.Table.from_batches([batch]).append_column(KEY_HASH, pa.array(hashes, pa.int64()))
        self.new.append(self.on_time(rows, ~np.asarray(rows.column(len(self.node.keys)).is_null())))
        return ()

    def on_time(self, rows: pa.Table, flags: BoolArray) -> pa.Table:
        """The parts whose flag is true; the others are counted as late."""
        if flags.all():
            return rows
        self.counters.late += int(column(rows, ROWS)[~flags].sum())
        return rows.filter(pa.array(flags))

    def taken(self) -> pa.Table | None:
        """The parts taken since the host last advanced."""
        new, self.new = concat(self.new), []
        return new

    def give(self, rows: pa.Table, start: IntArray, end: IntArray) -> Out:
        """The records of windows."""
        yield "out", Chunk(self.node.output().schema, batch=self.parts.results(rows, start, end))


class PanesKernel(PartsKernel):
    """Tumbling, sliding and cumulating windows."""

    def __init__(self, node: Window, graph: Graph) -> None:
        super().__init__(node, graph)
        assert isinstance(node.spec, TimeWindow), "window_kernel chooses by the kind of window"
        self.spec = node.spec

    def advance(self, times: Times) -> Out:
        """Emits the windows whose end event time passes, and keeps the panes of the others."""
        self.move(times)
        new, mark = self._on_time(self.taken()), times.watermark
        if mark > NEVER:
            yield from self._ended(new, mark)
        self._keep(new, mark)
        self.since = max(self.since, mark)

    def _on_time(self, rows: pa.Table | None) -> pa.Table | None:
        """The parts that are in a window that is open; a pane is late as a whole."""
        if rows is None:
            return None
        rows = self.on_time(rows, column(rows, PANE) >= self.spec.late_before(self.times.previous)).drop_columns([ROWS])
        return rows.rename_columns([TIME if n == PANE else n for n in rows.column_names]) if rows.num_rows else None

    def _keep(self, new: pa.Table | None, mark: int) -> None:
        """Adds the panes of windows that are open, forgets the others, and says when the next window ends."""
        horizon = self.spec.late_before(mark)
        open_ = None if new is None else some(new, times_of(new) >= horizon)
        if open_ is not None:
            for batch in open_.to_batches():
                self.table.add(batch)
        self.table.forget(horizon)
        first = self.table.first(horizon)
        self.wake_at(self._end_behind(first, mark) if first < FOREVER else FOREVER)

    def _end_behind(self, pane: int, mark: int) -> int:
        """The first end after `mark` of a window that may hold something from a pane on."""
        spec = self.spec
        ends = [end for _, end in spec.spans(pane) if end > mark]
        return min(ends, default=max(mark, pane) + spec.every)

    def _ended(self, new: pa.Table | None, mark: int) -> Out:
        """The windows that begin, on the wall, before the first one that is open: those with `end <= mark`.

        Kept rows count in windows that have not been emitted, new ones in all for which they are not late.
        """
        spec = self.spec
        since, late, until = (spec.open_from(t) for t in (self.since, self.times.previous, mark))
        last = until if until == FOREVER else until - spec.every + spec.size
        mine = None if new is None else some(new, within(times_of(new), late, last))
        kept = self.table.span(since, last) if since < until else None
        if since == late:
            kept, mine = concat([kept, mine]), None
        rows = concat([self._by_window(kept, since, until), self._by_window(mine, late, until)])
        if rows is None:
            return
        made = self.parts.together(rows, [*self.node.keys, _FIRST])
        starts = column(made, _FIRST)
        yield from self.give(made, self._times(spec.begins(starts)), self._times(starts + spec.size))

    def _by_window(self, rows: pa.Table | None, first: int, until: int) -> pa.Table | None:
        """A row for each pane and each of the windows that hold it, with the window's start."""
        if rows is None or first >= until:
            return None
        spec, panes = self.spec, times_of(rows)
        last = panes - (panes - spec.offset) % spec.every
        found, starts = [], []
        for back in range(spec.panes):
            start = last - back * spec.every
            holds = (spec.begins(start) <= panes) & (start + spec.size > panes)
            at = np.flatnonzero(holds & within(start, first, until))
            found.append(at)
            starts.append(start[at])
        at = np.concatenate(found)
        if not len(at):
            return None
        rows = rows.drop_columns([KEY_HASH, TIME])
        rows = rows if len(found) == 1 and len(at) == rows.num_rows else rows.take(pa.array(at))
        return rows.append_column(_FIRST, pa.array(np.concatenate(starts)))

    def _times(self, walls: IntArray) -> IntArray:
        """When the clocks on the wall show these times."""
        if not self.spec.timezone:
            return walls
        each, at = np.unique(walls, return_inverse=True)
        return np.array([self.spec.time(w) for w in each.tolist()], np.int64)[at]
