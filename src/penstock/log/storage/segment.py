"""Segment files: walking over their batches, finding an offset, and finding the next complete batch after damage."""

from __future__ import annotations

import mmap
from collections.abc import Iterator

from penstock.log.storage import index
from penstock.log.storage.batch import HEADER_SIZE, MAGIC, BadBatch, Header, read_batch, read_header
from penstock.log.storage.files import File
from penstock.log.storage.position import PartitionDirectory

_CHUNK = 64 * 1024

Buffer = bytes | mmap.mmap


def walk(file: File, position: int, limit: int, tag: int) -> Iterator[tuple[int, Header]]:
    """Position and header of each batch from `position` to `limit`; `BadBatch` at the first that is none."""
    chunk, start = b"", position
    while position < limit:
        if position - start + HEADER_SIZE > len(chunk):
            chunk, start = file.read(min(_CHUNK, limit - position), position), position
        header = read_header(chunk, position - start, tag)
        if position + header.size > limit:
            raise BadBatch("the body is cut short")
        yield position, header
        position += header.size


def resync(data: Buffer, at: int, tag: int, floor: int) -> tuple[int, Header] | None:
    """The next complete batch after the bad one at `at`, with a base of at least `floor`."""
    view = memoryview(data)
    try:
        at += max(read_header(view, at, tag).size, 8)
    except BadBatch:
        at += 1
    else:
        if (found := _whole(view, at, tag, floor)) is not None:
            return at, found
    while (at := data.find(MAGIC, at)) >= 0:
        if (found := _whole(view, at, tag, floor)) is not None:
            return at, found
        at += 1
    return None


def _whole(view: memoryview, at: int, tag: int, floor: int) -> Header | None:
    try:
        header = read_batch(view, at, tag, at).header
    except BadBatch:
        return None
    return header if header.base >= floor else None


def scan(data: Buffer, base: int, tag: int) -> Iterator[tuple[int, Header]]:
    """Position and header of every batch whose checksums are right, in order; what lies between is damaged."""
    view = memoryview(data)
    at, end = 0, base
    while at < len(view):
        try:
            header = read_batch(view, at, tag, at).header
            if header.base < end:
                raise BadBatch("the offsets go back")
        except BadBatch:
            found = resync(data, at, tag, end)
            if found is None:
                return
            at, header = found
        yield at, header
        at, end = at + header.size, header.end


def find(directory: PartitionDirectory, base: int, file: File, offset: int, limit: int) -> tuple[int, int]:
    """Where to read from for `offset`: a position, and the offset that must begin there.

    Points at the batch that holds the offset, at bad bytes that may have held it, or at `limit`.
    """
    position, chain = 0, base
    for entry in index.hints(directory.index(base), file, directory.tag, limit):
        if entry.offset <= offset:
            position, chain = entry.position, entry.offset
            break
    while True:
        try:
            for at, header in walk(file, position, limit, directory.tag):
                if header.end > offset or (header.base != chain and header.base > offset):
                    return at, chain if header.base > offset else header.base
                position, chain = at + header.size, header.end
            return position, chain
        except BadBatch:
            found = resync(file.read(limit - position, position), 0, directory.tag, chain)
            if found is None or found[1].base > offset:
                return position, chain
            position, chain = position + found[0], found[1].base
