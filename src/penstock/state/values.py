"""Keyed state on disk, as a task sees it: immutable files, of which the driver's manifest says which are version N.

A task reads only the keys that a batch touches, and writes only those it changes: a new file on top of the older ones,
into which older ones of its own size are merged. Keys and values stand in typed columns, looked up, read and written a
column at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.state.arrow import equal, wide_type
from penstock.graph.state.layout import Column, Layout
from penstock.graph.times import Times
from penstock.state import columns
from penstock.state.chain import FileChain, Settled, StepFiles
from penstock.state.file import (
    KEY_HASH,
    OpenFile,
    StateFile,
    open_file,
)
from penstock.state.merge import merged
from penstock.state.timing.time_index import TimeIndex
from penstock.state.timing.timers import ALL, COLUMNS, FileTimers
from penstock.state.young import YoungBatch

TASKS = Layout((Column("task", pa.int64()),), (Column("state"),), single=True)
"""What a step keeps that says nothing else: an object for each of its tasks."""
YOUNGEST = 8
"""So many batches of columns are looked through one by one; more are put together."""


Source = OpenFile | YoungBatch
"""Where entries are looked up."""


class FileState(FileChain):
    """The state of a task: files below, what this batch touches in memory."""

    ending, noun, by = "state", "a key", KEY_HASH
    is_columnar: ClassVar[bool] = True

    def __init__(self, files: StepFiles, task: int, dumps: columns.Dumps = columns.dumps) -> None:
        super().__init__(files, task)
        self.dumps, self.layout = dumps, TASKS
        self.cache: dict[Any, Any] = {}
        self.key_hashes: dict[Any, int] = {}
        self.touched: dict[Any, None] = {}
        self.young: list[YoungBatch] = []
        self.waits: FileTimers | None = None
        self.get = self.cache.get

    def describe(self, layout: Layout) -> None:
        """Says how keys and values look."""
        self.layout = layout

    def timers(self, times: Times) -> FileTimers:
        """The timers of its keys; `times` says up to where they have fired."""
        self.waits = FileTimers(self, times)
        return self.waits

    def prefetch(self, keys: list[Any], hashes: list[int] | None) -> None:
        """Looks up the keys that are not in the cache yet, all at once."""
        assert hashes is not None
        known = self.key_hashes
        new = {key: key_hash for key, key_hash in zip(keys, hashes, strict=True) if key not in known}
        if not new:
            return
        at = np.fromiter(new.values(), np.int64, len(new))
        self.refuse_strays(at)
        self.key_hashes |= new
        if self.chain or self.young:
            order = np.argsort(at)
            named = list(new)
            self._find([named[i] for i in order.tolist()], at[order])

    def release(self, keys: list[Any]) -> None:
        """Lets go of keys that were prefetched and not changed."""
        for key in keys:
            if key not in self.touched:
                self.cache.pop(key, None)
                self.key_hashes.pop(key, None)

    def _find(self, keys: list[Any], hashes: IntArray) -> None:
        for file, at, rows in self._matches(columns.encode_keys(self.layout, keys), hashes):
            self._read(file, keys, at, rows)

    def _matches(self, keys: list[Any], hashes: IntArray) -> Iterator[tuple[Source, IntArray, IntArray]]:
        """Goes through what is kept, newest first, until every key is found or all are through: who has which keys, in which rows."""
        wanted = pa.RecordBatch.from_arrays(keys, self._key_names)
        open_ = np.arange(len(hashes))
        for file, here in self._sources(hashes):
            looked = open_[here[open_]]
            if len(looked):
                at, rows = self._match(file, hashes, wanted, looked)
                yield file, *_there(file, at, rows)
                open_ = np.setdiff1d(open_, at, assume_unique=True)

    def _sources(self, hashes: IntArray) -> Iterator[tuple[Source, BoolArray]]:
        """What may have some of the hashes, newest first, and which."""
        for young in reversed(self.young):
            yield young, np.ones(len(hashes), bool)
        for file in reversed(self.chain):
            covered = file.ranges.covers(self.ranges)
            here = np.ones(len(hashes), bool) if covered else file.ranges.mask(hashes)
            if here.any():
                yield open_file(self.files.storage, file), here

    @property
    def _key_names(self) -> list[str]:
        return [columns.KEY + c.name for c in self.layout.keys]

    @staticmethod
    def _match(file: Source, hashes: IntArray, wanted: pa.RecordBatch, here: IntArray) -> tuple[IntArray, IntArray]:
        """Which of the keys numbered `here` a file knows, and in which rows."""
        found, rows = file.find(hashes[here])
        at: IntArray = here[found]
        alike = np.ones(len(at), bool)
        for name in wanted.schema.names:
            alike &= equal(file.taken(name, rows), wanted.column(name).take(pa.array(at)))
        return (at, rows) if alike.all() else (at[alike], rows[alike])

    def _read(self, file: Source, keys: list[Any], at: IntArray, rows: IntArray) -> None:
        if not len(at):
            return
        parts = [
            columns.decode(
                c, file.taken(columns.VALUE + c.name, rows), file.taken(columns.PICKLED + c.name, rows), len(at)
            )
            for c in self.layout.values
        ]
        named = keys if len(at) == len(keys) else [keys[i] for i in at.tolist()]
        self.cache.update(zip(named, columns.assembled(self.layout, parts, len(at)), strict=True))
        if self.waits is not None:
            self.waits.load(named, *(file.taken(name, rows) for name in (*COLUMNS.values(), ALL)))

    def read_columns(self, keys: pa.RecordBatch, hashes: IntArray) -> tuple[pa.RecordBatch, BoolArray] | None:
        """What is kept for many keys, found and read a column at a time; None where a value of theirs is pickled."""
        self._age()
        self.refuse_strays(hashes)
        order = np.argsort(hashes)
        sought = [
            array.cast(wide_type(c.type)).take(pa.array(order))
            for array, c in zip(keys.columns, self.layout.keys, strict=True)
        ]
        found = list(self._matches(sought, hashes[order]))
        if any(_is_pickled(c, file, rows) for c in self.layout.values for file, _, rows in found):
            return None
        rows = np.full(len(hashes), -1)
        at = np.concatenate([rows[:0], *(at for _, at, _ in found)])
        rows[order[at]] = np.arange(len(at))
        index = pa.array(rows, mask=rows < 0)
        arrays = [_column(c, found).take(index) for c in self.layout.values]
        return pa.RecordBatch.from_arrays(arrays, [c.name for c in self.layout.values]), rows >= 0

    def put_columns(self, keys: pa.RecordBatch, hashes: IntArray, values: pa.RecordBatch, gone: BoolArray) -> None:
        """Keeps values for many keys, in the columns of the file to come."""
        self._age()
        self.refuse_strays(hashes)
        named = [*self._key_names, *(columns.VALUE + c.name for c in self.layout.values)]
        kinds = [wide_type(c.type) for c in (*self.layout.keys, *self.layout.values)]
        arrays = [array.cast(kind) for array, kind in zip((*keys.columns, *values.columns), kinds, strict=True)]
        if gone.any():
            named, arrays = [*named, columns.GONE], [*arrays, pa.array(gone)]
        batch = pa.RecordBatch.from_arrays([pa.array(hashes), *arrays], [KEY_HASH, *named])
        self.young.append(YoungBatch(batch.take(pa.array(np.argsort(hashes)))))
        if len(self.young) > YOUNGEST:
            self.young = [YoungBatch(self._young())]

    def _age(self) -> None:
        """Turns what was put key by key into columns, so that one who reads columns finds it."""
        assert self.waits is None, "timers are set key by key"
        if self.touched:
            self.young.append(YoungBatch(self._changes()))
        for each in (self.cache, self.key_hashes, self.touched):
            each.clear()

    def _young(self) -> pa.RecordBatch:
        return merged([young.batch for young in self.young], last=False)

    def put(self, key: object, value: object) -> None:
        """Keeps a value for a key."""
        self.cache[key] = value
        self.touched[key] = None

    def delete(self, key: object) -> None:
        """Forgets a key."""
        self.cache.pop(key, None)
        self.touched[key] = None

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All that is kept, in the files and in memory."""
        kept = [*map(self.whole, self.chain), *(young.batch for young in self.young)]
        if kept:
            yield from self._kept(merged(kept, last=True))
        yield from ((k, self.cache[k]) for k in list(self.touched) if k in self.cache)

    def sizes(self, column: str) -> tuple[int, int]:
        """How many keys there are, and how many items their lists in a column hold: two columns of each file are read."""
        at = [each.name for each in self.layout.values].index(column)
        mine = [self.cache[key][at] for key in self.touched if key in self.cache]
        hidden = np.fromiter(map(self.key_hashes.__getitem__, self.touched), np.int64, len(self.touched))
        keys, items = len(mine), sum(map(len, mine))
        for file in reversed(self.chain):
            part = self.whole(file)
            hashes = part.column(KEY_HASH).to_numpy(zero_copy_only=False)
            shown = ~np.isin(hashes, hidden)
            hidden = np.concatenate([hidden, hashes])
            if columns.GONE in part.schema.names:
                shown &= ~part.column(columns.GONE).fill_null(False).to_numpy(zero_copy_only=False)
            lengths = pc.list_value_length(part.column(columns.VALUE + column)).fill_null(0)
            keys += int(shown.sum())
            items += int(lengths.to_numpy(zero_copy_only=False)[shown].sum())
        return keys, items

    def _kept(self, whole: pa.RecordBatch) -> Iterator[tuple[Any, Any]]:
        """The entries of a batch that were not touched since; they are prefetched now."""
        keys = columns.decode_keys(self.layout, whole)
        self._load_timers(keys, whole)
        self.key_hashes = dict(zip(keys, whole.column(KEY_HASH).to_pylist(), strict=True)) | self.key_hashes
        parts = [columns.decode(c, *_arrays(whole, c), whole.num_rows) for c in self.layout.values]
        for key, value in zip(keys, columns.assembled(self.layout, parts, whole.num_rows), strict=True):
            if key not in self.touched:
                yield key, self.cache.setdefault(key, value)

    def _load_timers(self, keys: list[Any], whole: pa.RecordBatch) -> None:
        """Takes in the timers of keys that were not known; a key that is known has them already, and is not looked up again."""
        new = [at for at, key in enumerate(keys) if key not in self.key_hashes]
        if self.waits is None or not new:
            return
        names, rows = whole.schema.names, pa.array(new)
        parts = (whole.column(name).take(rows) if name in names else None for name in (*COLUMNS.values(), ALL))
        self.waits.load([keys[at] for at in new], *parts)

    def indexes(self, column: str) -> Iterator[tuple[TimeIndex, StateFile]]:
        """The index by time of a column in each file."""
        return ((TimeIndex(open_file(self.files.storage, file), column), file) for file in self.chain)

    def bring(self, file: StateFile, rows: IntArray) -> None:
        """Prefetches the keys in some rows of a file, as far as they are the task's."""
        if not len(rows):
            return
        opened = open_file(self.files.storage, file)
        hashes = opened.taken(KEY_HASH, rows).to_numpy(zero_copy_only=False)
        mine = (file.ranges & self.ranges).mask(hashes)
        rows, hashes = rows[mine], hashes[mine]
        named = [columns.KEY + c.name for c in self.layout.keys]
        keys = pa.RecordBatch.from_arrays([opened.taken(name, rows) for name in named], named)
        self.prefetch(columns.decode_keys(self.layout, keys), hashes.tolist())

    def restore(self, snapshot: bytes) -> None:
        """Goes on from the files of a snapshot."""
        super().restore(snapshot)
        for each in (self.cache, self.key_hashes, self.touched, self.young):
            each.clear()
        if self.waits is not None:
            self.waits.reset()

    def write_changes(self) -> Settled:
        """Writes the touched keys."""
        if not self.touched and not self.young:
            return None, []
        batch, older = self._written()
        file = self.put_file(batch, COLUMNS.values())
        self.touched.clear()
        self.young.clear()
        return file, older

    def _written(self) -> tuple[pa.RecordBatch, list[StateFile]]:
        """What is to be written: the touched keys, and the newest files below that are not much larger."""
        older: list[StateFile] = []
        batch, left = self._new(), list(self.chain)
        while left and left[-1].rows <= 2 * (batch.num_rows + sum(f.rows for f in older)):
            older.append(left.pop())
        if older or not left:
            batch = merged([*(self.whole(f) for f in reversed(older)), batch], last=not left)
        return batch, older

    def _new(self) -> pa.RecordBatch:
        """All that was put since the last file."""
        if not self.young:
            return self._changes()
        if self.touched:
            self.young.append(YoungBatch(self._changes()))
        return self.young[0].batch if len(self.young) == 1 else self._young()

    def _changes(self) -> pa.RecordBatch:
        """The touched keys, sorted by key hash; those that are gone come with whatever values."""
        hashes = np.fromiter(map(self.key_hashes.__getitem__, self.touched), np.int64, len(self.touched))
        order = np.argsort(hashes)
        touched = list(self.touched)
        keys = [touched[i] for i in order.tolist()]
        waits = self.waits.timers if self.waits is not None else {}
        here = [k in self.cache or k in waits for k in keys]
        gone = not all(here)
        nothing = self._nothing()
        values = [self.cache.get(k, nothing) for k, is_here in zip(keys, here, strict=True) if is_here]
        made = columns.encode_values(self.layout, values, self.dumps)
        if gone:
            made = [(name, _spread(array, here)) for name, array in made]
            made.append((columns.GONE, pa.array([not h for h in here], pa.bool_())))
        if self.waits is not None:
            made += self.waits.columns(keys)
        named = [columns.KEY + c.name for c in self.layout.keys]
        names = [KEY_HASH, *named, *(name for name, _ in made)]
        arrays = [pa.array(hashes[order]), *columns.encode_keys(self.layout, keys), *(array for _, array in made)]
        return pa.RecordBatch.from_arrays(arrays, names)

    def _nothing(self) -> Any:
        """The value of a key that has timers alone."""
        defaults = tuple(c.default for c in self.layout.values)
        return defaults[0] if self.layout.single else defaults


def _arrays(batch: pa.RecordBatch, column: Column) -> tuple[Any, Any]:
    names = batch.schema.names
    typed, pickled = columns.VALUE + column.name, columns.PICKLED + column.name
    return (batch.column(typed) if typed in names else None, batch.column(pickled) if pickled in names else None)


def _there(file: Source, at: IntArray, rows: IntArray) -> tuple[IntArray, IntArray]:
    """The numbers of keys that are not gone, and their rows."""
    gone = file.taken(columns.GONE, rows)
    if gone is None:
        return at, rows
    there = ~gone.fill_null(False).to_numpy(zero_copy_only=False)
    return at[there], rows[there]


def _is_pickled(column: Column, file: Source, rows: IntArray) -> bool:
    """Whether a value in some rows did not fit its type."""
    pickled = file.taken(columns.PICKLED + column.name, rows)
    return pickled is not None and pickled.null_count < len(pickled)


def _column(column: Column, found: list[tuple[Source, IntArray, IntArray]]) -> pa.Array:
    """A part of the values that were found, one source after the other; null in a source that has no such column."""
    kind = wide_type(column.type)
    taken = [(file.taken(columns.VALUE + column.name, rows), len(rows)) for file, _, rows in found]
    arrays = [pa.nulls(many, kind) if array is None else array.cast(kind) for array, many in taken]
    return pa.concat_arrays(arrays) if arrays else pa.nulls(0, kind)


def _spread(array: pa.Array, here: list[bool]) -> pa.Array:
    """The values at the indexes that are here, null at the others."""
    at = np.cumsum(here) - 1
    return array.take(pa.array(at, mask=~np.array(here)))
