"""A Kafka cluster as the console shows it: offsets, groups and lag, the newest records, a record by hand."""

from __future__ import annotations

import pytest

from penstock.connectors.kafka.admin import Cluster
from penstock.errors import UnknownName
from penstock.jobs.manager.insight.clusters import ClusterLooks, KafkaUse, described, topic_of_kafka
from tests.kafka.conftest import Kafka
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.spark]


def test_topics_and_groups_are_described_and_records_are_seen_and_put(kafka: Kafka) -> None:
    name = kafka.topic(2)
    uses = (KafkaUse(kafka.servers, (name,), group="console-readers"),)
    topic = topic_of_kafka(kafka.servers, uses, name)
    placed = [topic.put(f'{{"n": {n}}}'.encode(), f"k{n}".encode()) for n in range(20)]
    assert min(offset for partition, offset in placed if partition == placed[0][0]) == 0
    Cluster(kafka.servers, {}).commit("console-readers", {name: {"0": 1, "1": 0}})
    (found,) = described(kafka.servers, uses)
    assert (found["topic"], found["records"], len(found["partitions"])) == (name, 20, 2)
    assert sum(row["lag"] for row in found["groups"] if row["group"] == "console-readers") == 19
    newest = topic.newest(3)
    assert 3 <= len(newest) <= 6
    assert {record.json()["n"] for record in newest} <= set(range(20))
    looks = ClusterLooks()
    wait_until(lambda: bool(looks.last(kafka.servers, uses)["topics"]))
    with pytest.raises(UnknownName, match="no job uses"):
        topic_of_kafka(kafka.servers, uses, "others")
    assert KafkaUse.of({"servers": "http://x", "topics": ["a"]}) is None
    assert KafkaUse(kafka.servers, ("topic-.*",), is_pattern=True).uses(name)
