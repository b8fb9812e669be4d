"""The settings of Spark and Kafka that are safer than their defaults, on the driver that is started."""

from __future__ import annotations

import logging
import re
import shlex
from typing import TYPE_CHECKING

import pytest

from penstock.errors import OptionError
from penstock.spark.jvm.hardening import EVERYWHERE, KAFKA, LOCAL_SECURITY, with_kafka_bounds
from penstock.spark.jvm.session import _settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CRYPTO = "spark.network.crypto"


def test_a_local_master_has_every_setting_of_the_threat_model() -> None:
    made = _settings("local[2]", {})
    assert made["spark.authenticate"] == "true"
    assert made["spark.ui.killEnabled"] == "false"
    assert {k.removeprefix(f"{CRYPTO}."): v for k, v in made.items() if k.startswith(CRYPTO)} == {
        "enabled": "true",
        "authEngineVersion": "2",
        "cipher": "AES/GCM/NoPadding",
        "saslFallback": "false",
    }


@pytest.mark.parametrize(
    "weaker",
    [
        (f"{CRYPTO}.cipher", "AES/CTR/NoPadding"),
        (f"{CRYPTO}.authEngineVersion", "1"),
        (f"{CRYPTO}.saslFallback", "TRUE"),
    ],
)
@pytest.mark.parametrize("master", ["local[2]", "spark://host:7077"])
def test_encryption_that_does_not_hold_is_refused(master: str, weaker: tuple[str, str]) -> None:
    given = {f"{CRYPTO}.enabled": "true", **dict([weaker])}
    with pytest.raises(OptionError, match=rf"{weaker[0]}={weaker[1]}.*leave the setting out"):
        _settings(master, given)
    assert _settings(master, {**given, f"{CRYPTO}.enabled": "false"})[weaker[0]] == weaker[1]


def test_a_cluster_whose_encryption_is_left_to_spark_is_told_so(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "penstock"):
        _settings("spark://host:7077", {f"{CRYPTO}.enabled": "true"})
        assert all(f"{name}={value}" in caplog.text for name, value in list(LOCAL_SECURITY.items())[2:])
        caplog.clear()
        _settings("spark://host:7077", dict(LOCAL_SECURITY))
        _settings("spark://host:7077", {})
    assert caplog.text == ""


@pytest.mark.parametrize(
    "name",
    [
        "db.password",
        "AUTH_TOKEN",
        "spark.hadoop.fs.s3a.secret.key",
        "fs.access-key",
        "accessKey",
        "my.api_key",
        "apikey",
        "gcs.credentials",
        "ssl.keystore.passphrase",
        "rsa.private_key",
        "SENTRY_DSN",
    ],
)
def test_spark_hides_what_is_named_as_a_secret(name: str) -> None:
    assert re.search(EVERYWHERE["spark.redaction.regex"].removeprefix("(?i)"), name, re.IGNORECASE)
    assert not re.search(EVERYWHERE["spark.redaction.regex"].removeprefix("(?i)"), "spark.app.name", re.IGNORECASE)


def test_what_a_user_says_of_kafka_stands_beside_the_other_bounds() -> None:
    own = "-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls=https://login.example.org/token"
    made = with_kafka_bounds({"spark.driver.extraJavaOptions": f"{own} -Dtext='a b'"})
    words = shlex.split(made["spark.driver.extraJavaOptions"])
    assert [w for w in words if "allowed.urls" in w] == [own]
    assert "-Dtext=a b" in words
    assert {w[2:].partition("=")[0] for w in shlex.split(made["spark.executor.extraJavaOptions"])} == KAFKA.keys()


@pytest.mark.spark
def test_the_driver_runs_with_them(penstock_spark: SparkSession) -> None:
    system = penstock_spark.sparkContext._jvm.System  # type: ignore[union-attr]
    assert {name: system.getProperty(name) for name in KAFKA} == KAFKA
    conf = dict(penstock_spark.sparkContext.getConf().getAll())
    assert {name: conf.get(name) for name in (*EVERYWHERE, *LOCAL_SECURITY)} == {**EVERYWHERE, **LOCAL_SECURITY}
