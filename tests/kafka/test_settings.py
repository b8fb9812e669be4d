"""One set of client settings serves Kafka's Java client and librdkafka."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from penstock.connectors.kafka.admin import Cluster
from penstock.connectors.kafka.settings import LOG, java_settings, looked_up, python_settings
from penstock.errors import SetupError

LOGIN = {"security.protocol": "SASL_SSL", "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "ada"}


def test_names_and_passwords_become_a_login_for_the_jvm_and_back() -> None:
    made = java_settings("h:1", {**LOGIN, "sasl.password": 'a"b\\c'})
    assert made["kafka.bootstrap.servers"] == "h:1"
    assert made["kafka.sasl.jaas.config"].endswith('username="ada" password="a\\"b\\\\c";')
    assert "ScramLoginModule" in made["kafka.sasl.jaas.config"]
    assert not any("sasl.password" in name for name in made)
    config = made["kafka.sasl.jaas.config"]
    back = python_settings("h:1", {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": config})
    assert (back["sasl.username"], back["sasl.password"]) == ("ada", 'a"b\\c')
    assert "sasl.jaas.config" not in back


def test_pem_files_become_trust_and_key_for_the_jvm(tmp_path: Path) -> None:
    for name in ("ca", "cert", "key"):
        (tmp_path / name).write_text(f"PEM {name}")
    given = {
        "ssl.ca.location": str(tmp_path / "ca"),
        "ssl.certificate.location": str(tmp_path / "cert"),
        "ssl.key.location": str(tmp_path / "key"),
        "ssl.key.password": "word",
    }
    made = java_settings("h:1", given)
    assert made["kafka.ssl.truststore.certificates"] == "PEM ca"
    assert (made["kafka.ssl.keystore.certificate.chain"], made["kafka.ssl.keystore.key"]) == ("PEM cert", "PEM key")
    assert made["kafka.ssl.key.password"] == "word"
    assert {k: v for k, v in python_settings("h:1", given).items() if k in given} == given


def test_a_java_key_store_cannot_be_read_by_python() -> None:
    with pytest.raises(SetupError, match=r"ssl\.ca\.location"):
        python_settings("h:1", {"ssl.truststore.location": "/x.jks"})


def test_values_may_stand_in_the_environment_or_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "word").write_text("from-file\n")
    monkeypatch.setenv("KAFKA_WORD", "from-env")
    assert (looked_up("env:KAFKA_WORD"), looked_up(f"file:{tmp_path / 'word'}")) == ("from-env", "from-file")
    with pytest.raises(SetupError, match="KAFKA_OTHER"):
        looked_up("env:KAFKA_OTHER")
    with pytest.raises(SetupError, match="cannot be read"):
        looked_up("file:/nowhere/word")


def test_a_client_that_does_not_reach_its_broker_says_so_once(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(KafkaException):
        Cluster("localhost:1,127.0.0.1:1", {}).metadata(patience=3)
    said = [record.getMessage() for record in caplog.records if record.name == LOG.name]
    assert any("Connection refused" in each for each in said)
    plain = [each.split(" (after ")[0] for each in said]
    assert len(plain) == len(set(plain))
