"""Rows in time on disk, as a task sees them: immutable files, of which the driver's manifest says which are version N.

A file holds rows sorted by key hash, and the manifest knows their smallest and largest time. So a look-up by key hash is a binary search, a
span of time skips the files outside it, and a file whose last row is before the horizon is dropped unread. (Sorted by
time instead, a span of 5 M rows would take no time instead of 12 ms, and a look-up of 100 k hashes 800 ms instead of 50.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pyarrow as pa

from penstock.errors import StateError
from penstock.graph.arrays import IntArray
from penstock.graph.state.table import KEY_HASH, TIME, key_hashes_of, some, times_of, within
from penstock.graph.times import FOREVER, NEVER
from penstock.state.chain import FileChain, Settled, StepFiles
from penstock.state.file import (
    OpenFile,
    StateFile,
    open_file,
)
from penstock.state.memory import MemoryTable
from penstock.state.ranges import Horizons
from penstock.state.timing.time_index import TimeIndex, is_index

_MERGE_MOST = 1 << 30
"""Files are merged up to so many bytes: the texts of one Arrow column must stay below 2 GiB."""


class FileTable(FileChain):
    """The rows of a task: files below, what this batch adds in memory."""

    ending, noun, by = "rows", "a row", KEY_HASH
    small, many = 20_000, 7
    """Files are merged when they are small together, or as many as this."""

    def __init__(self, files: StepFiles, task: int) -> None:
        super().__init__(files, task)
        self.horizons = self._known_horizons()
        self.moved = False
        self.new: list[pa.Table] = []
        self.instead: MemoryTable | None = None

    def _known_horizons(self) -> Horizons:
        return Horizons(self.ranges, ((file.ranges, file.horizon) for file in self.chain))

    @property
    def horizon(self) -> int:
        """Before which the rows of all keys are forgotten."""
        return self.horizons.lowest

    def add(self, rows: pa.RecordBatch) -> None:
        """Keeps rows."""
        if rows.num_rows:
            self.new.append(self._owned(pa.Table.from_batches([rows])))

    def span(self, begin: int, end: int) -> pa.Table | None:
        """The rows of a span of time."""
        if self.instead is not None:
            return self._shown(self.instead.span(begin, end))
        kept = (self._span_of(f, begin, end) for f in self._of_time(begin, end))
        return together(part for part in (*kept, *self._new_of(begin, end)) if part is not None)

    def _new_of(self, begin: int, end: int) -> Iterator[pa.Table | None]:
        """The rows of a span of time that this batch has added."""
        return (self._shown(some(rows, within(times_of(rows), begin, end))) for rows in self.new)

    def at(self, hashes: IntArray, begin: int = NEVER, end: int = FOREVER) -> pa.Table | None:
        """The rows of some key hashes in a span of time."""
        if self.instead is not None:
            return self._shown(self.instead.at(hashes, begin, end))
        asked = np.unique(np.asarray(hashes, np.int64))
        found = (self._at_of(f, asked, begin, end) for f in self._of_time(begin, end))
        new = (some(rows, np.isin(key_hashes_of(rows), asked)) for rows in self._new_of(begin, end) if rows is not None)
        return together(part for part in (*found, *new) if part is not None)

    def first(self, begin: int) -> int:
        """The earliest time at or after `begin`; a file tells it unread when all of its rows are."""
        if self.instead is not None:
            return self.instead.first(begin)
        begin = max(begin, self.horizon)
        mine = [int(times_of(rows).min()) for rows in self._new_of(begin, FOREVER) if rows is not None]
        return min([*mine, *(self._first_of(f, begin) for f in self._of_time(begin, FOREVER))], default=FOREVER)

    def _first_of(self, file: StateFile, begin: int) -> int:
        return file.low if file.low >= begin else self._index(file).earliest(begin)

    def _index(self, file: StateFile) -> TimeIndex:
        return TimeIndex(open_file(self.files.storage, file), TIME)

    def forget(self, before: int) -> None:
        """Drops rows by their time."""
        if before > self.horizon:
            self.moved = True
            self.horizons.move(before)

    def replace(self, rows: pa.Table | None) -> None:
        """Replaces all rows."""
        self.instead = MemoryTable(None if rows is None else self._owned(rows))
        self.new = []

    def _of_time(self, begin: int, end: int) -> Iterator[StateFile]:
        begin = max(begin, self.horizon)
        return (f for f in self.chain if f.high >= begin and f.low < end)

    def _span_of(self, file: StateFile, begin: int, end: int) -> pa.Table | None:
        index = self._index(file)
        at = index.between(max(begin, self.horizon) - 1, end - 1)
        if len(at) * 4 < file.rows:
            return self._shown(self._counting(taken(index.file, at), file))
        rows = self.whole(file)
        flags = within(times_of(rows), max(begin, self.horizon), end)
        return self._shown(picked(rows, np.flatnonzero(flags)))

    def _counting(self, rows: pa.Table | None, file: StateFile) -> pa.Table | None:
        """Of rows of a file those of the task's keys for which it still counts: it was perhaps written by a task that owned more keys."""
        return None if rows is None else some(rows, (file.ranges & self.ranges).mask(key_hashes_of(rows)))

    def _at_of(self, file: StateFile, hashes: IntArray, begin: int, end: int) -> pa.Table | None:
        here = hashes[(file.ranges & self.ranges).mask(hashes)]
        if not len(here):
            return None
        found = self._rows_of(file, here)
        return None if found is None else self._shown(some(found, within(times_of(found), begin, end)))

    def _rows_of(self, file: StateFile, hashes: IntArray) -> pa.Table | None:
        """The rows of some key hashes in a file; only the regions are read in which they stand. An earlier version wrote files without an index."""
        opened = open_file(self.files.storage, file)
        at = opened.rows_of(hashes)
        if at is not None:
            return taken(opened, at)
        rows = self.whole(file)
        return picked(rows, rows_at(key_hashes_of(rows), hashes))

    def _shown(self, rows: pa.Table | None) -> pa.Table | None:
        """Of these rows those that are not forgotten."""
        return None if rows is None else some(rows, times_of(rows) >= self.horizons.of(key_hashes_of(rows)))

    def _owned(self, rows: pa.Table) -> pa.Table:
        self.refuse_strays(key_hashes_of(rows))
        return rows

    def restore(self, snapshot: bytes) -> None:
        """Goes on from the files of a snapshot."""
        super().restore(snapshot)
        self.horizons = self._known_horizons()
        self.new, self.instead, self.moved = [], None, False

    def write_changes(self) -> Settled:
        """Writes the rows that were added, with older files that are merged into them; files whose rows are all forgotten are done with."""
        if not self._changed():
            return None, []
        made = self._written()
        self.new, self.instead, self.moved = [], None, False
        return made

    def _changed(self) -> bool:
        if self.new:
            return True
        return (bool(self.chain) and (self.moved or self.instead is not None)) or self._replaced() is not None

    def _replaced(self) -> pa.Table | None:
        return None if self.instead is None else self.instead.rows

    def _written(self) -> tuple[StateFile | None, list[StateFile]]:
        """The new file, if one is needed, and the files that are done with."""
        left = [f for f in self.chain if f.high >= self.horizon] if self.instead is None else []
        first = self._replaced()
        new = self._shown(together([*([first] if first is not None else []), *self.new]))
        older = self._merged_with(new, left)
        parts = [part for f in older if (part := self._span_of(f, NEVER, FOREVER)) is not None]
        rows = together([*parts, *([new] if new is not None else [])])
        done = [f for f in self.chain if f not in left]
        if rows is None and not any(f.low < self.horizon for f in left):
            return None, done
        return self._write(rows if rows is not None else self._nothing()), done

    def _merged_with(self, new: pa.Table | None, left: list[StateFile]) -> list[StateFile]:
        """Takes from `left` what goes into the new file: the newest files that are not much larger, if they are small or many.

        A file that is left alone can be dropped whole one day. Files that hold forgotten rows of some keys alone go
        too, because a file has one horizon for all.
        """
        rows, size = (0, 0) if new is None else (new.num_rows, new.nbytes)
        taken: list[StateFile] = []
        for file in reversed(left):
            if file.rows > 2 * rows or size + file.size > _MERGE_MOST:
                break
            taken.append(file)
            rows, size = rows + file.rows, size + file.size
        if rows > self.small and len(taken) < self.many:
            taken = []
        del left[len(left) - len(taken) :]
        most = self.horizons.highest
        uneven = [f for f in left if self.horizon < most and f.low < most]
        left[:] = [f for f in left if f not in uneven]
        return [*uneven, *reversed(taken)]

    def _write(self, rows: pa.Table) -> StateFile:
        ordered = rows.take(pa.array(np.argsort(key_hashes_of(rows), kind="stable"))).combine_chunks()
        batches = ordered.to_batches() or [pa.RecordBatch.from_pylist([], schema=ordered.schema)]
        if len(batches) > 1:
            raise StateError(
                f"task {self.task} of {self.files.tasks} keeps more than 2 GiB in one batch ({self.files.folder}); use more tasks "
                f"(--parallelism) or smaller batches"
            )
        low, high = extent(ordered)
        return replace(self.put_file(batches[0], [TIME]), low=low, high=high, horizon=self.horizon)

    def _nothing(self) -> pa.Table:
        """No rows, in the form of the newest file: written to say how far rows are forgotten."""
        return pa.Table.from_batches([self.whole(self.chain[-1]).slice(0, 0)])


def extent(rows: pa.Table) -> tuple[int, int]:
    """The smallest and the largest time; of no rows a span that holds nothing."""
    times = times_of(rows)
    return (int(times.min()), int(times.max())) if len(times) else (FOREVER, NEVER)


def rows_at(mine: IntArray, hashes: IntArray) -> IntArray:
    """Which rows have these key hashes, both sorted; many may share one.

    >>> rows_at(np.array([1, 4, 4, 7]), np.array([4, 5, 7])).tolist()
    [1, 2, 3]
    """
    first, stop = np.searchsorted(mine, hashes, "left"), np.searchsorted(mine, hashes, "right")
    many = stop - first
    start = np.cumsum(many) - many
    return np.repeat(first - start, many) + np.arange(int(many.sum()))


def taken(file: OpenFile, at: IntArray) -> pa.Table | None:
    """Some rows of a file, of which only the regions are read in which they stand; None when there are none."""
    names = [n for n in file.batch.schema.names if not is_index(n)]
    return pa.table({name: file.taken(name, at) for name in names}) if len(at) else None


def picked(rows: pa.RecordBatch, at: IntArray) -> pa.Table | None:
    """Some rows of a file, by number; None when there are none."""
    if not len(at):
        return None
    table = pa.Table.from_batches([rows])
    return table if len(at) == rows.num_rows else table.take(pa.array(at))


def together(parts: Iterable[pa.Table]) -> pa.Table | None:
    """Tables one after the other; a field that an older one lacks is null there. None when there is none."""
    tables = list(parts)
    if not tables:
        return None
    try:
        return pa.concat_tables(tables, promote_options="default")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise StateError(
            f"rows kept by an earlier version of a step do not fit those of now: {error}. Give the changed step a "
            f"name of its own, which begins with no state, or start afresh with --fresh"
        ) from None
