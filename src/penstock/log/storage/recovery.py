"""What happens when a partition is opened for writing: its last segment is read and checked to the last byte.

Bytes that nobody was promised (a torn write of a process that died) are cut off. Bytes below what was acknowledged are never
touched: when they are bad, the range is put on record and readers that reach it get an error. Offsets are never used twice.
"""

from __future__ import annotations

import mmap
from contextlib import suppress
from dataclasses import dataclass, field

from penstock.log.errors import Damage, LogError
from penstock.log.produce.sequences import Sequences
from penstock.log.storage import index, quarantine
from penstock.log.storage.batch import BadBatch, Header
from penstock.log.storage.files import File, read_json, sync_dir, write_json
from penstock.log.storage.position import Mark, PartitionDirectory
from penstock.log.storage.segment import scan, walk


@dataclass
class Tail:
    """Where the next batch goes, and what is known about the segment it goes to."""

    base: int
    position: int
    end: int
    sequences: Sequences
    indexer: index.Indexer = field(default_factory=index.Indexer)

    @property
    def mark(self) -> Mark:
        """The committed mark that belongs to this tail."""
        return Mark(self.end, self.base, self.position)


def recover(directory: PartitionDirectory, mark: Mark | None) -> Tail:
    """Check the last segment, repair its tail, and say where to go on; the caller holds the append lock."""
    bases = directory.bases()
    promised = max(mark.end if mark else 0, directory.start())
    if not bases:
        if mark and mark.end > directory.start():
            _report(
                directory,
                directory.start(),
                mark.end,
                directory.segment(mark.base),
                (0, 0),
                "the segment file is missing",
            )
        return new_segment(directory, promised, Sequences())
    return _recover_last(directory, bases, max(promised, bases[-1]))


def _recover_last(directory: PartitionDirectory, bases: list[int], promised: int) -> Tail:
    base = bases[-1]
    with File(directory.segment(base), write=True) as file:
        size = file.size()
        found = list(scan(mmap.mmap(file.fd, size, access=mmap.ACCESS_READ), base, directory.tag)) if size else []
        promised = max([promised, *(h.stable for _, h in found)])
        kept = _keep(directory, base, found, promised)
        position, end = (kept[-1][0] + kept[-1][1].size, kept[-1][1].end) if kept else (0, base)
        if end >= promised and size > position:
            file.truncate(position)
        file.sync()
    tail = Tail(base, position, end, sequences_at(directory, bases))
    _follow(directory, tail, kept)
    if end >= promised:
        return tail
    reason = "the end of the segment is missing" if size == position else "the last batches are damaged"
    _report(directory, end, promised, directory.segment(base), (position, size), reason)
    return new_segment(directory, promised, tail.sequences)


def _keep(
    directory: PartitionDirectory, base: int, found: list[tuple[int, Header]], promised: int
) -> list[tuple[int, Header]]:
    """The batches to keep: all up to the first gap in what nobody was promised; gaps before that are damage."""
    position, end = 0, base
    for number, (at, header) in enumerate(found):
        if at != position or header.base != end:
            if end >= promised:
                return found[:number]
            _report(directory, end, header.base, directory.segment(base), (position, at), "a checksum is wrong")
        position, end = at + header.size, header.end
    return found


def _follow(directory: PartitionDirectory, tail: Tail, kept: list[tuple[int, Header]]) -> None:
    """Bring producers and index up to date with the batches of the segment."""
    entries = []
    for at, header in kept:
        tail.sequences.note(header)
        if (entry := tail.indexer.note(at, header, header.header_crc)) is not None:
            entries.append(entry)
    if entries != index.load(directory.index(tail.base)):
        index.rewrite(directory.index(tail.base), entries)


def _report(
    directory: PartitionDirectory, first: int, after: int, file: object, span: tuple[int, int], reason: str
) -> None:
    quarantine.record(directory, Damage(directory.topic, directory.partition, first, after, str(file), *span, reason))


def sequences_at(directory: PartitionDirectory, bases: list[int]) -> Sequences:
    """What producers had written before the last segment: from its snapshot, else from all earlier headers."""
    with suppress(LogError):
        data = read_json(directory.snapshot(bases[-1]))
        if data is not None:
            return Sequences.from_json(data)
    found = Sequences()
    for base in bases[:-1]:
        with suppress(BadBatch), File(directory.segment(base)) as file:
            for _, header in walk(file, 0, file.size(), directory.tag):
                found.note(header)
    return found


def new_segment(directory: PartitionDirectory, base: int, sequences: Sequences) -> Tail:
    """Begin a segment; its name is durable before anything is written to it."""
    write_json(directory.snapshot(base), sequences.as_json())
    File(directory.segment(base), write=True, create=True).close()
    sync_dir(directory.path)
    return Tail(base, 0, base, sequences)
