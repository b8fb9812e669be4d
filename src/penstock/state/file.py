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
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import StateError
from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.state.table import KEY_HASH as ROW_KEY_HASH
from penstock.graph.times import FOREVER, NEVER
from penstock.state.ranges import KeyRanges
from penstock.storage import CachedStorage, Storage, StorageError
from penstock.storage.partial import PartialCopy, Span

KEY_HASH = "key_hash"
REGION = 1 << 16
BLOCK = 1 << 11
"""The footer holds the key hash of every row with a number divisible by this, so that a look-up touches one block. Blocks of 16 KiB seldom stand in two regions."""
SMALL = 4 * REGION
"""A file that is no larger is fetched as a whole: two requests for its ends would bring most of it."""
_HIGHEST = np.iinfo(np.int64).max
_MAGIC = b"penstock-state-3"
_TAIL = struct.Struct("<II16s")
_OPEN: OrderedDict[str, OpenFile] = OrderedDict()
_OPEN_MOST = 256
_INT = struct.Struct("<i")
_ARROW_HEAD, _MESSAGE, _ARROW_TAIL = 8, 8, 10
"""Bytes of Arrow's IPC format: the magic at the beginning, what stands before a message (a mark and its length), the length of the footer and the magic at the end."""
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


def _nothing() -> None:
    """Where there is no copy, there is none to discard."""


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
    at = _hashes_at(batch.schema)
    if at < 0:
        return []
    made: list[int] = batch.column(at).to_numpy()[::BLOCK].tolist()
    return made


def _hashes_at(schema: pa.Schema) -> int:
    """Which column has the key hashes, of values or of rows in time; -1 when none has."""
    return int(max(map(schema.get_field_index, (KEY_HASH, ROW_KEY_HASH))))


class OpenFile:
    """A file mapped into memory."""

    def __init__(
        self,
        name: str,
        data: pa.Buffer,
        footer: Mapping[str, Any],
        copy: PartialCopy | None = None,
        discard: Callable[[], None] = _nothing,
    ) -> None:
        data, crcs, index = data.slice(0, footer["data"]), footer["crcs"], footer["index"]
        self.name, self.data, self.crcs = name, data, crcs
        self.path: Path | None = None
        """The file of this machine that is mapped."""
        self.copy = copy
        """Where regions that are not on this machine are fetched from."""
        self.discard = discard
        """Called when it turns out to be damaged."""
        self.index = np.array(index, np.int64)
        self.checked = np.zeros(len(crcs), bool)
        self.batch = self._batch()
        self.block = _block(self.batch.num_rows, len(index))
        self._by = _hashes_at(self.batch.schema)

    def _batch(self) -> pa.RecordBatch:
        """The record batch. Its own metadata stand at both ends of the file, which are checked first."""
        self._check_bytes(self.data.size - _ARROW_TAIL, self.data.size)
        (footer,) = _INT.unpack_from(self.data, self.data.size - _ARROW_TAIL)
        self._check_bytes(self.data.size - _ARROW_TAIL - footer, self.data.size)
        end = _ARROW_HEAD
        for _ in ("schema", "batch"):
            self._check_bytes(0, end + _MESSAGE)
            (size,) = _INT.unpack_from(self.data, end + _MESSAGE - _INT.size)
            end += _MESSAGE + size
            self._check_bytes(0, end)
        return pa.ipc.open_file(pa.BufferReader(self.data)).get_batch(0)

    def _check_bytes(self, begin: int, end: int) -> None:
        """Checks the regions of some bytes."""
        last = len(self.crcs) - 1
        self._check_regions(range(max(0, begin) // REGION, min(last, (end - 1) // REGION) + 1))

    def find(self, hashes: IntArray) -> tuple[Any, Any]:
        """Where these key hashes are, which must be sorted: indexes of hashes in order, and the row of each.

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
        self._check_hashes()
        first, stop = (np.searchsorted(mine, hashes[more], side) for side in ("left", "right"))
        spans = [np.arange(a + 1, b) for a, b in zip(first, stop, strict=True)]
        each = np.concatenate([at, np.repeat(more, [len(s) for s in spans])])
        order = np.argsort(each, kind="stable")
        return each[order], np.concatenate([found, *spans])[order]

    def _lower(self, hashes: IntArray) -> tuple[Any, Any]:
        """The key hashes of the file, and where each of the sought ones would stand among them."""
        mine = self.batch.column(self._by).to_numpy(zero_copy_only=True)
        block = np.maximum(np.searchsorted(self.index, hashes, "left") - 1, 0)
        touched = np.unique(block)
        if len(touched) >= (0.5 if self.copy is None else 0.9) * len(self.index):
            self._check_hashes()
            return mine, np.searchsorted(mine, hashes, "left")
        # The row that is found may be the first of the next block, and is compared with the one after it.
        begin = touched * self.block
        end = np.minimum(begin + self.block + 2, len(mine))
        self._check_spans(self.batch.column(self._by).buffers()[1], begin * 8, end * 8)
        return mine, _within(mine, hashes, block * self.block, self.block)

    def _check_hashes(self) -> None:
        self.check_column(self.batch.schema.names[self._by])

    def rows_of(self, hashes: IntArray) -> IntArray | None:
        """The rows of these key hashes, which must be sorted and differ; many may share one. None when the file has no index."""
        if not len(self.index):
            return None
        first, stop = self._lower(hashes)[1], self._lower(np.where(hashes < _HIGHEST, hashes + 1, hashes))[1]
        stop = np.where(hashes < _HIGHEST, stop, self.batch.num_rows)
        many = stop - first
        return np.repeat(first - (np.cumsum(many) - many), many) + np.arange(int(many.sum()))

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
        self._check_regions(np.flatnonzero(needed & ~self.checked).tolist())

    def check_column(self, name: str) -> None:
        """Checks a whole column."""
        buffers = self.batch.column(self.batch.schema.get_field_index(name)).buffers()
        for buffer in buffers:
            if buffer is not None and buffer.size:
                self._check_spans(buffer, np.array([0]), np.array([buffer.size]))

    def whole(self) -> pa.RecordBatch:
        """All of it, checked."""
        self._check_regions(np.flatnonzero(~self.checked).tolist())
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

    def _check_regions(self, regions: Iterable[int]) -> None:
        """Checks regions; those that are not on this machine are fetched first."""
        open_ = [region for region in regions if not self.checked[region]]
        if self.copy is not None:
            missing = [region for region in open_ if not self._is_intact(region)]
            fetch(self.name, self.copy, [(r * REGION, min((r + 1) * REGION, self.data.size)) for r in missing])
        for region in open_:
            self._check(region)

    def _is_intact(self, region: int) -> bool:
        part = memoryview(self.data)[region * REGION : (region + 1) * REGION]
        return bool(zlib.crc32(part) == self.crcs[region])

    def _check(self, region: int) -> None:
        if not self._is_intact(region):
            self.discard()
            raise StateError(
                f"state file {self.name} is damaged between bytes {region * REGION} and {(region + 1) * REGION}"
            )
        self.checked[region] = True


def _block(rows: int, blocks: int) -> int:
    """How many rows of a file stand between two hashes of its index, which earlier versions made larger: a power of two.

    >>> _block(10_000_000, 1221), _block(10_000_000, 4883), _block(5, 1)
    (8192, 2048, 8)
    """
    return 1 << (-(-rows // max(1, blocks)) - 1).bit_length() if rows else BLOCK


def _within(mine: IntArray, hashes: IntArray, low: IntArray, size: int) -> IntArray:
    """The first row of each block on that is not below the hash sought; only its block is looked at."""
    last = len(mine) - 1
    high = np.minimum(low + size, last + 1)
    while (open_ := low < high).any():
        middle = (low + high) >> 1
        below = open_ & (mine[np.minimum(middle, last)] < hashes)
        low, high = np.where(below, middle + 1, low), np.where(open_ & ~below, middle, high)
    return low


def open_file(storage: Storage, file: StateFile) -> OpenFile:
    """A file that stays open for the next batch, which is safe because files never change and no two have the same name."""
    name = _identity(storage, file)
    if name in _OPEN:
        _OPEN.move_to_end(name)
        _touch(storage, _OPEN[name])
        return _OPEN[name]
    made = _OPEN[name] = map_file(storage, file)
    while len(_OPEN) > _OPEN_MOST:
        _OPEN.popitem(last=False)
    return made


def close_removed() -> None:
    """Lets go of files that have been removed, so that their space is free."""
    for name in [n for n, file in _OPEN.items() if file.path is not None and not file.path.exists()]:
        del _OPEN[name]


def _identity(storage: Storage, file: StateFile) -> str:
    """What tells a file from all others that this process may open."""
    if isinstance(storage, CachedStorage):
        return str(storage.copy_of(file.path))
    return str(storage.local_path(file.path) or file.path)


def _touch(storage: Storage, file: OpenFile) -> None:
    """Notes that the copy of a file is used, so that others make room first."""
    if isinstance(storage, CachedStorage) and file.path is not None:
        with suppress(OSError):
            os.utime(file.path)


def map_file(storage: Storage, file: StateFile) -> OpenFile:
    """A file: mapped into memory where the storage has it on this machine, else read as a whole. It must be as its manifest says.

    Of one that a store has, and this machine has no copy of, the regions are fetched that are asked for.
    """
    if isinstance(storage, CachedStorage):
        copy = storage.complete(file.path)
        return _partial_file(storage, file) if copy is None else _copied_file(storage, file, copy)
    path = storage.local_path(file.path)
    name = file.path if path is None else str(path)
    made = _opened(name, file, _read(name, lambda: storage.read(file.path) if path is None else _mapped(path)))
    made.path = path
    return made


def _copied_file(storage: CachedStorage, file: StateFile, copy: Path) -> OpenFile:
    """A file of which all is on this machine; a copy that is damaged is discarded."""
    discard = partial(storage.discard, file.path)
    try:
        made = _opened(file.path, file, _read(file.path, lambda: _mapped(copy)), discard=discard)
    except StateError:
        discard()
        raise
    made.path = copy
    return made


def _partial_file(storage: CachedStorage, file: StateFile) -> OpenFile:
    """A file of which regions are fetched when they are asked for; one that is small as a whole."""
    copy, discard = storage.partial(file.path, file.size), partial(storage.discard, file.path)
    try:
        made = _opened(file.path, file, pa.py_buffer(copy.data), copy, discard)
    except StateError:  # its ends are not here yet, or not as they should be
        try:
            fetch(file.path, copy, _ends(file))
            made = _opened(file.path, file, pa.py_buffer(copy.data), copy, discard)
        except StateError:
            discard()
            raise
    made.path = copy.path
    return made


def _ends(file: StateFile) -> list[Span]:
    """What is read of a file first: its footer with the region before it, and the first region."""
    if file.size <= SMALL:
        return [(0, file.size)]
    most = 12 * (file.size // REGION + 1) + 22 * (file.rows // BLOCK + 1) + 128  # checksums and hashes as text
    return [(0, REGION), ((file.size - most - 1) // REGION * REGION, file.size)]


def _opened(
    name: str,
    file: StateFile,
    data: pa.Buffer,
    copy: PartialCopy | None = None,
    discard: Callable[[], None] = _nothing,
) -> OpenFile:
    if data.size != file.size:
        raise StateError(f"state file {name} is damaged: {file.size} bytes were written, {data.size} are there")
    return OpenFile(name, data, _footer(name, file, memoryview(data)), copy, discard)


def _read(name: str, read: Callable[[], mmap.mmap | bytes]) -> pa.Buffer:
    try:
        return pa.py_buffer(read())
    except (OSError, StorageError) as error:
        raise _unreadable(name, error) from None


def fetch(name: str, copy: PartialCopy, spans: list[Span]) -> None:
    """Fetches parts of a file that are not on this machine.

    Raises:
        StateError: They cannot be read, or not be kept.
    """
    try:
        copy.fetch(spans)
    except (OSError, StorageError) as error:
        raise _unreadable(name, error) from None


def _unreadable(name: str, error: Exception) -> StateError:
    said = error.strerror if isinstance(error, OSError) else str(error)
    return StateError(f"state file {name} cannot be read ({said}); restore it, or start afresh with --fresh")


def _mapped(path: Path) -> mmap.mmap | bytes:
    with path.open("rb") as handle:
        empty = not os.fstat(handle.fileno()).st_size
        return b"" if empty else mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ)


def _footer(name: str, file: StateFile, view: memoryview) -> Any:
    length, crc, magic = _TAIL.unpack(view[-_TAIL.size :]) if len(view) >= _TAIL.size else (0, 0, b"")
    text = bytes(view[-_TAIL.size - length : -_TAIL.size]) if length < len(view) else b""
    why = f"its end does not carry the checksum {file.crc:08x} of the manifest"
    if magic == _MAGIC and crc == file.crc and zlib.crc32(text) == crc:
        made, why = json.loads(text), "a part of it is missing, or there twice"
        if made["data"] + length + _TAIL.size == file.size:
            return made
    raise StateError(f"state file {name} is damaged: {why}")
