"""What a source asks of a cluster beside the records: topics, offsets, and the consumer group it shows itself as."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from penstock.connectors.base import SourceContext
from penstock.connectors.kafka.settings import confluent, python_settings
from penstock.errors import CheckpointError, RunError, nearest
from penstock.storage import open_storage, read_if_present

if TYPE_CHECKING:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import AdminClient, ClusterMetadata

PATIENCE = 30.0
FIRST_LOOK = 0.5
"""After how many seconds without an answer a client first looks whether it was refused."""
TOPICS = "topics.json"
"""Where a source notes the ids of its topics."""
SHOWING = 5.0
"""How long to try to show the offsets of a group, which only people look at, in seconds."""
Answer = TypeVar("Answer")


class Cluster:
    """A cluster, as administrators see it. It connects when it is first asked."""

    def __init__(self, servers: str, client: Mapping[str, str]) -> None:
        self.servers = servers
        self.settings = {k: v for k, v in python_settings(servers, client).items() if k not in _NOT_ADMIN}
        self._admin: Any = None
        self._errors: deque[KafkaError] = deque(maxlen=20)
        self._consumers: dict[str, Any] = {}

    @property
    def admin(self) -> AdminClient:
        """The client for everything but offsets of groups."""
        if self._admin is None:
            confluent()
            from confluent_kafka.admin import AdminClient

            self._admin = AdminClient({**self.settings, "error_cb": self._errors.append})
        return self._admin

    def metadata(self, topic: str | None = None, patience: float = PATIENCE) -> ClusterMetadata:
        """What the cluster says of its brokers and topics.

        A client that is refused, for a wrong password or certificate, tries again and tells only its log. So it is asked whether it is, at
        longer and longer intervals.

        Raises:
            KafkaException: The cluster refuses the client, or has not answered in that many seconds.
        """
        deadline, pause = time.monotonic() + patience, FIRST_LOOK
        while True:
            left = deadline - time.monotonic()
            try:
                return self.admin.list_topics(topic, timeout=max(0.01, min(pause, left)))
            except confluent().KafkaException as error:
                refusal = self._refusal()
                if refusal is not None or left <= pause:
                    raise confluent().KafkaException(refusal or error.args[0]) from None
            pause *= 2

    def _refusal(self) -> KafkaError | None:
        """The error by which the cluster has refused the client since this was last asked; None when it has not."""
        self.admin.poll(0)
        found = [error for error in self._errors if error.name() in _REFUSALS]
        self._errors.clear()
        return found[-1] if found else None

    def topics(self) -> dict[str, list[int]]:
        """Every topic with its partitions."""
        errors = confluent().KafkaException
        try:
            found = self.metadata().topics
        except errors as error:
            raise RunError(f"the Kafka cluster at {self.servers} does not answer: {said(error)}") from None
        return {name: sorted(topic.partitions) for name, topic in found.items() if topic.error is None}

    def has_leaders(self, topic: str) -> bool:
        """Whether every partition of a topic has a leader, so that it can be written and read."""
        errors = confluent().KafkaException
        try:
            found = self.metadata(topic).topics[topic]
        except errors as error:
            raise RunError(f"the Kafka cluster at {self.servers} does not answer: {said(error)}") from None
        return found.error is None and all(p.leader >= 0 for p in found.partitions.values()) and bool(found.partitions)

    def largest_request(self, topic: str) -> int | None:
        """How many bytes the brokers take for a topic at once; None when they do not tell."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        resource = ConfigResource(ResourceType.TOPIC, topic)

        def ask() -> int:
            found = self.admin.describe_configs([resource], request_timeout=PATIENCE)[resource].result()
            return int(found["max.message.bytes"].value)

        try:
            return patiently(ask)
        except confluent().KafkaException:
            return None

    def check_topics(self, context: SourceContext, *, live: bool = False) -> None:
        """The topics must be there; in a live run they must be those that the checkpoint began with."""
        if context.options.get("pattern"):
            return
        known = self.topics()
        for name in context.options["topics"]:
            if name not in known:
                raise RunError(f"source {context.step!r}: {self.servers} has no topic {name!r}; {nearest(name, known)}")
        if live:
            self._check_identity(context, self.ids(context.options["topics"]))

    def ids(self, topics: list[str]) -> dict[str, str]:
        """The id of each topic: one that was deleted and made again has another."""
        from confluent_kafka import TopicCollection

        def ask() -> dict[str, str]:
            found = self.admin.describe_topics(TopicCollection(list(topics)), request_timeout=PATIENCE)
            return {name: str(future.result().topic_id) for name, future in found.items()}

        return patiently(ask)

    def _check_identity(self, context: SourceContext, ids: dict[str, str]) -> None:
        notes = open_storage(context.folder)
        before = read_if_present(notes, TOPICS)
        kept = {} if before is None else json.loads(before[0])
        changed = [name for name, was in kept.items() if name in ids and ids[name] != was]
        if changed and context.options["fail_on_data_loss"]:
            raise CheckpointError(
                f"source {context.step!r}: the topic {changed[0]!r} was deleted and made again since this checkpoint began; its offsets "
                f"mean other records now. Start afresh with --fresh, or say fail_on_data_loss=False to go on with what is there"
            )
        notes.write(TOPICS, json.dumps({**kept, **ids}).encode())

    def spark_position(self, context: SourceContext, which: str) -> dict[str, str]:
        """The options of Spark's connector for where to begin or end."""
        word = "starting" if which == "start" else "ending"
        given = context.options[which]
        if isinstance(given, str):
            return {f"{word}Offsets": given}
        if "at" in given:
            strategy = {"startingOffsetsByTimestampStrategy": "latest"} if which == "start" else {}
            return {f"{word}Timestamp": str(given["at"]), **strategy}
        whole = {topic: self._all_partitions(topic, which, offsets) for topic, offsets in given["offsets"].items()}
        return {f"{word}Offsets": json.dumps(whole)}

    def _all_partitions(self, topic: str, which: str, offsets: dict[str, int]) -> dict[str, int]:
        """Offsets for every partition; those not named begin with the earliest record, and end with the last."""
        otherwise = -2 if which == "start" else -1
        return {str(p): offsets.get(str(p), otherwise) for p in self.topics().get(topic, [])}

    def commit(self, group: str, offsets: Mapping[str, Mapping[str, int]]) -> None:
        """Writes offsets to a consumer group."""
        kafka = confluent()
        if group not in self._consumers:
            self._consumers[group] = kafka.Consumer({**self.settings, "group.id": group, "enable.auto.commit": False})
        positions = [kafka.TopicPartition(t, int(p), int(o)) for t, each in offsets.items() for p, o in each.items()]
        try:
            patiently(lambda: self._consumers[group].commit(offsets=positions, asynchronous=False), SHOWING)
        except kafka.KafkaException as error:
            raise RunError(f"the offsets of consumer group {group!r} could not be committed: {said(error)}") from None

    def close(self) -> None:
        """Closes the clients."""
        for consumer in self._consumers.values():
            consumer.close()
        self._consumers, self._admin = {}, None


_PASSING = (
    "LEADER_NOT_AVAILABLE",
    "NOT_LEADER_FOR_PARTITION",
    "UNKNOWN_TOPIC_OR_PART",
    "REQUEST_TIMED_OUT",
    "BROKER_NOT_AVAILABLE",
    "REPLICA_NOT_AVAILABLE",
    "NETWORK_EXCEPTION",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "KAFKA_STORAGE_ERROR",
    "FENCED_LEADER_EPOCH",
    "UNKNOWN_LEADER_EPOCH",
    "OFFSET_NOT_AVAILABLE",
    "PREFERRED_LEADER_NOT_AVAILABLE",
    "_ALL_BROKERS_DOWN",
    "_TRANSPORT",
    "_UNKNOWN_PARTITION",
    "_LEADER_NOT_AVAILABLE",
)
"""Errors that pass by themselves: a leader is elected, a broker comes back, a topic that was just made becomes known."""


def is_passing(error: KafkaError) -> bool:
    """Whether an error of the client (its `KafkaError`) is one to wait for the end of."""
    return bool(error.retriable()) or error.name() in _PASSING


def patiently(ask: Callable[[], Answer], patience: float = PATIENCE) -> Answer:
    """The answer to a question, asked again while a broker says that it has none yet.

    Raises:
        KafkaException: The error does not pass by itself, or has not passed in that many seconds.
    """
    deadline, pause = time.monotonic() + patience, 0.05
    while True:
        try:
            return ask()
        except confluent().KafkaException as error:
            if not is_passing(error.args[0]) or time.monotonic() > deadline:
                raise
        time.sleep(pause)
        pause = min(1.0, pause * 2)


_REFUSALS = ("_AUTHENTICATION", "_SSL")
_NOT_ADMIN = ("isolation.level", "transaction.timeout.ms", "compression.type", "linger.ms", "acks", "batch.size")


def said(error: KafkaException | KafkaError) -> str:
    """What an error of the client says, in one line."""
    inner = error.args[0] if getattr(error, "args", ()) else error  # a KafkaError has none
    return str(inner.str() if hasattr(inner, "str") else inner)
