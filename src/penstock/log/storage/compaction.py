"""Compaction: of each key the last record stays, at the offset it has; what it replaces goes.

Closed segments are written under another name and renamed; small neighbours become one. Batches keep following each
other without a gap in offsets, with records missing inside. A damaged segment is left as it is, and tombstones
are then kept, as what they delete may still be there.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.log.partition import Partition
from penstock.log.record import Record
from penstock.log.storage import index
from penstock.log.storage.batch import BadBatch, Batch, Body, body_of, header_of, pack_header, read_batch
from penstock.log.storage.columns import columns
from penstock.log.storage.files import File, FileLock, rename, sync_dir, unlink
from penstock.log.storage.position import PartitionDirectory
from penstock.log.storage.segment import walk
from penstock.log.topic import TopicConfig

_BATCH_RECORDS = 10_000
_BATCH_BYTES = 1 << 20
_SPAN = (1 << 31) - 1
_HOLE = Body(b"", 0, 0, 0, 0, 0)


@dataclass(frozen=True)
class _Rules:
    """Which records stay."""

    latest: dict[bytes, int]
    tombstones_before: int

    def keeps(self, record: Record, written: int) -> bool:
        if record.key is None:
            return True
        if self.latest.get(record.key, record.offset) != record.offset:
            return False
        return record.value is not None or min(record.timestamp, written) >= self.tombstones_before


@dataclass
class _Output:
    """A segment that is being written: records come in, batches go out."""

    directory: PartitionDirectory
    file: File
    position: int = 0
    start: int = 0
    kept: list[Record] = field(default_factory=list)
    size: int = 0
    indexer: index.Indexer = field(default_factory=index.Indexer)
    entries: list[index.Entry] = field(default_factory=list)

    def add(self, records: list[Record], end: int) -> None:
        """Take the records that stay of a batch that ended at `end`."""
        if end - self.start > _SPAN:
            self.flush(records[0].offset if records else end)
        self.kept += records
        self.size += sum(len(r.value or b"") + len(r.key or b"") for r in records)
        if len(self.kept) >= _BATCH_RECORDS or self.size >= _BATCH_BYTES:
            self.flush(end)

    def flush(self, end: int) -> None:
        """Write what was collected as one batch that stands for all offsets up to `end`."""
        if end == self.start:
            return
        body = self._body()
        header = header_of(body, self.start, stable=self.start, tag=self.directory.tag)._replace(span=end - self.start)
        raw = pack_header(header)
        entry = self.indexer.note(self.position, header, int.from_bytes(raw[4:8], "little"))
        if entry is not None:
            self.entries.append(entry)
        self.position = self.file.write([raw, body.data], self.position)
        self.start, self.kept, self.size = end, [], 0

    def _body(self) -> Body:
        rows = self.kept
        if not rows:
            return _HOLE
        deltas = [r.offset - self.start for r in rows]
        return body_of(
            columns(
                [r.value for r in rows],
                [r.key for r in rows],
                [r.headers for r in rows],
                [r.timestamp for r in rows],
                deltas,
            )
        )


def _batches(directory: PartitionDirectory, base: int) -> Iterator[Batch]:
    """The batches of a closed segment, checked; `BadBatch` at the first that is damaged."""
    with File(directory.segment(base)) as file:
        for at, header in walk(file, 0, file.size(), directory.tag):
            yield read_batch(file.read(header.size, at), 0, directory.tag, at)


def _written(directory: PartitionDirectory, base: int) -> int:
    return directory.segment(base).stat().st_mtime_ns // 1_000_000


def compact(partition: Partition, config: TopicConfig, now_ms: int) -> int:
    """Compact all closed segments; how many records went."""
    directory = partition.directory
    partition.writer.roll()
    with FileLock(directory.clean_lock):
        for left in directory.path.glob("*.log.new"):
            unlink(left)
        _drop_leftovers(directory)
        closed = directory.bases()[:-1]
        latest, damaged = _survey(directory, closed)
        horizon = -(1 << 62) if damaged else now_ms - config.tombstone_ms
        rules = _Rules(latest, horizon)
        groups = _groups(directory, closed, damaged, rules, config.segment_bytes)
        for group in groups:
            _rewrite(directory, [measure.base for measure in group], rules)
        return sum(measure.goes for group in groups for measure in group)


def _drop_leftovers(directory: PartitionDirectory) -> None:
    """Segments that a rewrite before a crash has already taken into the one before them."""
    end = -1
    for base in directory.bases()[:-1]:
        if base < end:
            directory.drop(base)
            sync_dir(directory.path)
            continue
        try:
            with File(directory.segment(base)) as file:
                end = max([base, *(h.end for _, h in walk(file, 0, file.size(), directory.tag))])
        except BadBatch:
            end = -1


def _survey(directory: PartitionDirectory, bases: list[int]) -> tuple[dict[bytes, int], set[int]]:
    """The last offset of each key, and the segments that are damaged."""
    latest: dict[bytes, int] = {}
    damaged: set[int] = set()
    for base in bases:
        try:
            for batch in _batches(directory, base):
                for record in batch.records(directory.topic, directory.partition):
                    if record.key is not None:
                        latest[record.key] = record.offset
        except BadBatch:
            damaged.add(base)
    return latest, damaged


@dataclass(frozen=True)
class _Measure:
    """A closed segment: the bytes that will stay, and how many records go."""

    base: int
    stays: int
    goes: int


def _measure(directory: PartitionDirectory, base: int, rules: _Rules) -> _Measure:
    stays = goes = 0
    written = _written(directory, base)
    for batch in _batches(directory, base):
        for record in batch.records(directory.topic, directory.partition):
            if rules.keeps(record, written):
                stays += len(record.value or b"") + len(record.key or b"") + 24
            else:
                goes += 1
    return _Measure(base, stays, goes)


def _groups(
    directory: PartitionDirectory, closed: list[int], damaged: set[int], rules: _Rules, room: int
) -> list[list[_Measure]]:
    """Neighbours whose rest fits one segment; a damaged one ends a group and is in none."""
    groups: list[list[_Measure]] = [[]]
    for base in closed:
        if base in damaged:
            groups.append([])
            continue
        measure = _measure(directory, base, rules)
        if groups[-1] and sum(m.stays for m in groups[-1]) + measure.stays > room:
            groups.append([])
        groups[-1].append(measure)
    return [group for group in groups if len(group) > 1 or any(m.goes for m in group)]


def _rewrite(directory: PartitionDirectory, group: list[int], rules: _Rules) -> None:
    """Write the records of a group that stay to one segment."""
    beside = Path(f"{directory.segment(group[0])}.new")
    newest = max(_written(directory, base) for base in group) * 1_000_000
    with File(beside, write=True, create=True, truncate=True) as file:
        out = _Output(directory, file, start=group[0])
        end = group[0]
        for base in group:
            written = _written(directory, base)
            for batch in _batches(directory, base):
                end = batch.header.end
                out.add(
                    [r for r in batch.records(directory.topic, directory.partition) if rules.keeps(r, written)], end
                )
        out.flush(end)
        file.sync()
    os.utime(beside, ns=(newest, newest))
    _swap(directory, group, beside, out.entries)


def _swap(directory: PartitionDirectory, group: list[int], beside: Path, entries: list[index.Entry]) -> None:
    """Put the new segment instead of the old; readers have the old file open or find the new one."""
    rename(beside, directory.segment(group[0]))
    index.rewrite(directory.index(group[0]), entries)
    for base in group[1:]:
        directory.drop(base)
    sync_dir(directory.path)
