"""Kafka read and written without a JVM of ours, by its Python client."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import penstock as ps
from penstock.errors import StepError
from penstock.testing import run_local

if TYPE_CHECKING:
    from tests.kafka.conftest import Kafka

pytestmark = [pytest.mark.kafka, pytest.mark.spark]  # the broker is a JVM


def test_what_a_local_run_writes_another_reads(kafka: Kafka) -> None:
    topic = kafka.topic()
    flow = ps.Flow("write")
    rows = flow.source("rows", ps.items([("a", 1), ("b", 2), ("c", None)], "k string, n bigint"))
    rows.sink("out", ps.write_kafka(topic, servers=kafka.servers, key="k"))
    run_local(flow, write=True)
    flow = ps.Flow("read")
    read = flow.source("in", ps.kafka(topic, "k string, n bigint", servers=kafka.servers, also=["key", "offset"]))
    read.sink("out", ps.console())
    flow.source("texts", ps.kafka(topic, servers=kafka.servers)).sink("texts-out", ps.console())
    made = run_local(flow)
    assert sorted((r.k, r.n, r.key) for r in made["out"]) == [("a", 1, "a"), ("b", 2, "b"), ("c", None, "c")]
    assert sorted(r.value for r in made["texts-out"]) == ['{"k":"a","n":1}', '{"k":"b","n":2}', '{"k":"c","n":null}']


def test_a_value_that_is_no_record_is_named(kafka: Kafka) -> None:
    topic = kafka.topic(1)
    flow = ps.Flow("write")
    rows = flow.source("rows", ps.items(["{}", "nonsense"], "value string"))
    rows.sink("out", ps.write_kafka(topic, servers=kafka.servers, format="text"))
    run_local(flow, write=True)
    flow = ps.Flow("read")
    flow.source("in", ps.kafka(topic, "n bigint", servers=kafka.servers)).sink("out", ps.console())
    with pytest.raises(StepError, match="not JSON") as caught:
        run_local(flow)
    assert caught.value.failure.position == f"topic {topic}, partition 0, offset 1"
