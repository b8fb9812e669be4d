"""Kafka as a sink: what a record becomes, and how surely it arrives."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.graph.endpoints.kafka import write_kafka
from penstock.graph.run import RunSpec
from penstock.spark.run import run_bounded, run_live
from tests.kafka.conftest import Kafka
from tests.kafka.flows import written

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
ROWS = [(f"u{n % 3}", n) for n in range(30)]
HOW = [("exactly_once", "spark"), ("at_least_once", "spark"), ("at_least_once", "python"), ("at_most_once", "spark")]


@pytest.mark.parametrize(("delivery", "via"), HOW)
def test_records_arrive_as_json_with_their_keys_in_every_delivery(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path, delivery: str, via: str
) -> None:
    topic = kafka.topic()
    sink = write_kafka(topic, servers=kafka.servers, key="user", via=via)
    written(ROWS, "user string, n bigint", sink, penstock_spark, tmp_path, delivery=delivery, batches=3)
    found = kafka.read(topic)
    assert sorted(json.loads(m.value())["n"] for m in found) == list(range(30))
    assert all(m.key().decode() == json.loads(m.value())["user"] for m in found)


def test_both_writers_put_a_key_into_the_same_partition(kafka: Kafka, penstock_spark: Any, tmp_path: Path) -> None:
    places = []
    for delivery, via in HOW[:3]:
        topic = kafka.topic(4)
        sink = write_kafka(topic, servers=kafka.servers, key="user", via=via)
        rows = [(f"u{n}", n) for n in range(20)]
        written(rows, "user string, n bigint", sink, penstock_spark, tmp_path / f"{delivery}{via}", delivery=delivery)
        places.append({m.key(): m.partition() for m in kafka.read(topic)})
    assert places[0] == places[1] == places[2]


@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_text_headers_and_a_topic_for_each_record(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path, delivery: str
) -> None:
    one, two = kafka.topic(1), kafka.topic(1)
    sink = write_kafka("", servers=kafka.servers, format="text", key="id", topic_field="to", headers="marks")
    rows = [(n, f"text {n}", one if n % 2 else two, [{"key": "n", "value": b"%d" % n}]) for n in range(4)]
    schema = "id int, text string, to string, marks array<struct<key: string, value: binary>>"
    written(rows, schema, sink, penstock_spark, tmp_path, delivery=delivery)
    found = {m.key(): (m.value(), m.headers()) for m in kafka.read(one)}
    assert found == {b"1": (b"text 1", [("n", b"1")]), b"3": (b"text 3", [("n", b"3")])}
    assert len(kafka.read(two)) == 2


def test_running_totals_have_the_key_of_their_stream(kafka: Kafka, penstock_spark: Any, tmp_path: Path) -> None:
    topic = kafka.topic(1)
    flow = ps.Flow("totals")
    rows = flow.source("rows", ps.items(ROWS, "user string, n bigint", batches=2))
    rows.key_by("user").sum("total", "n").sink("out", write_kafka(topic, servers=kafka.servers))
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path, mode="once")).wait(0.02)
    last = {m.key().decode(): json.loads(m.value())["total"] for m in kafka.read(topic)}
    assert last == {f"u{k}": sum(n for u, n in ROWS if u == f"u{k}") for k in range(3)}


LEAVING = [
    ("insert", 1, 9),
    ("insert", 2, 8),
    ("insert", 3, 7),
    ("update_after", 1, 1),
    ("delete", 2, 8),
    ("update_after", 3, 6),
]


def test_a_row_that_leaves_a_table_is_a_record_without_a_value(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path
) -> None:
    sinks = {(delivery, via): kafka.topic(1) for delivery, via in HOW[:3]}
    flow = ps.Flow("leaving")
    table = flow.source("given", ps.items(LEAVING, "op string, id int, n int", batches=2)).as_table("table", "id")
    large = table.where("large", "n > 5")
    for (delivery, via), topic in sinks.items():
        large.sink(f"out-{delivery}-{via}", write_kafka(topic, servers=kafka.servers, via=via), delivery=delivery)
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path, mode="once")).wait(0.02)
    for topic in sinks.values():
        last = {m.key(): m.value() and json.loads(m.value()) for m in kafka.read(topic)}
        assert last == {b"1": None, b"2": None, b"3": {"id": 3, "n": 6}}


def test_record_ids_tell_each_record_of_a_batch_apart(kafka: Kafka, penstock_spark: Any, tmp_path: Path) -> None:
    topic = kafka.topic(1)
    sink = write_kafka(topic, servers=kafka.servers, record_ids=True)
    written(ROWS, "user string, n bigint", sink, penstock_spark, tmp_path, batches=2)
    ids = [dict(m.headers())["penstock"].decode().split("/")[1:] for m in kafka.read(topic)]
    assert sorted(map(tuple, ids)) == sorted((str(b), str(n)) for b in range(2) for n in range(15))


def test_bounded_runs_write_each_time_and_all_or_nothing(kafka: Kafka, penstock_spark: Any) -> None:
    topic = kafka.topic()
    flow = ps.Flow("bounded")
    flow.source("rows", ps.items(ROWS, "user string, n bigint")).sink("out", write_kafka(topic, servers=kafka.servers))
    for times in (1, 2):
        run_bounded(flow.graph, penstock_spark)
        assert len(kafka.read(topic)) == 30 * times


def test_a_missing_topic_is_made(kafka: Kafka, penstock_spark: Any, tmp_path: Path) -> None:
    topic = f"{kafka.topic()}-new"
    written(ROWS, "user string, n bigint", write_kafka(topic, servers=kafka.servers), penstock_spark, tmp_path)
    assert len(kafka.read(topic)) == 30


def test_one_read_many_sinks_each_with_its_own_guarantee(kafka: Kafka, penstock_spark: Any, tmp_path: Path) -> None:
    topics = {d: kafka.topic() for d in ("exactly_once", "at_least_once", "at_most_once")}
    flow = ps.Flow("many")
    rows = flow.source("rows", ps.items(ROWS, "user string, n bigint", batches=2))
    for delivery, topic in topics.items():
        rows.sink(f"out_{delivery}", write_kafka(topic, servers=kafka.servers), delivery=delivery)
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path, mode="once")).wait(0.02)
    assert {d: len(kafka.read(t)) for d, t in topics.items()} == dict.fromkeys(topics, 30)
