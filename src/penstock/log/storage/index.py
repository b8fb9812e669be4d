"""The sparse index of a segment: from offset or time to a byte position.

An entry stands for about 64 KiB of data. The index is only a hint: an entry is used after the batch it points at was read
and found to be the one it names, so a stale, torn or missing index costs time, never truth.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from penstock.log.storage.batch import HEADER_SIZE, BadBatch, Header, read_header
from penstock.log.storage.files import File, unlink

INTERVAL = 64 * 1024
_ENTRY = struct.Struct("<QQqI")
_SIZE = _ENTRY.size + 4
NEVER = -(1 << 63)


class Entry(NamedTuple):
    """The batch with this header checksum is at `position`; all before it are older than or as old as `newest_before`."""

    offset: int
    position: int
    newest_before: int
    header_crc: int


class Indexer:
    """Follows the batches of a segment and says which of them get an entry."""

    def __init__(self) -> None:
        self._last = 0
        self.newest = NEVER

    def note(self, position: int, header: Header, header_crc: int) -> Entry | None:
        """Take notice of a batch; its entry if it gets one."""
        entry = None
        if position - self._last >= INTERVAL:
            entry = Entry(header.base, position, self.newest, header_crc)
            self._last = position
        if header.records:
            self.newest = max(self.newest, header.max_time)
        return entry


def append(path: Path, entries: list[Entry]) -> None:
    """Add entries at the end of an index file; not synced, as it can be rebuilt."""
    raw = b"".join(_pack(e) for e in entries)
    with File(path, write=True, create=True) as file:
        size = file.size()
        file.write([raw], size - size % _SIZE)


def rewrite(path: Path, entries: list[Entry]) -> None:
    """Replace an index file."""
    unlink(path)
    if entries:
        append(path, entries)


def _pack(entry: Entry) -> bytes:
    raw = _ENTRY.pack(*entry)
    return raw + zlib.crc32(raw).to_bytes(4, "little")


def load(path: Path) -> list[Entry]:
    """The entries of an index file up to the first that is damaged or out of order."""
    try:
        raw = path.read_bytes()
    except OSError:
        return []
    entries: list[Entry] = []
    for at in range(0, len(raw) - _SIZE + 1, _SIZE):
        entry = Entry(*_ENTRY.unpack_from(raw, at))
        end = at + _ENTRY.size
        if zlib.crc32(raw[at:end]) != int.from_bytes(raw[end : end + 4], "little"):
            break
        if entries and entry.position <= entries[-1].position:
            break
        entries.append(entry)
    return entries


def header_at(file: File, position: int, tag: int) -> Header:
    """The header at a position of a segment, or `BadBatch`."""
    return read_header(file.read(HEADER_SIZE, position), 0, tag)


def hints(path: Path, file: File, tag: int, limit: int) -> Iterator[Entry]:
    """The entries that the data confirms, last first."""
    for entry in reversed(load(path)):
        if entry.position >= limit:
            continue
        try:
            header = header_at(file, entry.position, tag)
        except BadBatch:
            continue
        if header.base == entry.offset and header.header_crc == entry.header_crc:
            yield entry
