"""Appending to a partition: one writer at a time between processes, one fsync for all that wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from penstock.log.errors import LogClosed, UnknownTopic
from penstock.log.record import AppendResult
from penstock.log.storage import index
from penstock.log.storage.batch import EMPTY, NOBODY, BadBatch, Body, Header, Stamp, header_of, pack_header
from penstock.log.storage.files import File, FileLock
from penstock.log.storage.position import MarkFile, PartitionDirectory
from penstock.log.storage.recovery import Tail, new_segment, recover
from penstock.log.storage.segment import walk

Check = Callable[[], None]


@dataclass
class _Waiting:
    """A batch that waits for its commit."""

    body: Body
    stamp: Stamp
    check: Check | None
    done: bool = False
    result: AppendResult | None = None
    error: BaseException | None = None

    def settle(self, result: AppendResult | None, error: BaseException | None = None) -> None:
        self.result, self.error, self.done = result, error, True


class Writer:
    """Appends to one partition; any number of threads may call it, and any number of processes may have one."""

    def __init__(self, directory: PartitionDirectory, segment_bytes: int) -> None:
        self.directory = directory
        self.segment_bytes = segment_bytes
        self.on_roll: Callable[[], object] | None = None
        self._marks: MarkFile | None = None
        self._file: File | None = None
        self._tail: Tail | None = None
        self._queue: list[_Waiting] = []
        self._queue_lock = threading.Lock()
        self._commit_lock = threading.Lock()
        self._closed = False

    def append(self, body: Body, stamp: Stamp = NOBODY, check: Check | None = None) -> AppendResult:
        """Append a batch; on return it is on disk and readers see it, or an error says that it is not.

        `check` is called while the partition is locked, and may refuse.
        """
        waiting = _Waiting(body, stamp, check)
        with self._queue_lock:
            self._queue.append(waiting)
        with self._commit_lock:
            if not waiting.done:
                self._commit_queue()
        if waiting.error is not None:
            raise waiting.error
        assert waiting.result is not None
        return waiting.result

    def last_sequence(self, producer: int) -> int:
        """The last sequence number a producer has written here; -1 when none."""
        with self._commit_lock, self._locked() as tail:
            line = tail.sequences.line(producer)
            return -1 if line is None else line.last

    def claim(self, stamp: Stamp, check: Check | None = None) -> int:
        """Fence all older epochs of a producer from this partition; the last sequence number any of them wrote."""
        self.append(EMPTY, Stamp(stamp.producer, stamp.epoch, -1), check)
        return self.last_sequence(stamp.producer)

    def roll(self) -> None:
        """Begin a new segment, if the last one holds anything."""
        with self._commit_lock, self._locked() as tail:
            if tail.end > tail.base:
                self._roll(tail)

    def recover(self, *, wait: bool = True) -> bool:
        """Check the tail as an append would; False when `wait` is off and another holds the partition."""
        with self._commit_lock:
            lock = FileLock(self.directory.append_lock)
            if not lock.acquire(wait=wait):
                return False
            try:
                self._refresh()
                return True
            finally:
                lock.release()

    def close(self) -> None:
        """Close the files; what was acknowledged stays."""
        with self._commit_lock:
            self._closed = True
            self._forget()

    def _forget(self) -> None:
        for file in (self._file, self._marks):
            if file is not None:
                file.close()
        self._file = self._marks = self._tail = None

    @contextmanager
    def _locked(self) -> Iterator[Tail]:
        lock = FileLock(self.directory.append_lock)
        try:
            lock.acquire()
        except FileNotFoundError:
            self._forget()
            raise UnknownTopic(f"topic {self.directory.topic!r} has been deleted") from None
        try:
            yield self._refresh()
        finally:
            lock.release()

    def _refresh(self) -> Tail:
        """The tail as it is now, after what other processes have written; called with the lock held."""
        if self._closed:
            raise LogClosed("the log is closed; open it again")
        if self._marks is None:
            if not self.directory.alive():
                raise UnknownTopic(f"topic {self.directory.topic!r} has been deleted")
            self._marks = MarkFile(self.directory.path, write=True)
        if self._marks.gone():
            self._forget()
            raise UnknownTopic(f"topic {self.directory.topic!r} has been deleted")
        tail = self._tail
        if tail is None or not self._caught_up(tail):
            tail = self._reopen()
        return tail

    def _caught_up(self, tail: Tail) -> bool:
        """Whether the tail we know is the tail there is, after reading the headers others have added."""
        assert self._marks is not None
        mark = self._marks.read()
        if mark is None or self._file is None or mark.base != tail.base or self._file.size() != mark.position:
            return False
        if mark.position > tail.position:
            try:
                for at, header in walk(self._file, tail.position, mark.position, self.directory.tag):
                    tail.sequences.note(header)
                    tail.indexer.note(at, header, header.header_crc)
            except BadBatch:
                return False
            tail.position, tail.end = mark.position, mark.end
        return mark == tail.mark

    def _reopen(self) -> Tail:
        assert self._marks is not None
        mark = self._marks.read()
        tail = recover(self.directory, mark)
        if mark != tail.mark:
            self._marks.write(tail.mark)
        self._use(tail)
        return tail

    def _use(self, tail: Tail) -> None:
        if self._file is not None:
            self._file.close()
        self._file = File(self.directory.segment(tail.base), write=True)
        self._tail = tail

    def _roll(self, tail: Tail) -> Tail:
        fresh = new_segment(self.directory, tail.end, tail.sequences)
        self._use(fresh)
        assert self._marks is not None
        self._marks.write(fresh.mark)
        return fresh

    def _commit_queue(self) -> None:
        with self._queue_lock:
            group, self._queue = self._queue, []
        rolled = False
        try:
            with self._locked() as tail:
                if tail.position >= self.segment_bytes and tail.end > tail.base:
                    tail, rolled = self._roll(tail), True
                self._commit(tail, group)
        except BaseException as error:
            self._tail = None
            for waiting in group:
                if not waiting.done:
                    waiting.settle(None, error)
            if not isinstance(error, Exception):
                raise
        if rolled and self.on_roll is not None:
            with suppress(OSError):
                self.on_roll()

    def _commit(self, tail: Tail, group: list[_Waiting]) -> None:
        """Write the batches of the group, sync once, publish, and only then answer."""
        end = tail.end
        answers: list[tuple[_Waiting, AppendResult]] = []
        headers: list[tuple[Header, bytes]] = []
        parts: list[bytes] = []
        for waiting in group:
            answer = self._admit(tail, waiting, end)
            if isinstance(answer, Header):
                headers.append((answer, pack_header(answer)))
                parts += (headers[-1][1], waiting.body.data)
                end = answer.end
                answer = self._appended(answer.base, answer.records)
            if answer is not None:
                answers.append((waiting, answer))
        if headers:
            self._write(tail, end, parts)
            self._note(tail, headers)
            tail.end = end
        for waiting, appended in answers:
            waiting.settle(appended)

    def _admit(self, tail: Tail, waiting: _Waiting, base: int) -> Header | AppendResult | None:
        """The header for a batch that may go in; where it is when it is there already; None when it was refused."""
        try:
            if waiting.check is not None:
                waiting.check()
            known = tail.sequences.check(waiting.stamp, waiting.body.count)
        except Exception as error:
            waiting.settle(None, error)
            return None
        if known is not None:
            return self._appended(known.offset, known.records, duplicate=True)
        header = header_of(waiting.body, base, stable=tail.end, tag=self.directory.tag, stamp=waiting.stamp)
        tail.sequences.note(header)
        return header

    def _appended(self, offset: int, count: int, *, duplicate: bool = False) -> AppendResult:
        return AppendResult(self.directory.topic, self.directory.partition, offset, count, duplicate)

    def _write(self, tail: Tail, end: int, parts: list[bytes]) -> None:
        assert self._file is not None
        assert self._marks is not None
        try:
            after = self._file.write(parts, tail.position)
            self._file.sync()
            self._marks.write(tail.mark._replace(end=end, position=after))
        except OSError:
            with suppress(OSError):
                self._file.truncate(tail.position)
                self._file.sync()
            raise

    def _note(self, tail: Tail, headers: list[tuple[Header, bytes]]) -> None:
        entries = []
        for header, raw in headers:
            crc = int.from_bytes(raw[4:8], "little")
            if (entry := tail.indexer.note(tail.position, header, crc)) is not None:
                entries.append(entry)
            tail.position += header.size
        if entries:
            with suppress(OSError):
                index.append(self.directory.index(tail.base), entries)
