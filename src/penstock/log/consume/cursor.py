"""Reading a partition: a position in it that moves forward, batch by batch.

A cursor never blocks a writer and never reads beyond the committed mark. It keeps its own file open, so that retention and
compaction, which replace or delete files, do not disturb it. Every checksum is checked, and every batch must begin where
the one before ended: what is missing or damaged is raised, never passed over.
"""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable

from penstock.log.errors import Damage, LogDamaged, LogError, OffsetOutOfRange
from penstock.log.storage import quarantine
from penstock.log.storage.batch import HEADER_SIZE, BadBatch, Batch, read_batch, read_header
from penstock.log.storage.files import File
from penstock.log.storage.position import Mark, PartitionDirectory
from penstock.log.storage.segment import find, resync

_TRIES = 5


class Cursor:
    """Reads on from an offset; `mark` returns the committed mark of the moment."""

    def __init__(self, directory: PartitionDirectory, mark: Callable[[], Mark], offset: int) -> None:
        self.directory = directory
        self.offset = offset
        self._mark = mark
        self._file: File | None = None
        self._base = self._position = self._chain = 0

    def seek(self, offset: int) -> None:
        """Read on from another offset."""
        if offset != self.offset:
            self.close()
            self.offset = offset

    def close(self) -> None:
        """Close the file; the next fetch opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def fetch(self, max_bytes: int) -> list[Batch]:
        """The next batches, about `max_bytes` of them but at least one; none at the end of the log.

        A batch may begin before the offset that is next; its `since` says so.
        """
        mark = self.check()
        batches: list[Batch] = []
        while max_bytes > 0 and self.offset < mark.end:
            try:
                found, size = self._next(mark, max_bytes)
            except LogError:
                if batches:
                    break
                raise
            batches += found
            max_bytes -= size
        return batches

    def _next(self, mark: Mark, max_bytes: int) -> tuple[list[Batch], int]:
        """Batches from the open segment or the one after it, and their bytes.

        Stray bytes between two batches that follow each other hold no record: they are put on record, but stop nobody.
        """
        limit = self._open(mark)
        try:
            return self._read(min(max_bytes, limit - self._position), limit)
        except BadBatch as bad:
            error = self._damaged(mark, limit, str(bad))
            if error.damage.next == error.damage.first:
                return [], 0
            raise error from None

    def check(self) -> Mark:
        """Refuse an offset that is not written yet; the committed mark."""
        mark = self._mark()
        if not 0 <= self.offset <= mark.end:
            raise self._outside(mark)
        return mark

    def _outside(self, mark: Mark) -> OffsetOutOfRange:
        return OffsetOutOfRange(
            self.directory.topic, self.directory.partition, self.offset, self.directory.start(), mark.end
        )

    def _limit(self, mark: Mark) -> int:
        """Up to where the open segment may be read."""
        assert self._file is not None
        return mark.position if self._base == mark.base else self._file.size()

    def _open(self, mark: Mark) -> int:
        """Make sure that a segment is open and has something to read; its limit."""
        if self._file is not None and self._position < (limit := self._limit(mark)):
            return limit
        for attempt in range(_TRIES):
            if self._locate(mark):
                return self._limit(mark)
            time.sleep(0.002 * attempt)
        raise self._missing(mark)

    def _locate(self, mark: Mark) -> bool:
        """Open the segment that has the offset; False when there is none (or it is being replaced just now)."""
        self.close()
        bases = self.directory.bases()
        if self.offset < self.directory.start():
            raise self._outside(mark)
        number = bisect_right(bases, self.offset) - 1
        if number < 0:
            return False
        try:
            self._file = File(self.directory.segment(bases[number]))
        except FileNotFoundError:
            return False
        self._base = bases[number]
        limit = self._limit(mark)
        self._position, self._chain = find(self.directory, self._base, self._file, self.offset, limit)
        return self._position < limit

    def _read(self, size: int, limit: int) -> tuple[list[Batch], int]:
        """Batches from one read, and their bytes; `BadBatch` when the first is bad."""
        assert self._file is not None
        data = self._file.read(max(size, min(HEADER_SIZE, limit - self._position)), self._position)
        whole = read_header(data, 0, self.directory.tag).size
        if whole > len(data):
            if self._position + whole > limit:
                raise BadBatch("the body is cut short")
            data = self._file.read(whole, self._position)
        batches: list[Batch] = []
        at = 0
        while at < len(data):
            try:
                batch = read_batch(data, at, self.directory.tag, self._position, self.offset)
                self._follow(batch)
            except BadBatch:
                if at:
                    break
                raise
            if batch.header.records and batch.header.end > self.offset:
                batches.append(batch)
            self.offset = max(self.offset, batch.header.end)
            at += batch.header.size
        return batches, at

    def _follow(self, batch: Batch) -> None:
        if batch.header.base != self._chain:
            raise BadBatch(f"a batch of offset {self._chain} must follow, but {batch.header.base} does")
        self._chain = batch.header.end
        self._position += batch.header.size

    def _damaged(self, mark: Mark, limit: int, reason: str) -> LogDamaged:
        """The error for bad bytes at the position, with how far they reach."""
        assert self._file is not None
        data = self._file.read(limit - self._position, self._position)
        found = self._next_whole(data)
        if found is not None:
            until, after = self._position + found[0], found[1]
        else:
            until, after = limit, self._next_base(mark)
        return self._raise(after, until, reason)

    def _next_whole(self, data: bytes) -> tuple[int, int] | None:
        """The next batch that is complete: the one at the position itself when only its offset is wrong."""
        try:
            header = read_batch(data, 0, self.directory.tag, 0).header
            if header.base > self._chain:
                return 0, header.base
        except BadBatch:
            pass
        found = resync(data, 0, self.directory.tag, self._chain)
        return None if found is None else (found[0], found[1].base)

    def _next_base(self, mark: Mark) -> int:
        later = [b for b in self.directory.bases() if b > self._chain]
        return min([mark.end, *later[:1]])

    def _missing(self, mark: Mark) -> LogDamaged:
        """The error for offsets that no segment has."""
        if self._file is None:
            self._base = self._chain = self.offset
            self._position = 0
        return self._raise(self._next_base(mark), self._position, "the segment is cut short or its file is missing")

    def _raise(self, after: int, until: int, reason: str) -> LogDamaged:
        file = str(self.directory.segment(self._base))
        damage = Damage(
            self.directory.topic, self.directory.partition, self._chain, after, file, self._position, until, reason
        )
        quarantine.record(self.directory, damage)
        self.close()
        return LogDamaged(damage)
