"""A real broker for the tests of Kafka, and a small client to look at it from outside."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

from penstock.connectors.kafka.admin import Cluster, is_passing, patiently
from penstock.jobs.broker import Broker
from penstock.jobs.ports import free_port
from tests.waiting import wait_until

PASSWORD = "kanarie-7f3a9"
_numbers = itertools.count()


@dataclass
class Kafka:
    """The broker as tests see it: its addresses, and ways to write and read without Penstock."""

    broker: Broker
    certificate: Path

    @property
    def servers(self) -> str:
        return self.broker.address

    def sasl(self, word: str = PASSWORD) -> dict[str, Any]:
        """Where the broker asks for a password, and the settings to give it."""
        client = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
        return {
            "servers": f"127.0.0.1:{self.broker.ports['SASL']}",
            "options": {**client, "sasl.username": "ada", "sasl.password": word},
        }

    def tls(self) -> dict[str, Any]:
        """Where the broker speaks TLS, and the settings to trust it."""
        client = {"security.protocol": "SSL", "ssl.ca.location": str(self.certificate)}
        return {"servers": f"localhost:{self.broker.ports['TLS']}", "options": client}

    def topic(self, partitions: int = 2, **config: str) -> str:
        """A new topic."""
        from confluent_kafka.admin import NewTopic

        name = f"topic-{next(_numbers)}-{time.time_ns():x}"
        made = NewTopic(name, partitions, 1, config={k.replace("_", "."): v for k, v in config.items()})
        self.admin.create_topics([made])[name].result(300)
        cluster = Cluster(self.servers, {})
        wait_until(lambda: cluster.has_leaders(name))
        return name

    @cached_property
    def admin(self) -> Any:
        from confluent_kafka.admin import AdminClient

        return AdminClient({"bootstrap.servers": self.servers, "log_level": 2})

    def producer(self, **settings: Any) -> Any:
        from confluent_kafka import Producer

        return Producer({"bootstrap.servers": self.servers, "log_level": 2, **settings})

    def send(self, topic: str, records: list[Any], **settings: Any) -> None:
        """Writes records: values, or (key, value), or (key, value, headers)."""
        producer = self.producer(**settings)
        for record in records:
            key, value, *rest = record if isinstance(record, tuple) else (None, record)
            producer.produce(topic, value, key, headers=rest[0] if rest else None)
        assert producer.flush(300) == 0
        producer.close()

    def read(self, topic: str, isolation: str = "read_committed") -> list[Any]:
        """All records of a topic, partition by partition."""
        reader = Reader(self.servers, topic, isolation)
        try:
            return reader.to_end()
        finally:
            reader.close()

    def values(self, topic: str) -> list[bytes]:
        return [m.value() for m in self.read(topic)]

    def lag(self, group: str, topic: str) -> int:
        """What kafka-consumer-groups shows: the ends of the partitions less what the group has committed."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
        from confluent_kafka.admin import OffsetSpec

        asked = self.admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)])
        committed = {(p.topic, p.partition): p.offset for p in asked[group].result().topic_partitions}
        places = [TopicPartition(topic, p) for t, p in committed if t == topic]
        assert places, f"group {group} has committed nothing for {topic}"
        ends = self.admin.list_offsets({p: OffsetSpec.latest() for p in places})
        return sum(ends[p].result().offset - committed[topic, p.partition] for p in places)


class Reader:
    """Reads a topic from its beginning; can be asked again for what came since."""

    def __init__(self, servers: str, topic: str, isolation: str = "read_committed") -> None:
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": servers, "group.id": "test", "isolation.level": isolation, "log_level": 2}
        self.consumer = Consumer({**settings, "enable.auto.commit": False, "enable.partition.eof": True})
        self.topic = topic
        partitions = self.consumer.list_topics(topic, timeout=300).topics[topic].partitions
        self.ends: dict[int, int] = dict.fromkeys(partitions, -1)
        self.consumer.assign([TopicPartition(topic, p, 0) for p in partitions])

    def to_end(self) -> list[Any]:
        """All up to the ends as they are now, in the order of partitions and offsets."""
        from confluent_kafka import TopicPartition

        def end_of(partition: int) -> int:
            place = TopicPartition(self.topic, partition)
            return int(patiently(lambda: self.consumer.get_watermark_offsets(place, timeout=300), 300)[1])

        wanted = {p: end_of(p) for p in self.ends}
        found: list[Any] = []
        while any(self.ends[p] < end and end > 0 for p, end in wanted.items()):
            found += [m for m in self.consumer.consume(10_000, 0.2) if self._is_record(m)]
        return sorted(found, key=lambda m: (m.partition(), m.offset()))

    def _is_record(self, message: Any) -> bool:
        from confluent_kafka import KafkaError

        if message.error() is None:
            self.ends[message.partition()] = message.offset() + 1
            return True
        if message.error().code() == KafkaError._PARTITION_EOF:
            self.ends[message.partition()] = max(self.ends[message.partition()], message.offset())
        else:
            assert is_passing(message.error()), message.error()
        return False

    def close(self) -> None:
        self.consumer.close()


@pytest.fixture(scope="session")
def kafka_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """One broker for the test run: plain, with passwords, and with TLS, each on a port of its own."""
    folder = tmp_path_factory.mktemp("kafka")
    certificate, store = _certificate(folder)
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    settings = {
        "listener.name.sasl.sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl.plain.sasl.jaas.config": f'{plain} user_ada="{PASSWORD}";',
        "listener.name.tls.ssl.keystore.type": "PEM",
        "listener.name.tls.ssl.keystore.location": str(store),
        "log.cleaner.backoff.ms": "500",
    }
    listeners = {"SASL": "SASL_PLAINTEXT", "TLS": "SSL"}
    hosts = {"advertised.listeners": ""}
    broker = Broker(folder / "broker", settings=settings, listeners=listeners)
    broker.port = free_port()
    broker.ports = {name: free_port() for name in ("CONTROLLER", *listeners)}
    hosts["advertised.listeners"] = (
        f"PLAINTEXT://{broker.address},SASL://127.0.0.1:{broker.ports['SASL']},TLS://localhost:{broker.ports['TLS']}"
    )
    broker.settings = {**settings, **hosts}
    with broker:
        made = Kafka(broker, certificate)
        made.topic()
        yield made


@pytest.fixture
def kafka(kafka_broker: Kafka) -> Kafka:
    return kafka_broker


def _certificate(folder: Path) -> tuple[Path, Path]:
    """A certificate for localhost that signs itself, and the file with it and its key."""
    if shutil.which("openssl") is None:
        pytest.skip("needs openssl to make a certificate")
    key, certificate, store = folder / "key.pem", folder / "certificate.pem", folder / "store.pem"
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "rsa:2048",
        "-nodes",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-days", "2"]
    subprocess.run([*command, *names], check=True, capture_output=True)
    store.write_text(key.read_text() + certificate.read_text())
    return certificate, store


@pytest.fixture
def until() -> Callable[[Callable[[], bool]], None]:
    """Waits for something to become true."""

    return wait_until
