"""Sessions that are given once, from parts that are pieces of a session each; all in columns.

A piece is a span of time in which records of a key lie so close that they are surely one session. Pieces are kept as they come, by
their end. When event time passes the end of a piece, all that touches it is put together: the sessions that are over are given; of the others
what would be forgotten is kept as one piece, up to the end of the session so far. A session that was over before the batch is made of late records.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.aggregates.aggregate import ROWS
from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.graph import Graph
from penstock.graph.nodes import LATE, Window
from penstock.graph.nodes.window import END, RECORD, START
from penstock.graph.state.table import KEY_HASH, TIME, column, key_hashes_of, some
from penstock.graph.times import NEVER, Times
from penstock.kernels.base import Out
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.windows.panes import PartsKernel
from penstock.kernels.windows.rows import concat

_SESSION = "__session"


class SessionsKernel(PartsKernel):
    """Session windows. Where late records are read each piece is a record, which comes along as long as it may turn out to be late."""

    def __init__(self, node: Window, graph: Graph) -> None:
        super().__init__(node, graph)
        self.has_records = len(node.outputs) > 1

    def advance(self, times: Times) -> Out:
        """Emits the sessions that are over, and keeps the pieces of the others."""
        self.move(times)
        new, mark = self.taken(), times.watermark
        new = None if new is None else new.append_column(TIME, new.column(END))
        if new is not None and self.has_records:
            new = yield from self._without_late(new)
        open_ = None if new is None else some(new, column(new, TIME) > mark)
        if mark > NEVER:
            moved = yield from self._ended(new, mark)
            self._add(moved)
            self.table.forget(mark + 1)
        self._add(open_)
        self.since = max(self.since, mark)
        self.wake_at(self.table.first(mark + 1))

    def _add(self, rows: pa.Table | None) -> None:
        if rows is not None and rows.num_rows:
            for batch in rows.combine_chunks().to_batches():
                self.table.add(batch)

    def _ended(self, new: pa.Table | None, mark: int) -> Generator[tuple[str, Chunk], None, pa.Table | None]:
        """Gives the sessions that are over; what comes back is to be kept of those that are not."""
        over = None if new is None else some(new, column(new, TIME) <= mark)
        old = concat([self.table.span(NEVER, mark + 1), over])
        if old is None:
            return None
        open_ = None if new is None else some(new, column(new, TIME) > mark)
        pieces = concat([old, self._touching(old, open_, mark)])
        assert pieces is not None
        begin, end, number = sessions(self._key_numbers(pieces), column(pieces, START), column(pieces, END))
        pieces = pieces.append_column(_SESSION, pa.array(number))
        old_ones = np.arange(pieces.num_rows) < old.num_rows
        late = end[number] <= self.times.previous
        self.counters.late += int(column(pieces, ROWS)[late].sum())
        ended = (end[number] <= mark) & ~late
        if ended.any():
            made = self._merged(pieces.filter(pa.array(ended)), self.node.keys)
            which = column(made, _SESSION)
            yield from self.give(made, begin[which], end[which])
        return self._kept(some(pieces, old_ones & ~ended & ~late), end)

    def _without_late(self, new: pa.Table) -> Generator[tuple[str, Chunk], None, pa.Table]:
        """Emits late records: those whose own window is over, and which fall into no session that was open when they arrived."""
        flags = column(new, END) > self.times.previous
        if not flags.all():
            flags = self._accepted(new, flags)
            yield LATE, self._records(some(new, ~flags))
        return new.filter(pa.array(flags)).drop_columns([RECORD])

    def _accepted(self, new: pa.Table, on_time: BoolArray) -> BoolArray:
        """Which records belong to a session that is open, one after the other; few are late, so only their keys are looked at."""
        all_hashes = key_hashes_of(new)
        hashes = np.unique(all_hashes[~on_time])
        kept, accepted = self.table.at(hashes, self.times.previous + 1), on_time.copy()
        pieces = concat([kept, new.drop_columns([RECORD]).filter(pa.array(np.isin(all_hashes, hashes)))])
        assert pieces is not None
        numbers, first = self._key_numbers(pieces), 0 if kept is None else kept.num_rows
        spans = zip(numbers.tolist(), column(pieces, START).tolist(), column(pieces, END).tolist(), strict=True)
        open_: dict[int, list[tuple[int, int]]] = {}
        at = np.flatnonzero(np.isin(all_hashes, hashes))
        for number, (key, start, end) in enumerate(spans):
            mine = open_.setdefault(key, [])
            if number < first:
                mine.append((start, end))
            elif end > self.times.previous or any(start < e and s < end for s, e in mine):
                mine.append((start, end))
                accepted[at[number - first]] = True
        return accepted

    def _records(self, rows: pa.Table | None) -> Chunk:
        """The records of some pieces, as they were."""
        schema = self.node.output(LATE).schema
        if rows is None:
            return Chunk(schema, rows=[])
        columns = rows.column(RECORD).combine_chunks().flatten()
        return Chunk(schema, batch=pa.record_batch(columns, schema=arrow_schema(schema)))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Keeps pieces; a record that does not say when it happened is late at once."""
        yield from super().take(chunk, source)
        if self.has_records:
            batch = pa.Table.from_batches([chunk.batch()])
            unknown = np.asarray(batch.column(START).is_null())
            yield LATE, self._records(some(batch, unknown))
            self.counters.late -= int(unknown.sum())

    def _touching(self, old: pa.Table, open_: pa.Table | None, mark: int) -> pa.Table | None:
        """The open pieces of the keys that have old ones."""
        hashes = np.unique(key_hashes_of(old))
        mine = None if open_ is None else some(open_, np.isin(key_hashes_of(open_), hashes))
        return concat([self.table.at(hashes, mark + 1), mine])

    def _key_numbers(self, rows: pa.Table) -> IntArray:
        """A number for each row, the same for the same key."""
        number = np.zeros(rows.num_rows, np.int64)
        for name in self.node.keys:
            coded = pc.dictionary_encode(rows.column(name).combine_chunks(), null_encoding="encode")
            codes = coded.indices.to_numpy(zero_copy_only=False)
            both = number * (int(codes.max(initial=0)) + 1) + codes
            number = both if name == self.node.keys[0] else np.unique(both, return_inverse=True)[1]
        return number

    def _merged(self, rows: pa.Table, names: Iterable[str]) -> pa.Table:
        """The pieces of each session as one row of parts, with other fields that are the same in all of them."""
        made = self.parts.together(rows, [_SESSION])
        number = column(rows, _SESSION)
        first = np.empty(int(number.max()) + 1, np.int64)
        first[number] = np.arange(len(number))
        at = pa.array(first[column(made, _SESSION)])
        for name in names:
            made = made.append_column(name, rows.column(name).take(at))
        return made

    def _kept(self, rows: pa.Table | None, end: IntArray) -> pa.Table | None:
        """The old pieces of each session that is not over, as one piece; it is kept until the session so far ends."""
        if rows is None:
            return None
        made = self._merged(rows, [*self.node.keys, KEY_HASH])
        made = made.sort_by(_SESSION)
        bounds = rows.group_by(_SESSION).aggregate([(START, "min"), (END, "max")]).sort_by(_SESSION)
        made = made.append_column(START, bounds.column(f"{START}_min")).append_column(END, bounds.column(f"{END}_max"))
        made = made.append_column(TIME, pa.array(end[column(made, _SESSION)]))
        made = made.append_column(ROWS, pa.array(np.zeros(made.num_rows, np.int64)))
        return made.select([*self.node.keys, START, END, *self.parts.parts, ROWS, KEY_HASH, TIME])


def sessions(keys: IntArray, starts: IntArray, ends: IntArray) -> tuple[Any, Any, Any]:
    """Spans of each key that overlap, put together: where each session begins and ends, and which one each span is in.

    >>> begin, end, which = sessions(np.array([1, 2, 1, 1]), np.array([0, 0, 5, 50]), np.array([10, 9, 15, 60]))
    >>> begin.tolist(), end.tolist(), which.tolist()
    ([0, 50, 0], [15, 60, 9], [0, 2, 0, 1])
    """
    order = _order(keys, starts)
    k, s, e = keys[order], starts[order], ends[order]
    fresh = np.ones(len(k), bool)
    fresh[1:] = k[1:] != k[:-1]
    reach = _running_max(e, fresh)
    fresh[1:] |= s[1:] >= reach[:-1]
    at = np.flatnonzero(fresh)
    number = np.empty(len(k), np.int64)
    number[order] = np.cumsum(fresh) - 1
    return s[at], np.maximum.reduceat(e, at) if len(at) else e, number


def _order(keys: IntArray, starts: IntArray) -> IntArray:
    """The order by key and start; by both in one number, where that fits, which is quicker."""
    least = int(starts.min(initial=0))
    many = int(starts.max(initial=0)) - least + 1
    if int(keys.max(initial=0)) < (1 << 62) // many:
        return np.argsort(keys * many + (starts - least))
    return np.lexsort((starts, keys))


def _running_max(values: IntArray, fresh: BoolArray) -> IntArray:
    """The largest value so far, starting over where `fresh` is true."""
    least = int(values.min(initial=0))
    high = int(values.max(initial=0)) - least + 1
    group = np.cumsum(fresh)
    if high and int(group[-1] if len(group) else 0) < (1 << 62) // high:
        reach: IntArray = np.maximum.accumulate((values - least) + group * high) - group * high + least
        return reach
    return np.concatenate([np.maximum.accumulate(each) for each in np.split(values, np.flatnonzero(fresh)[1:])])
