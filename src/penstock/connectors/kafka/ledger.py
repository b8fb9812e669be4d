"""The ledger of Kafka sinks: a compacted topic of one partition, with the last line of every sink and lineage.

A line is written in the transaction that shows its batch, so it is there if and only if the batch is. Reading must come to the
end of the topic, past transactions of other flows that are still open: a line of ours may stand after them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from penstock.connectors.delivery import Entry
from penstock.connectors.kafka.admin import PATIENCE, Cluster, is_passing, patiently, said
from penstock.connectors.kafka.settings import confluent
from penstock.errors import DeliveryError, SetupError

if TYPE_CHECKING:
    from confluent_kafka import Message

OPEN_LONGEST = 90.0
"""How long to wait for transactions of others that stand before the end, in seconds: longer than any of Penstock's lasts."""
_CONFIG = {
    "cleanup.policy": "compact",
    "retention.ms": "-1",
    "segment.ms": "600000",
    "min.cleanable.dirty.ratio": "0.1",
}


class KafkaLedger:
    """The lines of one sink and lineage, which `name` stands for."""

    def __init__(self, cluster: Cluster, topic: str, name: str) -> None:
        self.cluster, self.topic, self.name = cluster, topic, name
        self._consumer: Any = None
        self._position = 0
        self._entry: Entry | None = None

    def make(self) -> None:
        """Makes the topic if it is not there; one that is there must be compacted and have one partition."""
        ensure_topic(self.cluster, self.topic, partitions=1, config=_CONFIG)
        from confluent_kafka.admin import ConfigResource, ResourceType

        resource = ConfigResource(ResourceType.TOPIC, self.topic)

        def ask() -> Any:
            return self.cluster.admin.describe_configs([resource], request_timeout=PATIENCE)[resource].result()

        found = patiently(ask)
        partitions = self.cluster.topics().get(self.topic, [0])
        if found["cleanup.policy"].value != "compact" or len(partitions) != 1:
            raise SetupError(
                f"the topic {self.topic!r} of the ledger must be compacted and have one partition; it has cleanup.policy="
                f"{found['cleanup.policy'].value} and {len(partitions)} partitions. Name another with write_kafka(ledger=...)"
            )

    def last(self) -> Entry | None:
        """The last line that is committed. Only what was there when this was called is sure to be seen."""
        end = self._end()
        deadline = time.monotonic() + OPEN_LONGEST
        with self._reading() as reader:
            while self._position < end:
                if time.monotonic() > deadline:
                    raise DeliveryError(
                        f"the ledger {self.topic!r} cannot be read to its end: for {OPEN_LONGEST:g} s a transaction of another writer has "
                        f"been open in it"
                    )
                self._take(reader.poll(0.2))
        return self._entry

    def _take(self, message: Message) -> None:
        if message is None:
            return
        kafka = confluent()
        error = message.error()
        if error is not None and error.code() == kafka.KafkaError._PARTITION_EOF:
            self._position = max(self._position, message.offset())
        elif error is not None and not is_passing(error):
            raise DeliveryError(f"the ledger {self.topic!r} cannot be read: {error.str()}")
        elif error is None:
            self._position = message.offset() + 1
            if message.key() == self.name.encode():
                self._entry = Entry.from_json(message.value())

    def _end(self) -> int:
        """The end of the topic, open transactions included."""
        kafka = confluent()
        from confluent_kafka.admin import OffsetSpec

        partition = kafka.TopicPartition(self.topic, 0)

        def ask() -> int:
            uncommitted = kafka.IsolationLevel.READ_UNCOMMITTED
            asked = self.cluster.admin.list_offsets(
                {partition: OffsetSpec.latest()}, isolation_level=uncommitted, request_timeout=PATIENCE
            )
            return int(asked[partition].result().offset)

        try:
            return patiently(ask)
        except kafka.KafkaException as error:
            raise DeliveryError(f"the ledger {self.topic!r} cannot be read: {said(error)}") from None

    @contextmanager
    def _reading(self) -> Iterator[Any]:
        """A reader of our partition. It asks often and gives the partition up afterwards: between batches it does not ask at all.

        Where its place is gone it begins anew: the default is to go on at the end, past lines that were not read.
        """
        kafka = confluent()
        if self._consumer is None:
            own = {"group.id": "penstock-ledger", "enable.auto.commit": False, "isolation.level": "read_committed"}
            quick = {"enable.partition.eof": True, "fetch.wait.max.ms": 5, "auto.offset.reset": "earliest"}
            self._consumer = kafka.Consumer({**self.cluster.settings, **own, **quick})
        self._consumer.assign([kafka.TopicPartition(self.topic, 0, self._position)])
        try:
            yield self._consumer
        finally:
            self._consumer.unassign()

    def begin_anew(self) -> None:
        """Forgets what was read: the next `last` reads the topic from its beginning, with a new reader."""
        self.close()
        self._position, self._entry = 0, None

    def close(self) -> None:
        """Closes the reader."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


def ensure_topic(cluster: Cluster, topic: str, *, partitions: int = -1, config: dict[str, str] | None = None) -> None:
    """Makes a topic that is not there, with the broker's own number of partitions unless one is given."""
    kafka = confluent()
    from confluent_kafka.admin import NewTopic

    if topic in cluster.topics():
        return
    brokers = len(cluster.metadata().brokers)
    copies = min(3, brokers) if config is not None else -1
    whole = {**config, "min.insync.replicas": str(max(1, copies - 1))} if config is not None else {}
    try:
        cluster.admin.create_topics([NewTopic(topic, partitions, copies, config=whole)])[topic].result(PATIENCE)
    except kafka.KafkaException as error:
        if error.args[0].code() != kafka.KafkaError.TOPIC_ALREADY_EXISTS:
            raise SetupError(f"the topic {topic!r} is not there and could not be made: {said(error)}") from None
    deadline = time.monotonic() + PATIENCE
    while not cluster.has_leaders(topic) and time.monotonic() < deadline:
        time.sleep(0.05)
