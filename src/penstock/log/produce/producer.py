"""Producers: records in, acknowledged when they are on disk.

`send` collects records for up to `linger_ms` and a thread appends what has come together: one write and one fsync for all
that wait. `send_many` appends a batch at once. Every batch carries the producer's id, epoch and sequence number, so that one that
is sent again after a failure is stored once.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from itertools import count
from types import TracebackType
from typing import Self

from penstock.log.errors import BadRecord, LogClosed
from penstock.log.produce.buffer import Ack, HeaderList, PendingBatch, spread
from penstock.log.produce.identity import Identity
from penstock.log.produce.partitioner import partition_for
from penstock.log.record import AppendResult, TopicPartition
from penstock.log.storage.batch import Stamp, body_of
from penstock.log.storage.columns import Columns, columns
from penstock.log.topic import Topic, Topics


def now_ms() -> int:
    """The time of day in milliseconds."""
    return time.time_ns() // 1_000_000


class Producer:
    """Sends records to any topic of a log; safe to use from several threads."""

    def __init__(
        self, topics: Topics, identity: Identity, *, linger_ms: float, max_batch: int, max_bytes: int, buffer_bytes: int
    ) -> None:
        self._topics = topics
        self._identity = identity
        self._linger = linger_ms / 1000
        self._max_batch, self._max_bytes, self._buffer_bytes = max_batch, max_bytes, buffer_bytes
        self._pending: dict[TopicPartition, PendingBatch] = {}
        self._buffered = 0
        self._lock = threading.RLock()
        self._change = threading.Condition(self._lock)
        self._append_lock = threading.RLock()
        self._flush_wanted = self._closed = False
        self._thread: threading.Thread | None = None
        self._next: dict[TopicPartition, int] = {}
        self._turn = count(identity.producer)
        self._sticky: dict[str, int] = {}
        self._usual: dict[str, TopicPartition] = {}

    @property
    def epoch(self) -> int:
        """How many producers of this name there were before; 0 for one without a name."""
        return self._identity.epoch

    def send(
        self,
        topic: str,
        value: bytes | None,
        key: bytes | None = None,
        headers: HeaderList = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Ack:
        """Hand over a record; it is on disk when the answer's `result()` returns. Waits while the buffer is full."""
        tp = self._usual.get(topic) if key is None and partition is None and value.__class__ is bytes else None
        if tp is None:
            tp = self._choose_partition(topic, value, key, partition)
        size = 16 + (len(value) if value is not None else 0) + (len(key) if key is not None else 0)
        moment = time.time_ns() // 1_000_000 if timestamp is None else timestamp
        with self._lock:
            if self._closed or self._buffered >= self._buffer_bytes:
                self._wait_for_room()
            batch = self._pending.get(tp)
            fresh = batch is None
            if batch is None:
                batch = self._pending[tp] = PendingBatch(time.monotonic() + self._linger)
            ack = batch.add(value, key, headers, moment, size)
            self._buffered += size
            if fresh or len(batch.values) == self._max_batch or batch.size >= self._max_bytes:
                self._start()
                self._change.notify_all()
            return ack

    def _choose_partition(
        self, topic: str, value: bytes | None, key: bytes | None, partition: int | None
    ) -> TopicPartition:
        """Where a record goes, if it may; the partition of records without a key stays until what waits is on disk."""
        found = self._topics.get(topic)
        for item in (value, key):
            if item is not None and not isinstance(item, bytes):
                raise BadRecord(
                    f"keys and values are bytes or None, not {type(item).__name__}: {item!r:.60}; encode it first"
                )
        check_keys(found, key is not None)
        tp = TopicPartition(topic, self._choose(found, key, partition))
        if key is None and partition is None:
            self._usual[topic] = tp
        return tp

    def _wait_for_room(self) -> None:
        self._change.wait_for(lambda: self._closed or self._buffered < self._buffer_bytes)
        self._check_open()

    def send_many(
        self,
        topic: str,
        values: Sequence[bytes | None],
        keys: Sequence[bytes | None] | None = None,
        headers: Sequence[HeaderList] | None = None,
        timestamps: int | Sequence[int] | None = None,
        partition: int | None = None,
        sequence: int | None = None,
    ) -> list[AppendResult]:
        """Append records at once; on disk on return. What goes to one partition is one batch: all of it or nothing.

        Without keys all go to one partition. `sequence` numbers the first record among all this producer sends to the
        partition: a batch with a number that was written already is recognised and not written again.
        """
        self._check_open()
        self.flush()
        found = self._topics.get(topic)
        check_keys(found, keys is not None and None not in keys)
        times = now_ms() if timestamps is None else timestamps
        cols = columns(values, keys, headers, times)
        if partition is not None or keys is None or len(found.partitions) == 1:
            number = self._choose(found, None, partition)
            self._sticky.pop(topic, None)
            self._usual.pop(topic, None)
            return [self._append(TopicPartition(topic, number), cols, sequence)] if values else []
        if sequence is not None:
            raise BadRecord("a sequence number counts the records of one partition; give `partition` with it")
        shares = spread(len(found.partitions), self._choose(found, None, None), values, keys, headers, times)
        return [self._append(TopicPartition(topic, n), share, None) for n, share in shares]

    def last_sequence(self, topic: str, partition: int = 0) -> int:
        """The number of the last record this producer, or one of its name before it, wrote to a partition; -1 when none."""
        with self._append_lock:
            return self._sequence(self._topics.get(topic), TopicPartition(topic, partition)) - 1

    def flush(self, timeout: float | None = None) -> None:
        """Wait until all that was sent is on disk or has failed; failures stand in the acks."""
        with self._change:
            pending = list(self._pending.values())
            self._flush_wanted = bool(pending)
            self._change.notify_all()
        with self._append_lock:
            pass
        for batch in pending:
            if not batch.done.wait(timeout):
                raise TimeoutError(f"records were not on disk within {timeout} s")

    def close(self) -> None:
        """Flush and stop; again does nothing."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        if self._thread is not None:
            self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise LogClosed("the producer is closed; make a new one")

    def _full(self, batch: PendingBatch) -> bool:
        return len(batch.values) >= self._max_batch or batch.size >= self._max_bytes

    def _choose(self, topic: Topic, key: bytes | None, partition: int | None) -> int:
        partitions = len(topic.partitions)
        if partition is not None:
            topic.partition(partition)
            return partition
        if key is not None:
            return partition_for(key, partitions)
        if topic.name not in self._sticky:
            self._sticky[topic.name] = next(self._turn)
        return self._sticky[topic.name] % partitions

    def _start(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="penstock-log-producer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while True:
            with self._change:
                while not self._due():
                    self._change.wait(self._patience())
                if not self._pending and self._closed:
                    return
                self._append_lock.acquire()
                pending, self._pending = self._pending, {}
                self._flush_wanted = False
                self._sticky.clear()
                self._usual.clear()
            try:
                for tp, batch in pending.items():
                    self._deliver(tp, batch)
            finally:
                self._append_lock.release()

    def _due(self) -> bool:
        if self._closed or self._flush_wanted:
            return True
        now = time.monotonic()
        return any(p.due <= now or self._full(p) for p in self._pending.values())

    def _patience(self) -> float | None:
        if not self._pending:
            return None
        return max(min(p.due for p in self._pending.values()) - time.monotonic(), 0)

    def _deliver(self, tp: TopicPartition, batch: PendingBatch) -> None:
        try:
            batch.settle(self._append(tp, batch.columns(), None))
        except BaseException as error:
            batch.settle(None, error)
        with self._change:
            self._buffered -= batch.size
            self._change.notify_all()

    def _append(self, tp: TopicPartition, cols: Columns, sequence: int | None) -> AppendResult:
        body = body_of(cols)
        with self._append_lock:
            topic = self._topics.get(tp.topic)
            known = self._sequence(topic, tp)
            first = known if sequence is None else sequence
            stamp = Stamp(self._identity.producer, self._identity.epoch, first)
            self._next.pop(tp, None)
            done = topic.partition(tp.partition).writer.append(body, stamp, self._identity.check)
            self._next[tp] = max(known, first + cols.count)
            return done

    def _sequence(self, topic: Topic, tp: TopicPartition) -> int:
        """The number of the next record; a named producer takes the partition from those before it first."""
        if tp not in self._next:
            writer = topic.partition(tp.partition).writer
            if self._identity.path is None:
                self._next[tp] = writer.last_sequence(self._identity.producer) + 1
            else:
                stamp = Stamp(self._identity.producer, self._identity.epoch)
                self._next[tp] = writer.claim(stamp, self._identity.check) + 1
        return self._next[tp]


def check_keys(topic: Topic, keyed: bool) -> None:
    """Refuse records without a key on a compacted topic."""
    if topic.config.cleanup == "compact" and not keyed:
        raise BadRecord(
            f"topic {topic.name!r} is compacted, so every record needs a key; give one, or use cleanup='delete'"
        )
