"""Kafka as a source: by Spark's connector and by Python, the same records either way."""

from __future__ import annotations

import datetime
import json
import time
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import CheckpointError, RunError
from penstock.graph.endpoints.kafka import kafka as endpoint
from penstock.graph.run import RunSpec
from penstock.spark.run import run_live
from tests.kafka.conftest import Kafka
from tests.kafka.flows import collected
from tests.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
VIAS = ["spark", "python"]


@pytest.fixture
def orders(kafka: Kafka) -> str:
    """A topic with 100 orders, a tenth of them from each of ten users."""
    topic = kafka.topic()
    kafka.send(
        topic, [(f"u{n % 10}", json.dumps({"user": f"u{n % 10}", "n": n}), [("h", b"%d" % n)]) for n in range(100)]
    )
    return topic


@pytest.mark.parametrize("via", VIAS)
def test_json_gives_typed_fields_live_and_bounded(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path, orders: str, via: str
) -> None:
    also = "key, topic, partition, offset, timestamp, headers"
    made = endpoint(orders, "user string, n bigint", servers=kafka.servers, also=also, via=via, rows_per_batch=30)
    for rows in (collected(made, penstock_spark, tmp_path / "live"), collected(made, penstock_spark)):
        assert sorted(r.n for r in rows) == list(range(100))
        one = next(r for r in rows if r.n == 42)
        assert (one.user, one.key, one.topic) == ("u2", "u2", orders)
        assert [(h["key"], h["value"]) for h in one.headers] == [("h", b"42")]
        assert abs(one.timestamp - datetime.datetime.now(datetime.UTC)) < datetime.timedelta(minutes=10)
        assert {(r.partition, r.offset) for r in rows} == {(m.partition(), m.offset()) for m in kafka.read(orders)}


def test_text_and_raw_values(kafka: Kafka, penstock_spark: Any) -> None:
    topic = kafka.topic(1)
    kafka.send(topic, [("k", "zwölf"), (None, None)])
    text = collected(endpoint(topic, servers=kafka.servers), penstock_spark)
    assert [(r.key, r.value) for r in text] == [("k", "zwölf"), (None, None)]
    kafka.send(topic, [(b"\xff", b"\xfe\x00")])
    with pytest.raises(RunError, match="not UTF-8"):
        collected(endpoint(topic, servers=kafka.servers), penstock_spark)
    raw = collected(endpoint(topic, servers=kafka.servers, format="raw"), penstock_spark)
    assert [(r.key, r.value) for r in raw] == [(b"k", "zwölf".encode()), (None, None), (b"\xff", b"\xfe\x00")]


def test_the_consumer_group_shows_how_far_a_flow_has_come(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path, orders: str
) -> None:
    made = endpoint(orders, servers=kafka.servers)
    assert len(collected(made, penstock_spark, tmp_path, name="lagging")) == 100
    assert kafka.lag("penstock-lagging-in", orders) == 0
    kafka.send(orders, ["more"] * 7)
    assert kafka.lag("penstock-lagging-in", orders) == 7
    assert len(collected(made, penstock_spark, tmp_path, name="lagging")) == 7
    assert kafka.lag("penstock-lagging-in", orders) == 0


def test_a_group_of_the_users_own_or_none(kafka: Kafka, penstock_spark: Any, tmp_path: Path, orders: str) -> None:
    collected(endpoint(orders, servers=kafka.servers, group="mine"), penstock_spark, tmp_path / "a")
    assert kafka.lag("mine", orders) == 0
    collected(endpoint(orders, servers=kafka.servers, group=""), penstock_spark, tmp_path / "b", name="shy")
    with pytest.raises(AssertionError, match="committed nothing"):
        kafka.lag("penstock-shy-in", orders)


@pytest.mark.parametrize("via", VIAS)
def test_what_a_transaction_took_back_is_not_read(kafka: Kafka, penstock_spark: Any, tmp_path: Path, via: str) -> None:
    topic = kafka.topic(1)
    producer = kafka.producer(**{"transactional.id": f"t-{topic}"})
    producer.init_transactions(300)
    for end, value in ((producer.commit_transaction, "kept"), (producer.abort_transaction, "gone")) * 2:
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(300)
        end(300)
    producer.close()
    made = endpoint(topic, servers=kafka.servers, via=via)
    assert [r.value for r in collected(made, penstock_spark, tmp_path)] == ["kept", "kept"]
    every = endpoint(topic, servers=kafka.servers, via=via, read_committed=False)
    assert [r.value for r in collected(every, penstock_spark)] == ["kept", "gone"] * 2


@pytest.mark.parametrize("via", VIAS)
def test_reading_from_and_to_a_place(kafka: Kafka, penstock_spark: Any, via: str) -> None:
    topic = kafka.topic(2)
    producer = kafka.producer()
    for n in range(10):
        producer.produce(topic, str(n), partition=n % 2)
    producer.flush(300)
    time.sleep(0.05)
    between = datetime.datetime.now(datetime.UTC)
    time.sleep(0.05)
    producer.produce(topic, "late", partition=0)
    producer.flush(300)
    producer.close()

    def read(**where: Any) -> list[str]:
        return sorted(
            r.value for r in collected(endpoint(topic, servers=kafka.servers, via=via, **where), penstock_spark)
        )

    assert read(start=between) == ["late"]
    assert read(start={topic: {0: 4}}) == sorted(["8", "late", "1", "3", "5", "7", "9"])
    assert read(end={topic: {0: 1, 1: 1}}) == ["0", "1"]


def test_batches_read_by_python_adapt(kafka: Kafka, penstock_spark: Any, tmp_path: Path) -> None:
    topic = kafka.topic(1)
    kafka.send(topic, ["a", "b", "c", "d", "e"])
    flow = ps.Flow("paced")
    flow.source("in", endpoint(topic, servers=kafka.servers, via="python")).sink("out", ps.callback(lambda *_: None))
    reports: list[Any] = []
    options = RunSpec(checkpoint=tmp_path, mode="once", max_rows=2)
    run_live(flow.graph, penstock_spark, options, observers=(reports.append,)).wait(0.02)
    assert [r.rows_in for r in reports if r.rows_in] == [2, 2, 1]


@pytest.mark.parametrize("via", VIAS)
def test_records_that_are_gone_stop_the_flow(kafka: Kafka, penstock_spark: Any, tmp_path: Path, via: str) -> None:
    from confluent_kafka import TopicPartition

    topic = kafka.topic(1)
    kafka.send(topic, ["a", "b"])
    made = endpoint(topic, servers=kafka.servers, via=via)
    collected(made, penstock_spark, tmp_path)
    kafka.send(topic, ["c", "d", "e"])
    place = TopicPartition(topic, 0, 4)
    kafka.admin.delete_records([place])[place].result(300)
    with pytest.raises(RunError, match=r"(?i)data loss|lost"):
        collected(made, penstock_spark, tmp_path)
    careless = endpoint(topic, servers=kafka.servers, via=via, fail_on_data_loss=False)
    assert [r.value for r in collected(careless, penstock_spark, tmp_path)] == ["e"]


def test_a_topic_that_was_made_again_is_not_taken_for_the_old_one(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path
) -> None:
    from confluent_kafka.admin import NewTopic

    topic = kafka.topic(1)
    kafka.send(topic, ["a", "b"])
    made = endpoint(topic, servers=kafka.servers)
    collected(made, penstock_spark, tmp_path)
    kafka.admin.delete_topics([topic])[topic].result(300)
    wait_until(lambda: topic not in kafka.admin.list_topics(timeout=300).topics)
    kafka.admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(300)
    kafka.send(topic, ["x", "y", "z"])
    with pytest.raises(CheckpointError, match="made again"):
        collected(made, penstock_spark, tmp_path)


def test_a_topic_that_is_not_there_is_named(kafka: Kafka, penstock_spark: Any, orders: str) -> None:
    with pytest.raises(RunError, match=f"has no topic '{orders}x'; .*{orders}"):
        collected(endpoint(f"{orders}x", servers=kafka.servers), penstock_spark)


def test_a_pattern_takes_all_topics_that_match(kafka: Kafka, penstock_spark: Any) -> None:
    topics = [kafka.topic(1) for _ in range(2)]
    for topic in topics:
        kafka.send(topic, [topic])
    pattern = "|".join(topics)
    for via in VIAS:
        rows = collected(endpoint(pattern, servers=kafka.servers, pattern=True, via=via), penstock_spark)
        assert sorted(r.value for r in rows) == sorted(topics)


def test_json_that_cannot_be_read_stops_the_flow(kafka: Kafka, penstock_spark: Any) -> None:
    topic = kafka.topic(1)
    kafka.send(topic, ['{"a": 1}', "no json"])
    with pytest.raises(RunError, match=r"cannot be read as json: not JSON(.|\n)*record:   no json"):
        collected(endpoint(topic, "a int", servers=kafka.servers), penstock_spark)
