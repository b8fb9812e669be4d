"""Passwords reach the broker and nothing else: no log, plan, description, checkpoint or error has them."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.base import SourceContext
from penstock.connectors.kafka.source import KafkaSource
from penstock.errors import PenstockError
from penstock.graph.endpoints.kafka import kafka as endpoint
from penstock.graph.endpoints.kafka import write_kafka
from penstock.graph.picture.describe import describe_graph
from penstock.graph.run import RunSpec
from penstock.spark.jvm.gateway import spark_log
from penstock.spark.run import run_live
from tests.kafka.conftest import PASSWORD, Kafka
from tests.kafka.flows import collected

pytestmark = [pytest.mark.kafka, pytest.mark.spark]
WRONG = "kanarie-wrong-1c"
VIAS = ["spark", "python"]


def logged() -> str:
    log = spark_log()
    return log.read_text(errors="replace") if log is not None else ""


def test_a_password_is_nowhere_but_with_the_broker(
    kafka: Kafka, penstock_spark: Any, tmp_path: Path, capfd: Any, caplog: Any
) -> None:
    topic, out = kafka.topic(), kafka.topic()
    kafka.send(topic, ["one", "two"])
    caplog.set_level(logging.DEBUG)
    flow = ps.Flow("secret")
    read = {via: flow.source(f"in_{via}", endpoint(topic, via=via, **kafka.sasl())) for via in VIAS}
    both = read["spark"].union("both", read["python"])
    for delivery in ("exactly_once", "at_least_once"):
        both.sink(delivery, write_kafka(out, format="text", **kafka.sasl()), delivery=delivery)
    reports: list[Any] = []
    options = RunSpec(checkpoint=tmp_path, mode="once")
    run = run_live(flow.graph, penstock_spark, options, observers=(reports.append,))
    run.wait(0.02)
    assert len(kafka.read(out)) == 8
    said = capfd.readouterr()
    kept = "".join(p.read_text(errors="replace") for p in tmp_path.rglob("*") if p.is_file())
    progress = json.dumps([str(p) for p in run.query.recentProgress])
    shown = [
        said.out,
        said.err,
        caplog.text,
        logged(),
        kept,
        progress,
        repr(reports),
        json.dumps(describe_graph(flow.graph)),
    ]
    assert [at for at, text in enumerate(shown) if PASSWORD in text] == []


def test_a_plan_does_not_show_the_password(kafka: Kafka, penstock_spark: Any, tmp_path: Path) -> None:
    topic = kafka.topic()
    for via in VIAS:
        made = endpoint(topic, via=via, **kafka.sasl())
        assert made.schema is not None
        source = KafkaSource()
        frame = source.stream(penstock_spark, SourceContext("in", made, made.schema, tmp_path / via, flow="plan"))
        assert PASSWORD not in frame._jdf.queryExecution().toString()
        bounded = source.bounded(penstock_spark, SourceContext("in", made, made.schema, tmp_path / via, flow="plan"))
        assert PASSWORD not in bounded._jdf.queryExecution().toString()
        source.close()


@pytest.mark.parametrize("via", VIAS)
def test_a_wrong_password_is_refused_and_not_repeated(kafka: Kafka, penstock_spark: Any, capfd: Any, via: str) -> None:
    topic = kafka.topic()
    with pytest.raises(PenstockError) as caught:
        collected(endpoint(topic, via=via, **kafka.sasl(WRONG)), penstock_spark)
    said = capfd.readouterr()
    assert WRONG not in f"{caught.value!r}{said.out}{said.err}{logged()}"


@pytest.mark.parametrize("via", VIAS)
def test_tls_with_a_certificate_of_ones_own(kafka: Kafka, penstock_spark: Any, tmp_path: Path, via: str) -> None:
    topic, out = kafka.topic(), kafka.topic()
    kafka.send(topic, ["one", "two"])
    flow = ps.Flow("tls")
    source = flow.source("in", endpoint(topic, via=via, **kafka.tls()))
    source.sink("once", write_kafka(out, format="text", **kafka.tls()))
    source.sink("more", write_kafka(out, format="text", via=via, **kafka.tls()), delivery="at_least_once")
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path, mode="once")).wait(0.02)
    assert sorted(kafka.values(out)) == [b"one", b"one", b"two", b"two"]
