"""What one does with a Kafka cluster by hand: look at topics, make and delete them, put records in, read them."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.admin import Cluster, said
from penstock.connectors.kafka.settings import confluent
from penstock.errors import OptionError, RunError, SetupError, nearest

if TYPE_CHECKING:
    from concurrent.futures import Future

    from confluent_kafka import Consumer, KafkaError, Message, Producer

PATIENCE = 10.0


@dataclass(frozen=True)
class Record:
    """A record as it is shown."""

    partition: int
    offset: int
    time: str
    key: str | None
    value: str | None

    def as_json(self) -> str:
        """All of it, on one line."""
        return json.dumps(self.__dict__, ensure_ascii=False)


@dataclass(frozen=True)
class KafkaTools:
    """A cluster, and the settings of its client."""

    servers: str
    settings: dict[str, str]

    def topics(self) -> list[dict[str, Any]]:
        """Each topic with its partitions and its records, those of Kafka itself left out."""
        found = {name: parts for name, parts in self._found().items() if not name.startswith("__")}
        consumer = self._consumer()
        try:
            return [
                {
                    "topic": name,
                    "partitions": len(parts),
                    "offsets": sum(self._length(consumer, name, p) for p in parts),
                }
                for name, parts in sorted(found.items())
            ]
        finally:
            consumer.close()

    def create(self, topic: str, partitions: int = 1) -> None:
        """Makes a topic."""
        confluent()
        from confluent_kafka.admin import NewTopic

        cluster = self._cluster()  # its client must live until the answer is there
        self._done(cluster.admin.create_topics([NewTopic(topic, partitions, -1)])[topic], topic)

    def delete(self, topic: str) -> None:
        """Deletes a topic with all its records."""
        self._check(topic)
        cluster = self._cluster()
        self._done(cluster.admin.delete_topics([topic])[topic], topic)

    def produce(self, topic: str, lines: Iterable[bytes], separator: bytes = b"") -> int:
        """Puts a record for each line; with a separator a line is a key and a value. Returns how many are stored."""
        self._check(topic)
        kafka = confluent()
        failures: list[Any] = []
        settings = self._cluster().settings
        producer = kafka.Producer({**settings, "enable.idempotence": True})
        many = 0
        for line in lines:
            many += 1
            key, value = line.split(separator, 1) if separator and separator in line else (None, line)
            self._put(producer, topic, key, value, failures)
        left = producer.flush(PATIENCE * 3)
        if failures or left:
            reason = said(failures[0]) if failures else "the cluster did not answer in time"
            raise RunError(f"{len(failures) + left} of {many} records were not stored: {reason}")
        return many

    def _put(self, producer: Producer, topic: str, key: bytes | None, value: bytes, failures: list[Any]) -> None:
        def done(error: KafkaError | None, _: Message) -> None:
            if error is not None:
                failures.append(error)

        while True:
            try:
                producer.produce(topic, value, key, on_delivery=done)
                return
            except BufferError:  # its buffer is full: what is sent makes room
                producer.poll(0.5)

    def consume(self, topic: str, *, latest: bool = False, follow: bool = False) -> Iterator[Record]:
        """The records of a topic: those that are there, and with `follow` those that arrive."""
        kafka = confluent()
        partitions = self._check(topic)
        consumer = self._consumer()
        begin = kafka.OFFSET_END if latest else kafka.OFFSET_BEGINNING
        ends = {p: consumer.get_watermark_offsets(kafka.TopicPartition(topic, p), PATIENCE)[1] for p in partitions}
        waiting = {p for p in partitions if self._length(consumer, topic, p)} if not latest else set()
        consumer.assign([kafka.TopicPartition(topic, p, begin) for p in partitions])
        deadline = math.inf if follow else time.monotonic() + PATIENCE * 3
        try:
            while follow or waiting:
                message = consumer.poll(0.5)
                if message is None or message.error():
                    self._check_answer(topic, None if message is None else message.error(), deadline)
                    waiting -= self._read_to_end(consumer, topic, waiting, ends)
                    continue
                yield _record(message)
                deadline = max(deadline, time.monotonic() + PATIENCE * 3)
                waiting -= {message.partition()} if message.offset() + 1 >= ends[message.partition()] else set()
        finally:
            consumer.close()

    def _check_answer(self, topic: str, error: KafkaError | None, deadline: float) -> None:
        """Raises RunError when the cluster refuses to send records, or has not sent those that wait in time."""
        if error is not None and (error.fatal() or (error.code() > 0 and not error.retriable())):
            raise RunError(f"topic {topic!r} cannot be read: {said(error)}")
        if time.monotonic() > deadline:
            raise RunError(
                f"topic {topic!r} has more records, but {self.servers} has sent none for {PATIENCE * 3:g} s{f': {said(error)}' if error else ''}"
            )

    def _read_to_end(self, consumer: Consumer, topic: str, waiting: set[int], ends: dict[int, int]) -> set[int]:
        """Partitions that have nothing more, although their last offset was no record (a marker of a transaction)."""
        positions = consumer.position([confluent().TopicPartition(topic, p) for p in waiting])
        return {p.partition for p in positions if p.offset >= ends[p.partition]}

    def _length(self, consumer: Consumer, topic: str, partition: int) -> int:
        low, high = consumer.get_watermark_offsets(confluent().TopicPartition(topic, partition), PATIENCE)
        return int(high - low)

    def _cluster(self) -> Cluster:
        return Cluster(self.servers, self.settings)

    def _consumer(self) -> Consumer:
        settings = self._cluster().settings
        return confluent().Consumer({**settings, "group.id": "penstock-consume", "enable.auto.commit": False})

    def _found(self) -> dict[str, list[int]]:
        errors = confluent().KafkaException
        try:
            found = self._cluster().metadata(patience=PATIENCE).topics
        except errors as error:
            raise SetupError(
                f"the Kafka cluster at {self.servers} does not answer: {said(error)}; for one to develop with: penstock kafka start"
            ) from None
        return {name: sorted(topic.partitions) for name, topic in found.items() if topic.error is None}

    def _check(self, topic: str) -> list[int]:
        known = self._found()
        if topic not in known:
            raise OptionError(
                f"{self.servers} has no topic {topic!r}; {nearest(topic, known)}. Make it: penstock kafka topics --create {topic}"
            )
        return known[topic]

    def _done(self, future: Future[Any], topic: str) -> None:
        try:
            future.result(PATIENCE * 3)
        except confluent().KafkaException as error:
            raise OptionError(f"topic {topic!r}: {said(error)}") from None


def _record(message: Message) -> Record:
    moment = datetime.fromtimestamp(message.timestamp()[1] / 1000, UTC).isoformat(timespec="milliseconds")
    return Record(message.partition(), message.offset(), moment, _text(message.key()), _text(message.value()))


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="backslashreplace")
