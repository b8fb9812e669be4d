"""A partition: an ordered run of records, appended at one end and read from anywhere."""

from __future__ import annotations

import threading
from collections.abc import Iterator

from penstock.log.consume.cursor import Cursor
from penstock.log.errors import UnknownTopic
from penstock.log.produce.writer import Writer
from penstock.log.record import Record
from penstock.log.storage import index
from penstock.log.storage.batch import BadBatch, Batch, Header, offsets_of, read_batch, times_of
from penstock.log.storage.files import File
from penstock.log.storage.position import Mark, MarkFile, PartitionDirectory
from penstock.log.storage.segment import walk

_CHUNK = 4 << 20


class Partition:
    """One partition of a topic, for reading and writing."""

    def __init__(self, directory: PartitionDirectory, segment_bytes: int) -> None:
        self.directory = directory
        self.writer = Writer(directory, segment_bytes)
        self._marks: MarkFile | None = None
        self._lock = threading.Lock()

    def mark(self) -> Mark:
        """How far the partition is committed."""
        marks = self._marks or self._open_marks()
        if marks.gone():
            raise UnknownTopic(f"topic {self.directory.topic!r} has been deleted")
        mark = marks.read()
        while mark is None:
            self.writer.recover()
            mark = marks.read()
        return mark

    def _open_marks(self) -> MarkFile:
        """The mark file; a tail that a dead writer or a power loss left behind is repaired on the way."""
        with self._lock:
            if self._marks is None:
                if not self._clean_tail():
                    self._repair()
                self._marks = MarkFile(self.directory.path)
            return self._marks

    def _clean_tail(self) -> bool:
        try:
            marks = MarkFile(self.directory.path)
            mark, bases = marks.read(), self.directory.bases()
            marks.close()
            last = bases[-1] if bases else -1
            return mark is not None and mark.base == last and self._size(last) == mark.position
        except FileNotFoundError:
            return False

    def _repair(self) -> None:
        try:
            self.writer.recover(wait=not (self.directory.path / "committed").exists())
        except FileNotFoundError:
            raise UnknownTopic(f"topic {self.directory.topic!r} has been deleted") from None
        except PermissionError:
            pass

    def _size(self, base: int) -> int:
        return self.directory.segment(base).stat().st_size

    def start(self) -> int:
        """The first offset there is."""
        return self.directory.start()

    def end(self) -> int:
        """The offset the next record will get."""
        return self.mark().end

    def bytes(self) -> int:
        """The size of all segments."""
        return sum(p.stat().st_size for p in self.directory.path.glob("*.log"))

    def cursor(self, offset: int) -> Cursor:
        """A cursor that reads on from an offset."""
        return Cursor(self.directory, self.mark, offset)

    def batches(self, offset: int, end: int | None = None, max_bytes: int | None = None) -> Iterator[Batch]:
        """The batches from `offset` to `end` (or to where the log ends now), about `max_bytes` of them."""
        cursor = self.cursor(offset)
        now = cursor.check().end
        end = now if end is None else min(end, now)
        left = _CHUNK if max_bytes is None else max_bytes
        try:
            while cursor.offset < end and left > 0:
                for batch in cursor.fetch(min(left, _CHUNK)):
                    if batch.header.base >= end:
                        return
                    yield batch
                    left -= 0 if max_bytes is None else batch.header.size
        finally:
            cursor.close()

    def read(
        self, offset: int, end: int | None = None, max_records: int | None = None, max_bytes: int | None = None
    ) -> list[Record]:
        """The records from `offset` on."""
        records: list[Record] = []
        for batch in self.batches(offset, end, max_bytes):
            records += batch.records(self.directory.topic, self.directory.partition)
            if max_records is not None and len(records) >= max_records:
                break
        if end is not None:
            records = [r for r in records if r.offset < end]
        return records if max_records is None else records[:max_records]

    def offset_for_time(self, timestamp: int) -> int | None:
        """The first offset whose record is at least as new as `timestamp`; None when all are older."""
        mark = self.mark()
        for base in self.directory.bases():
            try:
                found = self._find_time(base, timestamp, mark)
            except FileNotFoundError:
                continue
            if found is not None:
                return found
        return None

    def _find_time(self, base: int, timestamp: int, mark: Mark) -> int | None:
        with File(self.directory.segment(base)) as file:
            limit = mark.position if base == mark.base else file.size()
            hints = index.hints(self.directory.index(base), file, self.directory.tag, limit)
            start = next((e for e in hints if e.newest_before < timestamp), index.Entry(base, 0, 0, 0))
            chain = start.offset
            try:
                for at, header in walk(file, start.position, limit, self.directory.tag):
                    if header.records and header.max_time >= timestamp:
                        found = self._first_since(file, at, header, timestamp)
                        if found is not None:
                            return found
                    chain = header.end
            except BadBatch:
                list(self.batches(chain))
                raise
        return None

    def _first_since(self, file: File, at: int, header: Header, timestamp: int) -> int | None:
        cols = read_batch(file.read(header.size, at), 0, self.directory.tag, at).columns()
        pairs = zip(offsets_of(cols, header.base), times_of(cols), strict=True)
        return next((offset for offset, time in pairs if time >= timestamp), None)

    def close(self) -> None:
        """Close the files."""
        self.writer.close()
        with self._lock:
            if self._marks is not None:
                self._marks.close()
                self._marks = None
