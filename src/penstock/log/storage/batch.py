"""Record batches: what one append writes, and what is whole or not there.

A batch is a header of 88 bytes and a body of columns (see `columns`). Two checksums guard it: one over the header
(so that its length can be trusted before the body is read) and one over the body. Batches follow each other
without a gap: each begins at the offset where the one before ended, so that a missing one is noticed too.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from itertools import repeat
from typing import NamedTuple

from penstock.log.record import Headers, Record
from penstock.log.storage.columns import CONTROL, Binary, Columns, numbers_of, pack, split, unpack, unpack_headers

MAGIC = b"PSL1"
_LAYOUT = struct.Struct("<4sIIIQQIIqqiIqqII")
_CHECKED = _LAYOUT.size - 8
HEADER_SIZE = _LAYOUT.size


class BadBatch(Exception):
    """Bytes that are not a complete batch; for use inside the log."""


class Header(NamedTuple):
    """The header of a batch.

    `stable` is the end offset that was durable when this batch was written: it tells a torn write, which nobody was
    promised, from damage to records that were acknowledged. `span` is how many offsets the batch stands for and
    `records` how many are left (compaction makes it smaller). `produced` is what its producer counted.
    """

    magic: bytes
    header_crc: int
    body_crc: int
    length: int
    base: int
    stable: int
    span: int
    records: int
    producer: int
    sequence: int
    epoch: int
    produced: int
    min_time: int
    max_time: int
    tag: int
    flags: int

    @property
    def end(self) -> int:
        """The offset after the batch."""
        return self.base + self.span

    @property
    def size(self) -> int:
        """Bytes of header and body."""
        return HEADER_SIZE + self.length


class Stamp(NamedTuple):
    """Who wrote a batch: producer id, epoch, and the number of its first record among all the producer sent here."""

    producer: int = -1
    epoch: int = 0
    sequence: int = -1


NOBODY = Stamp()


@dataclass(frozen=True, slots=True)
class Body:
    """A body that is ready to be written; the header follows when its offset is known."""

    data: bytes
    crc: int
    count: int
    flags: int
    min_time: int
    max_time: int


def body_of(cols: Columns) -> Body:
    """Encode the columns; done before any lock is taken."""
    data, flags = pack(cols)
    return Body(data, zlib.crc32(data), cols.count, flags, cols.min_time, cols.max_time)


EMPTY = Body(b"", 0, 0, CONTROL, 0, 0)


def header_of(body: Body, base: int, *, stable: int, tag: int, stamp: Stamp = NOBODY) -> Header:
    """The header of a fresh batch that begins at `base`."""
    return Header(
        MAGIC, 0, body.crc, len(body.data), base, stable, body.count, body.count, stamp.producer, stamp.sequence,
        stamp.epoch, body.count, body.min_time, body.max_time, tag, body.flags,
    )  # fmt: skip


def pack_header(header: Header) -> bytes:
    """The header's bytes, with its checksum."""
    raw = _LAYOUT.pack(*header)
    return b"%b%b%b" % (MAGIC, zlib.crc32(raw[8:]).to_bytes(4, "little"), raw[8:])


def read_header(buffer: bytes | memoryview, at: int, tag: int) -> Header:
    """The header at a position of a buffer, or `BadBatch`."""
    if len(buffer) - at < HEADER_SIZE:
        raise BadBatch("the header is cut short")
    header = Header._make(_LAYOUT.unpack_from(buffer, at))
    if header.magic != MAGIC:
        raise BadBatch("no batch begins here")
    if zlib.crc32(buffer[at + 8 : at + HEADER_SIZE]) != header.header_crc:
        raise BadBatch("the header's checksum is wrong")
    if header.tag != tag:
        raise BadBatch("the batch belongs to another partition")
    return header


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that was read and found whole; `position` is where it begins in the file.

    Records below offset `since` are not wanted: a reader has them already, or began after them.
    """

    header: Header
    body: memoryview
    position: int
    since: int = 0

    def columns(self) -> Columns:
        """The records, column by column, without a copy."""
        h = self.header
        if not h.records:
            return Columns(0, Binary(bytes(4), b""), None, None, None, h.min_time, h.max_time)
        return unpack(self.body, h.flags, h.records, h.min_time, h.max_time)

    def records(self, topic: str, partition: int) -> list[Record]:
        """The records that are wanted."""
        cols = self.columns()
        head = repeat(topic, cols.count), repeat(partition, cols.count)
        rows = list(
            map(
                Record,
                *head,
                offsets_of(cols, self.header.base),
                times_of(cols),
                keys_of(cols),
                values_of(cols),
                headers_of(cols),
            )
        )
        return rows if self.header.base >= self.since else [r for r in rows if r.offset >= self.since]


def read_batch(buffer: bytes | memoryview, at: int, tag: int, position: int, since: int = 0) -> Batch:
    """The complete batch at a position of a buffer that begins `position - at` bytes into the file, or `BadBatch`."""
    header = read_header(buffer, at, tag)
    end = at + header.size
    if end > len(buffer):
        raise BadBatch("the body is cut short")
    body = memoryview(buffer)[at + HEADER_SIZE : end]
    if zlib.crc32(body) != header.body_crc:
        raise BadBatch("the body's checksum is wrong")
    return Batch(header, body, position, since)


def offsets_of(cols: Columns, base: int) -> list[int]:
    """The offset of each record."""
    if cols.deltas is None:
        return list(range(base, base + cols.count))
    return [base + d for d in numbers_of("i", cols.deltas)]


def times_of(cols: Columns) -> list[int]:
    """The timestamp of each record."""
    return [cols.min_time] * cols.count if cols.times is None else numbers_of("q", cols.times)


def values_of(cols: Columns) -> list[bytes | None]:
    """The value of each record."""
    return split(cols.values, cols.count)


def keys_of(cols: Columns) -> list[bytes | None]:
    """The key of each record."""
    return [None] * cols.count if cols.keys is None else split(cols.keys, cols.count)


def headers_of(cols: Columns) -> list[Headers]:
    """The headers of each record."""
    if cols.headers is None:
        return [()] * cols.count
    return [unpack_headers(raw or b"") for raw in split(cols.headers, cols.count)]
