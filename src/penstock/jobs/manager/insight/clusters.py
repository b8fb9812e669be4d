"""The Kafka clusters that jobs use: their topics and groups at the last look, the newest records, a record by hand.

A cluster is asked beside everything else, so that who asks never waits for one that does not answer. Passwords and keys of a job are the job's: a cluster that needs
any is named, and not looked into.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from penstock.connectors.kafka.admin import Cluster, said
from penstock.connectors.kafka.settings import confluent
from penstock.errors import OptionError, PenstockError, RunError, UnknownName
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint
from penstock.log import Record

if TYPE_CHECKING:
    from confluent_kafka import Consumer

FRESH, PATIENCE = 2.0, 5.0
"""A look is good for so many seconds, and takes no more than so many."""
MOST_TOPICS, MOST_GROUPS = 200, 50
_SERVERS = re.compile(r"[A-Za-z0-9.\[\]:,_-]{1,1000}")
_CLOSED = "it needs passwords or keys, which are the job's own; look into it with the tools of Kafka"
GROUP = "penstock-console"


@dataclass(frozen=True)
class KafkaUse:
    """What one endpoint of a flow uses: the brokers, the topics or the pattern of them, its group, and whether anybody may connect."""

    servers: str
    topics: tuple[str, ...]
    is_pattern: bool = False
    group: str = ""
    is_open: bool = True

    @classmethod
    def of(cls, reported: object) -> KafkaUse | None:
        """What a driver has said of it, who is not trusted."""
        if not isinstance(reported, dict) or not isinstance(reported.get("topics"), list):
            return None
        servers, topics = (
            str(reported.get("servers", "")),
            tuple(str(each)[:249] for each in reported["topics"][:MOST_TOPICS]),
        )
        if not _SERVERS.fullmatch(servers):
            return None
        return cls(
            servers, topics, bool(reported.get("pattern")), str(reported.get("group") or ""), bool(reported.get("open"))
        )

    def uses(self, topic: str) -> bool:
        """Whether a topic is one of its own."""
        if not self.is_pattern:
            return topic in self.topics
        try:
            return any(re.fullmatch(pattern, topic) for pattern in self.topics)
        except re.error:
            return False


def uses_of(graph: Graph) -> list[dict[str, Any]]:
    """The Kafka topics that a flow reads and writes, as its plan says them."""
    endpoints = [*(source.endpoint for source in graph.sources), *(sink.endpoint for sink in graph.sinks)]
    return [_use(each) for each in endpoints if each.capabilities.topics_in == "kafka"]


def _use(endpoint: Endpoint) -> dict[str, Any]:
    options = endpoint.options
    topics = options.get("topics") or [options["topic"]]
    return {
        "servers": str(options["servers"]),
        "topics": [str(topic) for topic in topics],
        "pattern": bool(options.get("pattern")),
        "group": options.get("group") or "",
        "open": not options.get("client"),
    }


@dataclass
class _Look:
    at: float = 0.0
    found: dict[str, Any] = field(default_factory=lambda: {"topics": [], "error": "it is being asked"})
    is_asking: bool = False


@dataclass
class ClusterLooks:
    """What clusters said last. Asking happens in a thread of its own, when somebody wants to know."""

    known: dict[str, _Look] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def last(self, servers: str, uses: tuple[KafkaUse, ...]) -> dict[str, Any]:
        """The topics and groups of a cluster, and what went wrong; from the last look, and a new one begins where that is old."""
        if not all(use.is_open for use in uses):
            names = sorted({topic for use in uses for topic in use.topics if not use.is_pattern})
            return {"topics": [_empty(name) for name in names], "error": _CLOSED}
        with self._turn:
            look = self.known.setdefault(servers, _Look())
            if not look.is_asking and time.monotonic() - look.at > FRESH:
                look.is_asking = True
                threading.Thread(target=self._ask, args=(servers, uses, look), daemon=True).start()
        return look.found

    def _ask(self, servers: str, uses: tuple[KafkaUse, ...], look: _Look) -> None:
        try:
            look.found = {"topics": described(servers, uses), "error": ""}
        except Exception as error:  # whatever a cluster does, the console goes on
            look.found = {"topics": look.found["topics"], "error": _reason(error)}
        look.at, look.is_asking = time.monotonic(), False


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, PenstockError) else said(error) if _is_kafka(error) else type(error).__name__


def _is_kafka(error: Exception) -> bool:
    return isinstance(error, confluent().KafkaException)


def _empty(topic: str) -> dict[str, Any]:
    return {"topic": topic, "cleanup": "", "records": 0, "bytes": None, "damage": 0, "partitions": [], "groups": []}


def described(servers: str, uses: Iterable[KafkaUse]) -> list[dict[str, Any]]:
    """The topics of a cluster that jobs use: offsets by partition, groups and their lag."""
    cluster, mine = Cluster(servers, {}), tuple(uses)
    found = cluster.metadata(patience=PATIENCE).topics
    names = sorted(name for name, each in found.items() if each.error is None and any(use.uses(name) for use in mine))
    with _consumer(cluster) as consumer:
        topics = [_topic(consumer, name, sorted(found[name].partitions)) for name in names[:MOST_TOPICS]]
    groups = _groups(cluster, {use.group for use in mine if use.group})
    for topic in topics:
        topic["groups"] = [row for group in groups for row in _lags(cluster, group, topic)]
    return topics


@contextmanager
def _consumer(cluster: Cluster) -> Iterator[Consumer]:
    made = confluent().Consumer({**cluster.settings, "group.id": GROUP, "enable.auto.commit": False})
    try:
        yield made
    finally:
        made.close()


def _topic(consumer: Consumer, name: str, partitions: list[int]) -> dict[str, Any]:
    ends = {p: consumer.get_watermark_offsets(confluent().TopicPartition(name, p), PATIENCE) for p in partitions}
    rows = [
        {"partition": p, "start": low, "end": high, "bytes": None, "segments": None} for p, (low, high) in ends.items()
    ]
    return _empty(name) | {"records": sum(high - low for low, high in ends.values()), "partitions": rows}


def _groups(cluster: Cluster, own: set[str]) -> list[str]:
    """The groups of the cluster, those of the jobs first."""
    found = cluster.admin.list_consumer_groups(request_timeout=PATIENCE).result(PATIENCE)
    others = sorted(each.group_id for each in found.valid if each.group_id not in own and each.group_id != GROUP)
    return [*sorted(own), *others][:MOST_GROUPS]


def _lags(cluster: Cluster, group: str, topic: Mapping[str, Any]) -> list[dict[str, Any]]:
    kafka = confluent()
    ends = {each["partition"]: each["end"] for each in topic["partitions"]}
    wanted = kafka.ConsumerGroupTopicPartitions(group, [kafka.TopicPartition(topic["topic"], p) for p in ends])
    asked = cluster.admin.list_consumer_group_offsets([wanted], request_timeout=PATIENCE)
    try:
        found = asked[group].result(PATIENCE).topic_partitions
    except kafka.KafkaException:  # one that is gone, or has no offsets
        return []
    return [
        {
            "group": group,
            "members": None,
            "partition": each.partition,
            "committed": each.offset,
            "end": ends[each.partition],
            "lag": max(ends[each.partition] - each.offset, 0),
        }
        for each in found
        if each.offset >= 0
    ]


@dataclass(frozen=True)
class KafkaTopic:
    """A topic of a cluster, to look into and to put records into."""

    cluster: Cluster
    name: str

    def newest(self, most: int, partition: int | None = None) -> list[Record]:
        """The newest records of each partition, up to so many of each."""
        kafka, found = confluent(), list[Record]()
        with _consumer(self.cluster) as consumer:
            parts = [p for p in sorted(self._partitions(consumer)) if partition in (None, p)]
            ends = {p: consumer.get_watermark_offsets(kafka.TopicPartition(self.name, p), PATIENCE) for p in parts}
            left = {p: high for p, (low, high) in ends.items() if high > low}
            starts = [kafka.TopicPartition(self.name, p, max(ends[p][0], ends[p][1] - most)) for p in left]
            consumer.assign(starts)
            deadline = time.monotonic() + PATIENCE
            while left and time.monotonic() < deadline:
                for message in consumer.consume(min(most, 1_000), 0.5):
                    if message.error() is None and message.offset() < ends[message.partition()][1]:
                        found.append(_record(message))
                at = {each.partition: each.offset for each in consumer.position(starts)}
                left = {p: end for p, end in left.items() if at.get(p, -1) < end}
        return found

    def put(self, value: bytes, key: bytes | None) -> tuple[int, int]:
        """Puts a record; its partition and offset."""
        made: list[tuple[Any, Any]] = []
        producer = confluent().Producer({**self.cluster.settings, "enable.idempotence": True})
        producer.produce(self.name, value, key, on_delivery=lambda error, message: made.append((error, message)))
        producer.flush(PATIENCE)
        if not made or made[0][0] is not None:
            raise RunError(f"the record was not stored: {said(made[0][0]) if made else 'the cluster did not answer'}")
        return int(made[0][1].partition()), int(made[0][1].offset())

    def _partitions(self, consumer: Consumer) -> Iterable[int]:
        found = consumer.list_topics(self.name, PATIENCE).topics[self.name]
        if found.error is not None:
            raise UnknownName(f"there is no topic {self.name!r} in this cluster")
        partitions: Iterable[int] = found.partitions
        return partitions


def topic_of_kafka(servers: str, uses: Iterable[KafkaUse], topic: str) -> KafkaTopic:
    """A topic that a job uses; raises UnknownName for any other."""
    mine = [use for use in uses if use.uses(topic)]
    if not mine:
        raise UnknownName(f"no job uses a topic {topic[:249]!r} of this cluster")
    if not all(use.is_open for use in mine):
        raise OptionError(f"this cluster is not looked into: {_CLOSED}")
    return KafkaTopic(Cluster(servers, {}), topic)


def _record(message: Any) -> Record:
    headers = tuple((name, value) for name, value in message.headers() or ())
    timestamp = int(message.timestamp()[1])
    return Record(
        message.topic(), message.partition(), message.offset(), timestamp, message.key(), message.value(), headers
    )
