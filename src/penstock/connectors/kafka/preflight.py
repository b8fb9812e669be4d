"""Whether a Kafka cluster answers and has the topics that a source reads."""

from __future__ import annotations

from penstock.connectors.kafka.admin import Cluster, said
from penstock.connectors.kafka.settings import confluent
from penstock.connectors.preflight import Missing, Options, Preflight, start_hint
from penstock.errors import SetupError, nearest


def check_topics(asked: Preflight) -> None:
    """The cluster must answer, and have the topics that no sink of the flow writes."""
    known, servers = check_cluster(asked), asked.options["servers"]
    missing = [
        f"{asked.step!r} reads the topic {topic!r}, and {servers} has none of that name; {nearest(topic, known)}. "
        f"Make it: penstock kafka topics --create {topic} --servers {servers}"
        for topic in asked.options.get("topics") or ()
        if topic not in known and written_topic({"servers": servers, "topic": topic}) not in asked.made
    ]
    if missing:
        raise Missing("\n".join(missing))


def check_cluster(asked: Preflight) -> list[str]:
    """The topics of a cluster, which must answer soon."""
    errors, servers = confluent().KafkaException, str(asked.options["servers"])
    cluster = Cluster(servers, asked.options["client"])
    try:
        return sorted(cluster.metadata(patience=asked.patience).topics)
    except errors as error:
        raise SetupError(
            f"{asked.step!r} needs the Kafka cluster at {servers}, which does not answer: {said(error)}"
            f"{start_hint(servers, 'penstock kafka start')}"
        ) from None
    finally:
        cluster.close()


def written_topic(options: Options) -> str:
    """The topic that a sink makes."""
    return f"kafka {options['servers']} {options['topic']}"
