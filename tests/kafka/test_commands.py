"""`penstock kafka topics`, `produce` and `consume` against a real broker; and what they say where there is none."""

from __future__ import annotations

import json
from typing import Any

import pytest
from confluent_kafka import KafkaError
from typer.testing import CliRunner

from penstock.errors import RunError
from penstock.jobs import kafka as tools
from penstock.jobs.ports import free_port
from tests.command_line import make_app
from tests.kafka.conftest import Kafka

runner = CliRunner()


def run(*words: Any, stdin: str = "", code: int = 0) -> str:
    done = runner.invoke(make_app(), ["kafka", *map(str, words)], input=stdin, env={"COLUMNS": "300"})
    assert done.exit_code == code, done.output
    return done.output


@pytest.mark.spark
def test_topics_are_made_filled_read_and_deleted(kafka: Kafka) -> None:
    at = ("--servers", kafka.servers)
    assert "created words: 2 partitions" in run("topics", "--create", "words", "--partitions", 2, *at)
    assert "words: 3 records stored" in run("produce", "words", *at, "--key-separator", ":", stdin="a:1\nb:2\nc\n")
    (row,) = [r for r in json.loads(run("topics", "--json", *at)) if r["topic"] == "words"]
    assert (row["partitions"], row["offsets"]) == (2, 3)
    assert sorted(run("consume", "words", *at).split()) == ["1", "2", "c"]
    records = [json.loads(line) for line in run("consume", "words", "--json", *at).splitlines()]
    assert sorted((r["key"], r["value"]) for r in records if r["key"]) == [("a", "1"), ("b", "2")]
    assert len(run("consume", "words", "--limit", 1, *at).split()) == 1
    assert "did you mean 'words'" in run("consume", "wrods", *at, code=2)
    assert "already exists" in run("topics", "--create", "words", *at, code=2)
    assert "deleted words" in run("topics", "--delete", "words", *at)


@pytest.mark.spark
def test_a_topic_written_in_transactions_ends_too(kafka: Kafka) -> None:
    topic = kafka.topic(1)
    producer = kafka.producer(**{"transactional.id": f"t-{topic}"})
    producer.init_transactions(300)
    producer.begin_transaction()
    producer.produce(topic, b"x")
    producer.commit_transaction(300)
    producer.close()
    assert run("consume", topic, "--servers", kafka.servers).split() == ["x"]


def test_a_cluster_that_does_not_answer_is_told_with_the_command_that_starts_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tools, "PATIENCE", 1.0)
    at = ("--servers", f"127.0.0.1:{free_port()}")
    for words in (["topics"], ["produce", "t"], ["consume", "t"]):
        out = run(*words, *at, code=1)
        assert "does not answer" in out
        assert "penstock kafka start" in out


def test_wrong_settings_are_wrong_usage() -> None:
    assert "--setting: expected KEY=VALUE" in run("topics", "--setting", "x", code=2)
    assert "there is no file gone.txt" in run("produce", "t", "gone.txt", code=2)


class SilentCluster:
    """A cluster with one record that it does not send."""

    def __init__(self, error: KafkaError | None) -> None:
        self.error_ = error

    def get_watermark_offsets(self, *_: object) -> tuple[int, int]:
        return 0, 1

    def assign(self, *_: object) -> None:
        pass

    def poll(self, *_: object) -> SilentCluster | None:
        return None if self.error_ is None else self

    def error(self) -> KafkaError | None:
        return self.error_

    def position(self, partitions: list[Any]) -> list[Any]:
        return partitions

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("error", "follow", "message"),
    [
        (None, False, "has more records, but nowhere has sent none for 0.3 s"),
        (KafkaError._TRANSPORT, False, "has more records, but nowhere has sent none for 0.3 s: "),
        (KafkaError.TOPIC_AUTHORIZATION_FAILED, True, "topic 't' cannot be read: "),
    ],
)
def test_a_cluster_that_sends_nothing_is_an_error_and_no_wait_for_ever(
    error: int | None, follow: bool, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tools, "PATIENCE", 0.1)
    silent = SilentCluster(None if error is None else KafkaError(error))
    monkeypatch.setattr(tools.KafkaTools, "_check", lambda self, topic: [0])
    monkeypatch.setattr(tools.KafkaTools, "_consumer", lambda self: silent)
    with pytest.raises(RunError, match=message):
        list(tools.KafkaTools("nowhere", {}).consume("t", follow=follow))
