"""The log: a directory with topics, which several processes write and read at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from penstock.log.consume.consumer import Consumer
from penstock.log.consume.groups import Groups
from penstock.log.consume.predicate import Predicate, predicate
from penstock.log.errors import Damage, LogDamaged, LogError, OffsetOutOfRange
from penstock.log.partition import Partition
from penstock.log.produce.identity import anonymous, register
from penstock.log.produce.producer import Producer, check_keys, now_ms
from penstock.log.record import AppendResult, Record, TopicPartition
from penstock.log.storage import quarantine
from penstock.log.storage.batch import body_of
from penstock.log.storage.compaction import compact
from penstock.log.storage.files import FileLock, make_dir, read_json, write_json
from penstock.log.storage.retention import expire
from penstock.log.topic import Topic, TopicConfig, Topics, config_with

if TYPE_CHECKING:
    import pyarrow as pa

_FORMAT = 1


@dataclass(frozen=True)
class PartitionInfo:
    """A partition: its first offset, the one after its last, and its size on disk."""

    partition: int
    start: int
    end: int
    bytes: int
    segments: int
    damage: tuple[Damage, ...]


@dataclass(frozen=True)
class TopicInfo:
    """A topic: its settings and its partitions."""

    name: str
    config: TopicConfig
    partitions: tuple[PartitionInfo, ...]


class Log:
    """A log in a directory, made when it is not there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, Log(folder) as log:
    ...     _ = log.create_topic("words")
    ...     with log.producer() as producer:
    ...         ack = producer.send("words", b"hello").result()
    ...     [(r.offset, r.value) for r in log.read("words", 0, 0)]
    [(0, b'hello')]
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        make_dir(self.path)
        self._check_format()
        self._topics = Topics(self.path / "topics", _expire_on_roll)
        self.groups = Groups(self.path / "groups", self._topics)
        self._producers: list[Producer] = []

    def _check_format(self) -> None:
        path = self.path / "penstock-log.json"
        with FileLock(self.path / ".lock"):
            found = read_json(path)
            if found is None:
                write_json(path, {"format": _FORMAT})
            elif found["format"] != _FORMAT:
                raise LogError(f"{self.path} is a log of format {found['format']}; this version reads format {_FORMAT}")

    def create_topic(self, name: str, partitions: int = 1, **settings: Any) -> TopicInfo:
        """Create a topic; `settings` are those of `TopicConfig`."""
        self._topics.create(name, config_with(TopicConfig(partitions), settings))
        return self.describe(name)

    def configure_topic(self, name: str, **settings: Any) -> TopicInfo:
        """Change settings of a topic; not the number of partitions."""
        self._topics.configure(name, settings)
        return self.describe(name)

    def delete_topic(self, name: str) -> None:
        """Delete a topic with all its records."""
        self._topics.delete(name)

    def topics(self) -> list[str]:
        """The names of all topics, sorted."""
        return self._topics.names()

    def describe(self, topic: str) -> TopicInfo:
        """Settings, offsets and sizes of a topic."""
        found = self._topics.get(topic)
        return TopicInfo(topic, found.config, tuple(_describe(p) for p in found.partitions))

    def producer(
        self,
        name: str | None = None,
        *,
        linger_ms: float = 2.0,
        max_batch: int = 10_000,
        max_bytes: int = 4 << 20,
        buffer_bytes: int = 64 << 20,
    ) -> Producer:
        """A producer; one with a name takes over from the one of that name before it, which may not write any more."""
        identity = anonymous() if name is None else register(self.path / "producers", name)
        producer = Producer(
            self._topics,
            identity,
            linger_ms=linger_ms,
            max_batch=max_batch,
            max_bytes=max_bytes,
            buffer_bytes=buffer_bytes,
        )
        self._producers.append(producer)
        return producer

    def consumer(
        self,
        group: str | None = None,
        topics: str | Sequence[str] = (),
        *,
        from_: str | None = None,
        where: str | Predicate | None = None,
        assignment: Iterable[tuple[str, int]] | None = None,
        on_revoke: Callable[[list[TopicPartition]], None] | None = None,
    ) -> Consumer:
        """A consumer of topics, or of the partitions in `assignment`.

        With a group it begins where the group committed (else at the earliest), shares the partitions with the group's other
        members, and can commit. `where` lets only matching records through: a text (see `predicate`) or a function.
        """
        partitions = None if assignment is None else [TopicPartition(*p) for p in assignment]
        names = [topics] if isinstance(topics, str) else list(topics) or sorted({p.topic for p in partitions or ()})
        if not names:
            raise LogError("a consumer needs topics or an assignment of partitions; neither was given")
        start = from_ or ("earliest" if group is None else "committed")
        wants = None if where is None else predicate(where)
        return Consumer(
            self._topics,
            self.groups,
            group,
            names,
            from_=start,
            where=wants,
            assignment=partitions,
            on_revoke=on_revoke,
        )

    def read(
        self, topic: str, partition: int, offset: int, max_records: int | None = None, max_bytes: int | None = None
    ) -> list[Record]:
        """The records from `offset` on, up to the end or the limits (`max_bytes` is rounded up to complete batches)."""
        return self._partition(topic, partition).read(offset, None, max_records, max_bytes)

    def read_arrow(
        self, topic: str, partition: int, offset: int, end: int | None = None, max_bytes: int | None = None
    ) -> pa.Table:
        """The records from `offset` to `end` as a table: partition, offset, timestamp, key, value, headers."""
        from penstock.log import arrow  # it loads pyarrow

        batches = self._partition(topic, partition).batches(offset, end, max_bytes)
        return arrow.table(batches, topic, partition, end)

    def append_arrow(self, topic: str, partition: int, data: pa.Table | pa.RecordBatch) -> AppendResult:
        """Append a table with `value` and perhaps `key`, `timestamp`, `headers` as one batch: all of it or nothing."""
        from penstock.log import arrow  # it loads pyarrow

        cols = arrow.columns_of(data, now_ms())
        check_keys(self._topics.get(topic), cols.keys is not None and cols.keys.validity is None)
        return self._partition(topic, partition).writer.append(body_of(cols))

    def offsets(self, topic: str) -> dict[int, tuple[int, int]]:
        """The first offset and the one after the last, of each partition."""
        return {p.directory.partition: (p.start(), p.end()) for p in self._topics.get(topic).partitions}

    def offsets_for_time(self, topic: str, timestamp: int) -> dict[int, int | None]:
        """The first offset at least as new as `timestamp` (ms) in each partition; None where all are older."""
        return {p.directory.partition: p.offset_for_time(timestamp) for p in self._topics.get(topic).partitions}

    def clean(self, topic: str | None = None, now: int | None = None) -> int:
        """Apply retention and compaction now; how many segments (deleted) and records (compacted) went."""
        gone = 0
        for found in self._chosen(topic):
            for partition in found.partitions:
                at = now_ms() if now is None else now
                if found.config.cleanup == "compact":
                    gone += compact(partition, found.config, at)
                else:
                    gone += len(expire(partition, found.config, at))
        return gone

    def verify(self, topic: str | None = None) -> list[Damage]:
        """Read every byte and check every checksum; all damage there is."""
        return [d for found in self._chosen(topic) for p in found.partitions for d in _verify(p)]

    def damage(self, topic: str, partition: int = 0) -> list[Damage]:
        """The damage on record for a partition."""
        return quarantine.damage_of(self._partition(topic, partition).directory)

    def skips(self, topic: str, partition: int = 0) -> list[quarantine.Skip]:
        """Who went on after damage, and when."""
        return quarantine.skips_of(self._partition(topic, partition).directory)

    def skip_damage(self, topic: str, partition: int, offset: int, by: str = "log.skip_damage") -> int:
        """The offset after the damage at `offset`; the skip is put on record. Each reader decides for itself."""
        found = self._partition(topic, partition)
        try:
            found.cursor(offset).fetch(1)
        except LogDamaged as error:
            quarantine.record_skip(found.directory, error.damage, by)
            return error.damage.next
        raise LogError(f"there is no damage at offset {offset} of {topic}-{partition}; nothing was skipped")

    def close(self) -> None:
        """Flush the producers and close the files."""
        for producer in self._producers:
            producer.close()
        self._producers.clear()
        self._topics.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()

    def _partition(self, topic: str, partition: int) -> Partition:
        return self._topics.get(topic).partition(partition)

    def _chosen(self, topic: str | None) -> list[Topic]:
        return [self._topics.get(name) for name in (self.topics() if topic is None else [topic])]


def _expire_on_roll(topic: Topic) -> None:
    """Let a writer that begins a new segment delete the oldest, as far as retention says."""
    for partition in topic.partitions:
        partition.writer.on_roll = partial(_expire, partition, topic.config)


def _expire(partition: Partition, config: TopicConfig) -> None:
    expire(partition, config, now_ms(), roll=False)


def _describe(partition: Partition) -> PartitionInfo:
    directory = partition.directory
    damage = tuple(quarantine.damage_of(directory))
    return PartitionInfo(
        directory.partition, partition.start(), partition.end(), partition.bytes(), len(directory.bases()), damage
    )


def _verify(partition: Partition) -> list[Damage]:
    found: list[Damage] = []
    offset, end = partition.start(), partition.end()
    while offset < end:
        try:
            for batch in partition.batches(offset, end):
                offset = batch.header.end
            break
        except LogDamaged as error:
            offset = offset + 1 if error.damage in found else error.damage.next
            found.append(error.damage)
        except OffsetOutOfRange:
            if partition.start() <= offset:
                raise
            offset = partition.start()
    return found
