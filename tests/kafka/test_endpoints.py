"""What `kafka` and `write_kafka` describe, and what they refuse; no broker is needed."""

from __future__ import annotations

import datetime
import json
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.base import SinkContext
from penstock.connectors.kafka.jars import jars_of, kafka_jars
from penstock.connectors.kafka.sink import KafkaSink
from penstock.errors import FlowError, Impossible, PenstockError, SchemaError
from penstock.graph.endpoints.kafka import kafka, write_kafka
from penstock.graph.picture.describe import describe_graph
from penstock.graph.schema import schema_of
from penstock.spark.batch.sinks import Sinks


def test_text_and_bytes_have_fields_of_their_own() -> None:
    assert str(kafka("t").schema) == (
        "key string, value string, topic string, partition int, offset bigint, timestamp timestamp"
    )
    raw = kafka("t", format="raw", also="headers").schema
    assert raw is not None
    assert str(raw.field("value").type) == "binary"
    assert raw.names[-1] == "headers"


def test_a_schema_means_json_and_also_adds_what_a_record_carries() -> None:
    made = kafka("t", "user string, n bigint", also="partition, key")
    assert made.options["format"] == "json"
    assert str(made.schema) == "user string, n bigint, partition int, key string"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"format": "jsn"}, "json"),
        ({"format": "json"}, "needs schema="),
        ({"also": "partitoin"}, "partition"),
        ({"schema": "key string", "also": "key"}, "leave out one"),
        ({"format": "text", "schema": "a int"}, "fields of its own"),
        ({"start": "begin"}, "'earliest', 'latest'"),
        ({"start": datetime.datetime(2024, 5, 1)}, "time zone"),
        ({"via": "java"}, "'spark'"),
        ({"servers": "localhost"}, "host:port"),
        ({"format": "avro", "schema": "a int"}, "registry="),
        ({"registry": "http://r"}, "goes with format"),
        ({"format": "avro", "schema": "a int", "registry": "http://ada:hush@r"}, "registry_options"),
        ({"options": {"group.id": "mine"}}, "group="),
        ({"options": {"config.providers": "file"}}, "env:NAME"),
        ({"options": {"sasl.jaas.config": "com.sun.security.auth.module.JndiLoginModule required;"}}, "foreign code"),
        ({"options": {"sasl.oauthbearer.token.endpoint.url": "file:///etc/passwd"}}, "https"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_hint(given: dict[str, Any], said: str) -> None:
    with pytest.raises(FlowError, match=said) as caught:
        kafka("t", **given)
    assert "hush" not in str(caught.value)


def test_secrets_are_in_no_description_of_a_flow() -> None:
    options = {
        "security.protocol": "SASL_SSL",
        "sasl.password": "canary-one",
        "kafka.sasl.jaas.config": 'x required password="canary-two";',
        "ssl.key.password": "canary-three",
        "ssl.keystore.key": "canary-four",
    }
    flow = ps.Flow("secret")
    source = flow.source("in", kafka("t", options=options))
    source.sink("out", write_kafka("u", options=options))
    avro: dict[str, Any] = {
        "format": "avro",
        "registry": "http://r",
        "registry_options": {"user": "ada", "password": "canary-five"},
    }
    flow.source("avro", kafka("t", "a int", **avro)).sink("more", ps.console())
    shown = json.dumps(describe_graph(flow.graph)) + repr(flow.graph) + str([n.settings() for n in flow.graph.nodes])
    assert "canary" not in shown
    assert "SASL_SSL" in shown


def test_jars_are_pinned_and_only_needed_where_spark_reads() -> None:
    assert {j.module for j in kafka_jars()} >= {"kafka-clients", "spark-sql-kafka-0-10_2.13"}
    assert all(len(j.sha256) == 64 for j in (*kafka_jars(), *kafka_jars("broker")))
    assert jars_of([kafka("t")]) == kafka_jars()
    assert jars_of([kafka("t", via="python"), ps.console()]) == ()


@pytest.mark.parametrize(
    ("client", "said"),
    [
        ({"acks": "1"}, "acks=all"),
        ({"enable.idempotence": False}, "written twice"),
        ({"transactional.id": "mine"}, "fences"),
        ({"transaction.timeout.ms": 3_600_000}, "hold up readers"),
    ],
)
def test_client_settings_that_break_exactly_once_are_refused_for_it_alone(client: dict[str, Any], said: str) -> None:
    def refusal(delivery: str) -> str:
        options = dict(write_kafka("t", options=client).options)
        return KafkaSink().refuses(SinkContext("out", "flow", options, schema_of("a int"), "x", delivery))

    assert said in refusal("exactly_once")
    assert refusal("at_least_once") == ""


@pytest.mark.parametrize(
    ("given", "schema", "said"),
    [
        ({"key": "usr"}, "user string", "user"),
        ({"format": "text"}, "a string, b string", "Name one 'value'"),
        ({"format": "text"}, "value int", "is int"),
    ],
)
def test_fields_that_a_sink_cannot_write_are_refused(given: dict[str, Any], schema: str, said: str) -> None:
    options = dict(write_kafka("t", **given).options)
    with pytest.raises(SchemaError, match=said):
        KafkaSink().refuses(SinkContext("out", "flow", options, schema_of(schema), "x"))


def test_a_sink_needs_one_place_to_write_to() -> None:
    with pytest.raises(PenstockError, match="topic_field"):
        write_kafka("")
    with pytest.raises(PenstockError, match="value_schema"):
        write_kafka("t", format="avro", registry="http://r")


def test_event_time_knows_the_partitions_of_a_topic() -> None:
    flow = ps.Flow("timed")
    flow.source("each", kafka("t", "at timestamp", also="partition"), event_time="at")
    flow.source("own", kafka("t", "at timestamp", also="partition"), event_time="at", partition="")
    flow.source("none", kafka("t", "at timestamp"), event_time="at")
    found = {n.name: getattr(n, "partition", None) for n in flow.graph.nodes if n.kind == "event_time"}
    assert found == {"each@time": "partition", "own@time": "", "none@time": ""}


def test_a_pattern_may_have_commas() -> None:
    assert kafka("t{1,2}", pattern=True).options["topics"] == ["t{1,2}"]
    assert kafka("a, b").options["topics"] == ["a", "b"]


@pytest.mark.parametrize("name", ["plugin.library.paths", "metric.reporters", "sasl.kerberos.kinit.cmd"])
def test_settings_that_would_run_something_are_refused(name: str) -> None:
    with pytest.raises(FlowError, match=f"the option '{name}' is not taken: it would run"):
        kafka("t", options={name: "x"})


def test_a_schema_is_registered_under_one_topic() -> None:
    with pytest.raises(FlowError, match="registers its schema under the topic"):
        write_kafka("", topic_field="to", format="avro", registry="http://r", value_schema="{}")


def test_record_ids_go_with_exactly_once_only() -> None:
    flow = ps.Flow("ids")
    rows = flow.source("in", ps.items([], "n bigint"))
    rows.sink("out", write_kafka("t", record_ids=True), delivery="at_least_once")
    with pytest.raises(Impossible, match="leave record_ids out"):
        Sinks(flow.graph, "life")
