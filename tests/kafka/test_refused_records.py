"""Records that Kafka refuses: dead letters with what it says, and the batch arrives without them, once."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import penstock as ps
from penstock.connectors.kafka.refusals import RefusalSearch
from penstock.errors import DeliveryError, Impossible, RunError
from penstock.graph.endpoints.kafka import write_kafka
from penstock.graph.run import RunSpec
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.spark.run import run_bounded, run_live
from penstock.testing import run_local
from tests.kafka.conftest import Kafka
from tests.kafka.registry import schema_registry
from tests.kafka.test_transactions import ROWS, about, rows_of, writer_of

SCHEMA = "id string, n bigint, text string"
LARGE = "x" * 5_000
GOOD = [(f"k{n}", n, "word") for n in range(200)]
GIVEN = [*GOOD[:100], (None, 900, "no key"), ("large", 901, LARGE), *GOOD[100:]]
AVRO = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "int"}]}


def flow_of(sink: Any, given: list[Any], schema: str = SCHEMA, *, parts: int = 1, **more: Any) -> ps.Flow:
    flow = ps.Flow("refusing")
    flow.source("rows", ps.items(given, schema, batches=parts)).sink("out", sink, **{"on_error": "dead_letter", **more})
    return flow


def run(flow: ps.Flow, spark: Any, folder: Path) -> list[Any]:
    reports: list[Any] = []
    run_live(flow.graph, spark, RunSpec(checkpoint=folder, mode="once"), observers=(reports.append,)).wait(0.02)
    return reports


def letters_in(folder: Path) -> dict[str, str]:
    """What is kept of each refused record: its values, shortened, and the cause."""
    return {
        letter["record"][:20]: letter["cause"] for letter in DeadLetterStore(folder / "dead-letters").dead_letters()
    }


def lose_the_end(folder: Path) -> None:
    """Leaves the checkpoint as it is when a driver dies after its sinks have committed: the batch comes again."""
    for lost in [*(folder / "spark" / "commits").iterdir(), *(folder / "dead-letters").iterdir()]:
        if lost.is_file() and "metadata" not in lost.name:
            lost.unlink()


@pytest.mark.kafka
@pytest.mark.spark
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_refused_records_become_dead_letters_and_the_rest_arrives(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path, delivery: str
) -> None:
    topic = kafka.topic(2, cleanup_policy="compact", max_message_bytes="2000")
    flow = flow_of(write_kafka(topic, servers=kafka.servers, key="id"), GIVEN, delivery=delivery)
    (report,) = run(flow, penstock_spark, tmp_path)
    arrived = sorted(json.loads(value)["n"] for value in kafka.values(topic))
    assert arrived == list(range(200))
    said = letters_in(tmp_path)
    assert set(said) == {"Row(id=None, n=900, t"[:20], "Row(id='large', n=901"[:20]}
    assert "without a key" in said["Row(id=None, n=900, t"[:20]]
    assert "larger than Kafka takes" in said["Row(id='large', n=901"[:20]]
    assert report.balance == {"read": 202, "written": 200, "dead": 2}
    if delivery == "exactly_once":
        lose_the_end(tmp_path)
        run(flow, penstock_spark, tmp_path)
        assert letters_in(tmp_path) == said, "a batch that is there already has the dead letters that were noted then"
        assert len(kafka.values(topic)) == 200


@pytest.mark.kafka
@pytest.mark.spark
def test_a_record_for_a_topic_that_cannot_be_is_refused_and_can_be_mended(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path
) -> None:
    topic = kafka.topic(1)
    sink = write_kafka("", servers=kafka.servers, format="text", topic_field="to")
    given = [(topic, "a"), ("no such name", "b"), (None, "c"), (topic, "d")]
    run(flow_of(sink, given, "to string, value string"), penstock_spark, tmp_path)
    assert kafka.values(topic) == [b"a", b"d"]
    kept = list(DeadLetterStore(tmp_path / "dead-letters").dead_letters())
    assert sorted(letter["cause"].split(":")[0] for letter in kept) == [
        "Broker",
        "it cannot be sent to the topic None",
    ]
    (wrong,) = (letter for letter in kept if "no such name" in letter["record"])
    wrong["payload"]["record"]["to"] = topic
    Replays(tmp_path / "replay").ask([wrong])
    more = [(topic, f"{n}") for n in range(4)]
    run(flow_of(sink, [*given, *more], "to string, value string", parts=2), penstock_spark, tmp_path)
    assert sorted(kafka.values(topic)) == [b"0", b"1", b"2", b"3", b"a", b"b", b"d"]


@pytest.mark.kafka
@pytest.mark.spark
def test_a_record_that_does_not_fit_the_schema_of_its_topic_is_refused(kafka: Kafka, penstock_spark: Any) -> None:
    topic, rows = kafka.topic(1), [(1,), (None,), (2**40,), (3,)]
    with schema_registry() as registry:
        sink = write_kafka(
            topic, servers=kafka.servers, format="avro", registry=registry.url, value_schema=json.dumps(AVRO)
        )
        (report,) = run_bounded(flow_of(sink, rows, "n bigint", on_error="skip").graph, penstock_spark)
    assert len(kafka.values(topic)) == 2
    assert (report.skipped, report.dead) == ({"out": 2}, {})


@pytest.mark.kafka
@pytest.mark.spark
def test_a_topic_that_refuses_everything_stops_the_flow(
    kafka: Kafka, penstock_spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = kafka.topic(1, cleanup_policy="compact")
    monkeypatch.setattr("penstock.connectors.kafka.refusals.MOST", 2)
    flow = flow_of(write_kafka(topic, servers=kafka.servers), GOOD[:6])
    with pytest.raises(RunError, match="more than 2 records of batch 0, which is taken for a wrong topic"):
        run_bounded(flow.graph, penstock_spark)
    assert kafka.values(topic) == []


def keyless(batch: int) -> Any:
    """The records of a batch with their numbers, one without the key that a compacted topic wants."""
    rows = rows_of(batch).append_column("__number", pa.array(range(ROWS)))
    keys = pa.array([None if n == 9 else f"{batch}-{n}".encode() for n in range(ROWS)])
    return rows.set_column(0, "key", keys)


@pytest.mark.kafka
def test_a_driver_that_was_replaced_while_it_looks_for_refused_records_writes_nothing(kafka: Kafka) -> None:
    topic = kafka.topic(2, cleanup_policy="compact")
    with writer_of(kafka, topic) as old, writer_of(kafka, topic) as new:
        old.take_over()
        waiting, refused = RefusalSearch(old, about(0)).send(keyless(0))
        assert list(refused) == [9]
        new.take_over()
        for _ in range(2):
            transaction, found = RefusalSearch(new, about(0)).send(keyless(0))
            transaction.commit()
        assert (transaction.producer, found) == (None, {}), "a batch that is there is not written, nor looked through"
        with pytest.raises(DeliveryError, match="another driver"):
            RefusalSearch(old, about(0)).send(keyless(0))
        with pytest.raises(DeliveryError, match="another driver"):
            waiting.commit()
        transaction, found = RefusalSearch(new, about(1)).send(keyless(1))
        transaction.commit()
    expected = [f"{b}:{n}".encode() for b in (0, 1) for n in range(ROWS) if n != 9]
    assert Counter(kafka.values(topic)) == Counter(expected)


@pytest.mark.kafka
def test_requests_are_no_larger_than_their_topic_takes(kafka: Kafka) -> None:
    """Else a request of small records is refused as a whole: 1 MB is taken by default."""
    topic = kafka.topic(1, max_message_bytes="2000")
    flow = ps.Flow("small")
    flow.source("rows", ps.items(GOOD, SCHEMA)).sink("out", write_kafka(topic, servers=kafka.servers))
    run_local(flow, write=True)
    assert len(kafka.values(topic)) == len(GOOD)


@pytest.mark.kafka
@pytest.mark.spark
def test_at_most_once_cannot_look_for_refused_records(kafka: Kafka, penstock_spark: Any) -> None:
    flow = flow_of(write_kafka("some", servers=kafka.servers), GOOD[:1], delivery="at_most_once")
    with pytest.raises(Impossible, match="with on_error it holds exactly_once and at_least_once"):
        run_bounded(flow.graph, penstock_spark)
