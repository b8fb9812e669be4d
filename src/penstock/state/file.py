"""A file of state: rows of Arrow, sorted by key hash, never changed once written.

It is one Arrow record batch in the IPC format, so that a worker maps it into memory and reads only what it looks up.
After them stand a checksum for each region of the file, the key hash of every so-many-th row, and a footer that holds them; a
region is checked when it is first touched.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import StateError
from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.times import FOREVER, NEVER
from penstock.state.ranges import KeyRanges
from penstock.storage import CachedStorage, Storage, StorageError

KEY_HASH = "key_hash"
REGION = 1 << 16
BLOCK = 1 << 13
"""The footer holds the key hash of every row with a number divisible by this, so that a look-up touches one block."""
_MAGIC = b"penstock-state-3"
_TAIL = struct.Struct("<II16s")
_OPEN: OrderedDict[str, OpenFile] = OrderedDict()
_OPEN_MOST = 256
_NO_TIMES = (NEVER, FOREVER, NEVER)
"""The times of a file that holds no rows in time."""


@dataclass(frozen=True)
class StateFile:
    """A file as a manifest names it: where, how large, the checksum of its footer, its rows, and the keys for which it still counts."""

    path: str
    size: int
    crc: int
    rows: int
    ranges: KeyRanges
    low: int = NEVER
    """Of rows in time the smallest and the largest time."""
    high: int = FOREVER
    horizon: int = NEVER
    """Rows in time of its keys, in this file and below, that are before it are forgotten."""

    def to_json(self) -> dict[str, Any]:
        """The form in a manifest; times that say nothing are left out."""
        made = {"path": self.path, "size": self.size, "crc": self.crc, "rows": self.rows, "ranges": self.ranges.spans}
        if (self.low, self.high, self.horizon) == _NO_TIMES:
            return made
        return made | {"low": self.low, "high": self.high, "horizon": self.horizon}

    @classmethod
    def from_json(cls, made: Mapping[str, Any]) -> StateFile:
        """A file from a manifest."""
        spans = KeyRanges(tuple(map(tuple, made["ranges"])))
        times = (made["low"], made["high"], made["horizon"]) if "low" in made else _NO_TIMES
        return cls(made["path"], made["size"], made["crc"], made["rows"], spans, *times)


def files_to_json(files: list[StateFile]) -> bytes:
    """The files of a task, as bytes."""
    return json.dumps([f.to_json() for f in files]).encode()


def files_from_json(text: bytes) -> list[StateFile]:
    """The files that some bytes name."""
    return [StateFile.from_json(f) for f in json.loads(text)]


class _Parts:
    """What is written to a file: views of the batch's own memory, with a checksum for each region of the file."""

    closed = False

    def __init__(self) -> None:
        self.views: list[memoryview] = []
        self.size, self._crcs = 0, [0]

    def write(self, data: pa.Buffer | bytes) -> int:
        """Takes a part, and adds it to the checksums."""
        view = memoryview(data).cast("B")
        self.views.append(view)
        at = 0
        while at < len(view):
            room = REGION - self.size % REGION
            part = view[at : at + room]
            self._crcs[-1] = zlib.crc32(part, self._crcs[-1])
            self.size, at = self.size + len(part), at + len(part)
            if not self.size % REGION:
                self._crcs.append(0)
        return len(view)

    def flush(self) -> None:
        """Nothing is held back."""

    @property
    def crcs(self) -> list[int]:
        """The checksums of all regions."""
        return self._crcs if self.size % REGION else self._crcs[:-1]


def write_file(storage: Storage, name: str, batch: pa.RecordBatch) -> tuple[int, int]:
    """Writes a batch as one object; returns its size and the checksum of its footer."""
    parts = _Parts()
    with pa.ipc.new_file(pa.PythonFile(parts, "w"), batch.schema) as writer:
        writer.write_batch(batch)
    footer = json.dumps({"data": parts.size, "crcs": parts.crcs, "index": _index(batch)}).encode()
    crc = zlib.crc32(footer)
    storage.write(name, [*parts.views, footer, _TAIL.pack(len(footer), crc, _MAGIC)])
    return parts.size + len(footer) + _TAIL.size, crc


def _index(batch: pa.RecordBatch) -> list[int]:
    if batch.schema.names[0] != KEY_HASH:
        return []
    made: list[int] = batch.column(0).to_numpy()[::BLOCK].tolist()
    return made


class OpenFile:
    """A file mapped into memory."""

    def __init__(self, name: str, data: pa.Buffer, crcs: list[int], index: list[int]) -> None:
        self.name, self.data, self.crcs = name, data, crcs
        self.is_mapped = False
        self.discard: Callable[[], None] = _nothing
        """Called when it turns out to be damaged."""
        self.index = np.array(index, np.int64)
        self.checked = np.zeros(len(crcs), bool)
        self.batch = self._batch()

    def _batch(self) -> pa.RecordBatch:
        """The record batch. Its own metadata stand in the first and last regions, which are checked first."""
        ends = {0, 1, len(self.crcs) - 2, len(self.crcs) - 1}
        for region in ends & set(range(len(self.crcs))):
            self._check(region)
        return pa.ipc.open_file(pa.BufferReader(self.data)).get_batch(0)

    def find(self, hashes: IntArray) -> tuple[Any, Any]:
        """Where these key hashes are, which must be sorted: indexes of hashes, and the row of each.

        Different keys may share a hash; such a hash comes several times.
        """
        rows = self.batch.num_rows
        if not rows:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        mine, first = self._lower(hashes)
        at = np.flatnonzero(mine[np.minimum(first, rows - 1)] == hashes)
        found = first[at]
        more = at[mine[np.minimum(found + 1, rows - 1)] == hashes[at]]
        more = more[first[more] < rows - 1]
        return self._several(mine, hashes, at, found, more) if len(more) else (at, found)

    def _several(
        self, mine: IntArray, hashes: IntArray, at: IntArray, found: BoolArray, more: BoolArray
    ) -> tuple[Any, Any]:
        self.check_column(KEY_HASH)
        stop = np.searchsorted(mine, hashes[more], "right")
        first = np.searchsorted(mine, hashes[more], "left")
        spans = [np.arange(a + 1, b) for a, b in zip(first, stop, strict=True)]
        again = np.repeat(more, [len(s) for s in spans])
        return np.concatenate([at, again]), np.concatenate([found, *spans])

    def _lower(self, hashes: IntArray) -> tuple[Any, Any]:
        """The key hashes of the file, and where each of the sought ones would stand among them."""
        mine = self.batch.column(0).to_numpy(zero_copy_only=True)
        block = np.maximum(np.searchsorted(self.index, hashes, "left") - 1, 0)
        touched = np.unique(block)
        if 2 * len(touched) >= len(self.index):
            self.check_column(KEY_HASH)
            return mine, np.searchsorted(mine, hashes, "left")
        begin = np.unique(np.concatenate([touched * BLOCK, touched * BLOCK + BLOCK]))
        self._check_spans(self.batch.column(0).buffers()[1], begin * 8, np.minimum(begin + BLOCK, len(mine)) * 8)
        return mine, _within(mine, hashes, block * BLOCK)

    def taken(self, name: str, rows: IntArray) -> Any:
        """Some rows of a column, checked; None when the file has no such column."""
        at = self.batch.schema.get_field_index(name)
        if at < 0:
            return None
        column = self.batch.column(at)
        if not self.checked.all():
            self._check_rows(name, column, rows)
        return column.take(pa.array(rows))

    def _check_rows(self, name: str, column: pa.Array, rows: IntArray) -> None:
        """Checks the regions in which these rows stand."""
        kind, (flags, *buffers) = column.type, column.buffers()
        if flags is not None:
            self._check_spans(flags, rows // 8, rows // 8 + 1)
        if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
            self._check_spans(buffers[0], rows * 8, rows * 8 + 16)
            offsets = np.frombuffer(buffers[0], np.int64)
            if buffers[1] is not None:
                self._check_spans(buffers[1], offsets[rows], offsets[rows + 1])
        elif pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
            bits = kind.bit_width
            self._check_spans(buffers[0], rows * bits // 8, rows * bits // 8 + max(1, bits // 8))
        else:
            self.check_column(name)

    def _check_spans(self, buffer: pa.Buffer, begin: IntArray, end: IntArray) -> None:
        """Checks the regions of spans of bytes in a buffer."""
        base = buffer.address - self.data.address
        full = end > begin
        first, last = (base + begin[full]) // REGION, (base + end[full] - 1) // REGION
        needed = np.zeros(len(self.crcs), bool)
        needed[first] = needed[last] = True
        for wide in np.flatnonzero(last - first > 1).tolist():
            needed[first[wide] : last[wide]] = True
        for region in np.flatnonzero(needed & ~self.checked).tolist():
            self._check(region)

    def check_column(self, name: str) -> None:
        """Checks a whole column."""
        buffers = self.batch.column(self.batch.schema.get_field_index(name)).buffers()
        for buffer in buffers:
            if buffer is not None and buffer.size:
                self._check_spans(buffer, np.array([0]), np.array([buffer.size]))

    def whole(self) -> pa.RecordBatch:
        """All of it, checked."""
        for region in np.flatnonzero(~self.checked).tolist():
            self._check(region)
        return self.batch

    def part(self, ranges: KeyRanges, by: str, names: list[str]) -> pa.RecordBatch:
        """The rows of some ranges, with some columns, checked; only the regions in which they stand are read. `by` has the key hashes."""
        self.check_column(by)
        hashes = self.batch.column(by).to_numpy(zero_copy_only=True)
        for first, last in ranges.rows(hashes) if not self.checked.all() else ():
            for name in names:
                self._check_stretch(name, first, last)
        return ranges.cut(self.batch.select(names), by)

    def _check_stretch(self, name: str, first: int, last: int) -> None:
        """Checks the regions in which rows that follow each other stand."""
        column = self.batch.column(self.batch.schema.get_field_index(name))
        kind, (flags, *buffers) = column.type, column.buffers()
        if flags is not None:
            self._check_span(flags, first // 8, last // 8 + 1)
        if pa.types.is_large_string(kind) or pa.types.is_large_binary(kind):
            self._check_span(buffers[0], first * 8, last * 8 + 8)
            offsets = np.frombuffer(buffers[0], np.int64)
            if buffers[1] is not None:
                self._check_span(buffers[1], int(offsets[first]), int(offsets[last]))
        elif pa.types.is_primitive(kind) or pa.types.is_decimal(kind):
            bits = kind.bit_width
            self._check_span(buffers[0], first * bits // 8, -(-last * bits // 8))
        else:
            self.check_column(name)

    def _check_span(self, buffer: pa.Buffer, begin: int, end: int) -> None:
        self._check_spans(buffer, np.array([begin]), np.array([min(end, buffer.size)]))

    def _check(self, region: int) -> None:
        part = memoryview(self.data)[region * REGION : (region + 1) * REGION]
        if zlib.crc32(part) != self.crcs[region]:
            self.discard()
            raise StateError(
                f"state file {self.name} is damaged between bytes {region * REGION} and {(region + 1) * REGION}"
            )
        self.checked[region] = True


def _within(mine: IntArray, hashes: IntArray, low: IntArray) -> IntArray:
    """The first row of each block on that is not below the hash sought; only its block is looked at."""
    last = len(mine) - 1
    high = np.minimum(low + BLOCK, last + 1)
    while (open_ := low < high).any():
        middle = (low + high) >> 1
        below = open_ & (mine[np.minimum(middle, last)] < hashes)
        low, high = np.where(below, middle + 1, low), np.where(open_ & ~below, middle, high)
    return low


def open_file(storage: Storage, file: StateFile) -> OpenFile:
    """A file that stays open for the next batch, which is safe because files never change and no two have the same name."""
    path = storage.local_path(file.path)
    name = file.path if path is None else str(path)
    if name in _OPEN:
        _OPEN.move_to_end(name)
        return _OPEN[name]
    made = _OPEN[name] = map_file(storage, file)
    while len(_OPEN) > _OPEN_MOST:
        _OPEN.popitem(last=False)
    return made


def close_removed() -> None:
    """Lets go of files that have been removed, so that their space is free."""
    for name in [n for n, file in _OPEN.items() if file.is_mapped and not Path(n).exists()]:
        del _OPEN[name]


def map_file(storage: Storage, file: StateFile) -> OpenFile:
    """A file: mapped into memory where the storage has it on this machine, else read as a whole. It must be as its manifest says."""
    path = storage.local_path(file.path)
    is_copy = isinstance(storage, CachedStorage)
    name = file.path if path is None or is_copy else str(path)
    discard = partial(storage.discard, file.path) if isinstance(storage, CachedStorage) else _nothing
    try:
        data = pa.py_buffer(storage.read(file.path) if path is None else _mapped(path))
    except (OSError, StorageError) as error:
        said = error.strerror if isinstance(error, OSError) else str(error)
        raise StateError(
            f"state file {name} cannot be read ({said}); restore it, or start afresh with --fresh"
        ) from None
    try:
        if data.size != file.size:
            raise StateError(f"state file {name} is damaged: {file.size} bytes were written, {data.size} are there")
        footer = _footer(name, file, memoryview(data))
        made = OpenFile(name, data.slice(0, footer["data"]), footer["crcs"], footer["index"])
    except StateError:
        discard()
        raise
    made.is_mapped, made.discard = path is not None, discard
    return made


def _nothing() -> None:
    """Where there is no copy, there is none to discard."""


def _mapped(path: Path) -> mmap.mmap | bytes:
    with path.open("rb") as handle:
        empty = not os.fstat(handle.fileno()).st_size
        return b"" if empty else mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)


def _footer(name: str, file: StateFile, view: memoryview) -> Any:
    length, crc, magic = _TAIL.unpack(view[-_TAIL.size :])
    text = bytes(view[-_TAIL.size - length : -_TAIL.size]) if length < len(view) else b""
    if magic != _MAGIC or crc != file.crc or zlib.crc32(text) != crc:
        raise StateError(
            f"state file {name} is damaged: its end does not carry the checksum {file.crc:08x} of the manifest"
        )
    return json.loads(text)
