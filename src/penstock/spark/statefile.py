"""A file of state: the keys of some key groups with their values, sorted by place, never changed once written.

It is one Arrow record batch (`place`, `key`, `value`; no value means the key is gone) in the IPC format, so that a
worker maps it into memory and reads only what it looks up. Behind it stand a checksum for each region of the file and a
footer that holds them; a region is checked when it is first touched.
"""

from __future__ import annotations

import json
import mmap
import os
import struct
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import StateError

SCHEMA = pa.schema(
    [pa.field("place", pa.int64()), pa.field("key", pa.large_binary()), pa.field("value", pa.large_binary())]
)
REGION = 1 << 20
_MAGIC = b"penstock-state-2"
_TAIL = struct.Struct("<II16s")
_OPEN: OrderedDict[str, OpenFile] = OrderedDict()
_OPEN_MOST = 256


@dataclass(frozen=True)
class StateFile:
    """A file as a manifest names it: where, how large, the checksum of its footer, its rows, and the key groups
    (as bits) for which it still counts.
    """

    path: str
    size: int
    crc: int
    rows: int
    groups: int

    def holds(self, groups: int) -> bool:
        """Whether it counts for any of these groups."""
        return bool(self.groups & groups)


def sorted_table(places: Any, keys: Any, values: Any) -> pa.RecordBatch:
    """A batch of entries, sorted by place."""
    batch = pa.record_batch(
        [pa.array(places, pa.int64()), pa.array(keys, pa.large_binary()), pa.array(values, pa.large_binary())],
        schema=SCHEMA,
    )
    return batch.take(pc.sort_indices(batch.column(0)))


def write_file(path: Path, batch: pa.RecordBatch) -> tuple[int, int]:
    """Writes a batch beside its final name, makes it safe, and renames it; gives its size and checksum."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, SCHEMA) as writer:
        writer.write_batch(batch)
    data = sink.getvalue()
    view = memoryview(data)
    crcs = [zlib.crc32(view[at : at + REGION]) for at in range(0, len(view), REGION)]
    footer = json.dumps({"data": len(view), "crcs": crcs}).encode()
    crc = zlib.crc32(footer)
    put_safely(path, [view, footer, _TAIL.pack(len(footer), crc, _MAGIC)])
    return len(view) + len(footer) + _TAIL.size, crc


def put_safely(path: Path, parts: Iterable[Any]) -> None:
    """Writes a file so that it is there whole or not at all, also after a power cut."""
    path.parent.mkdir(parents=True, exist_ok=True)
    aside = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    with aside.open("wb") as file:
        for part in parts:
            file.write(part)
        file.flush()
        os.fsync(file.fileno())
    aside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


@dataclass
class OpenFile:
    """A file mapped into memory."""

    name: str
    data: Any
    crcs: list[int]
    batch: pa.RecordBatch
    checked: set[int] = field(default_factory=set)

    @property
    def places(self) -> Any:
        """The places, sorted; a view into the file."""
        return self.batch.column(0).to_numpy(zero_copy_only=True)

    def lookup(self, places: Any) -> Iterator[tuple[int, bytes, bytes | None]]:
        """The entries at these places, which must be sorted. Keys that share a hash share a place."""
        for column in range(3):
            self._check_column(column)
        mine = self.places
        first, behind = np.searchsorted(mine, places, "left"), np.searchsorted(mine, places, "right")
        hit = behind > first
        rows = first[hit]
        more = behind[hit] - rows > 1
        if more.any():
            rows = np.concatenate([np.arange(a, b) for a, b in zip(first[hit], behind[hit], strict=True)])
        part = self.batch.take(pa.array(rows))
        yield from zip(*(c.to_pylist() for c in part.columns), strict=True)

    def whole(self) -> pa.RecordBatch:
        """All of it, checked."""
        for at in range(len(self.crcs)):
            self._check(at)
        return self.batch

    def _check_column(self, at: int) -> None:
        for buffer in self.batch.column(at).buffers():
            if buffer is not None and buffer.size:
                begin = buffer.address - self.data.address
                for region in range(begin // REGION, (begin + buffer.size - 1) // REGION + 1):
                    self._check(region)

    def _check(self, region: int) -> None:
        if region in self.checked:
            return
        part = memoryview(self.data)[region * REGION : (region + 1) * REGION]
        if zlib.crc32(part) != self.crcs[region]:
            raise StateError(
                f"state file {self.name} is damaged between bytes {region * REGION} and {(region + 1) * REGION}"
            )
        self.checked.add(region)


def open_file(base: Path, file: StateFile) -> OpenFile:
    """A file, mapped; kept open for the next batch, which is safe because files never change."""
    name = str(base / file.path)
    if name in _OPEN:
        _OPEN.move_to_end(name)
        return _OPEN[name]
    made = _OPEN[name] = map_file(name, file)
    while len(_OPEN) > _OPEN_MOST:
        _OPEN.popitem(last=False)
    return made


def close_removed() -> None:
    """Lets go of files that have been removed, so that their space is free."""
    for name in [n for n in _OPEN if not Path(n).exists()]:
        del _OPEN[name]


def map_file(name: str, file: StateFile) -> OpenFile:
    """A file, mapped into memory; what the manifest says of it must hold."""
    try:
        with Path(name).open("rb") as handle:
            size = os.fstat(handle.fileno()).st_size
            if size != file.size:
                raise StateError(f"state file {name} is damaged: {file.size} bytes were written, {size} are there")
            data = pa.py_buffer(mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise StateError(
            f"state file {name} cannot be read ({error.strerror}); restore it, or start afresh with --fresh"
        ) from None
    footer = _footer(name, file, memoryview(data))
    body = data.slice(0, footer["data"])
    return OpenFile(name, body, footer["crcs"], _batch(name, body, footer["crcs"]))


def _footer(name: str, file: StateFile, view: memoryview) -> Any:
    length, crc, magic = _TAIL.unpack(view[-_TAIL.size :])
    text = bytes(view[-_TAIL.size - length : -_TAIL.size]) if length < len(view) else b""
    if magic != _MAGIC or crc != file.crc or zlib.crc32(text) != crc:
        raise StateError(
            f"state file {name} is damaged: its end does not carry the checksum {file.crc:08x} of the manifest"
        )
    return json.loads(text)


def _batch(name: str, body: pa.Buffer, crcs: list[int]) -> pa.RecordBatch:
    """The record batch. Its own metadata stand in the first and last regions, which are checked first."""
    for region in {0, len(crcs) - 1}:
        if zlib.crc32(memoryview(body)[region * REGION : (region + 1) * REGION]) != crcs[region]:
            raise StateError(
                f"state file {name} is damaged between bytes {region * REGION} and {(region + 1) * REGION}"
            )
    return pa.ipc.open_file(pa.BufferReader(body)).get_batch(0)
