"""Values of Kafka topics that cannot be read: dead letters with topic, partition and offset, and the way back for them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.kafka.wire import front
from penstock.errors import RunError, StepError
from penstock.graph.endpoints.kafka import kafka as endpoint
from penstock.graph.run import RunSpec
from penstock.kernels.errors.payload import read_payload
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DeadLetterStore
from penstock.spark.run import run_live
from tests.kafka.conftest import Kafka
from tests.kafka.flows import collected
from tests.kafka.registry import Schemas, schema_registry

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
AVRO = {"type": "record", "name": "R", "fields": [{"name": "n", "type": "long"}]}


@pytest.fixture
def registry() -> Iterator[Schemas]:
    with schema_registry() as made:
        yield made


def kept(source: Any, spark: Any, folder: Path) -> tuple[list[Any], list[Any]]:
    """The rows of a source that puts aside what it cannot read, and the letters so far."""
    rows: list[Any] = []
    flow = ps.Flow("malformed")
    flow.source("in", source, on_error="dead_letter").sink("out", ps.callback(lambda more, batch: rows.extend(more)))
    run_live(flow.graph, spark, RunSpec(checkpoint=folder, mode="once")).wait(0.02)
    return rows, sorted(DeadLetterStore(folder / "dead-letters").dead_letters(), key=lambda m: str(m["position"]))


@pytest.mark.parametrize("via", ["spark", "python"])
def test_json_and_keys_that_are_no_text(kafka: Kafka, penstock_spark: Any, tmp_path: Path, via: str) -> None:
    topic = kafka.topic(1)
    kafka.send(topic, [("a", b'{"n": 1}'), ("b", b"no"), (b"\xff", b'{"n": 2}'), ("d", None)])
    made = endpoint(topic, "n bigint", servers=kafka.servers, also="key", via=via)
    rows, letters = kept(made, penstock_spark, tmp_path)
    assert sorted(((r.n, r.key) for r in rows), key=str) == [(1, "a"), (None, "d")]
    assert [m["position"].split(", ", 1)[1] for m in letters] == [
        f"topic {topic}, partition 0, offset 1",
        f"topic {topic}, partition 0, offset 2",
    ]
    assert letters[1]["cause"] == "the key is not UTF-8"
    assert letters[0]["payload"] == {"raw": "no", "schema": "key string", "record": {"key": "b"}}


def test_avro_values_that_cannot_be_read_and_their_way_back(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path, registry: Schemas
) -> None:
    topic = kafka.topic(1)
    number = registry.add(topic, {"schema": json.dumps(AVRO)})
    good = front(number) + bytes([14])
    kafka.send(topic, [("a", good), ("b", front(4711) + b"x"), ("c", front(number)), ("d", b"plain"), ("e", None)])
    made = endpoint(topic, "n bigint", servers=kafka.servers, format="avro", registry=registry.url, also="key")
    rows, letters = kept(made, penstock_spark, tmp_path)
    assert sorted((str(r.n), r.key) for r in rows) == [("7", "a"), ("None", "e")]
    assert ["knows no schema" in letters[0]["cause"], "as Avro" in letters[1]["cause"]] == [True, True]
    assert "does not begin as" in letters[2]["cause"]
    registry.by_id[4711] = {"schema": json.dumps(AVRO)}
    raw = base64.b64encode(front(4711) + bytes([18])).decode()
    mended = {"raw_base64": raw, "schema": "key string", "record": {"key": "b"}}
    Replays(tmp_path / "replay").ask([letters[0] | {"payload": mended}])
    kafka.send(topic, [("f", good)])
    rows, _ = kept(made, penstock_spark, tmp_path)
    assert sorted((r.n, r.key) for r in rows) == [(7, "f"), (9, "b")]


def test_values_of_json_schema_are_put_aside_whole(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path, registry: Schemas
) -> None:
    topic = kafka.topic(1)
    number = registry.add(topic, {"schema": "{}", "schemaType": "JSON"})
    kafka.send(topic, [front(number) + b'{"n": 1}', front(number) + b"no", b"bare"])
    made = endpoint(topic, "n bigint", servers=kafka.servers, format="json_schema", registry=registry.url)
    rows, letters = kept(made, penstock_spark, tmp_path)
    assert [r.n for r in rows] == [1]
    payloads = [read_payload(m["payload"]).raw for m in letters]
    assert payloads == [front(number) + b"no", b"bare"]


def test_a_registry_that_is_down_is_no_fault_of_the_records(kafka: Kafka, penstock_spark: Any, tmp_path: Path) -> None:
    topic = kafka.topic(1)
    kafka.send(topic, [front(1) + b"x"])
    made = endpoint(topic, "n bigint", servers=kafka.servers, format="avro", registry="http://127.0.0.1:9")
    with pytest.raises(RunError, match="does not answer"):
        kept(made, penstock_spark, tmp_path)
    assert list(DeadLetterStore(tmp_path / "dead-letters").dead_letters()) == []


def test_a_value_that_cannot_be_read_is_shown_with_its_place(
    kafka: Kafka, penstock_spark: Any, registry: Schemas
) -> None:
    topic = kafka.topic(1)
    kafka.send(topic, [b"plain"])
    for kind in ("avro", "json"):
        about: dict[str, Any] = {"registry": registry.url} if kind == "avro" else {}
        with pytest.raises(StepError) as stopped:
            collected(endpoint(topic, "n bigint", servers=kafka.servers, format=kind, **about), penstock_spark)
        assert f"topic {topic}, partition 0, offset 0" in str(stopped.value)
        assert "plain" in stopped.value.failure.record
