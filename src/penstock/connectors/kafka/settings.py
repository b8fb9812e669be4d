"""Settings of Kafka clients: one set from the user, in the spelling of either client, for both.

Spark's connector takes the names of Kafka's Java client, confluent-kafka those of librdkafka. The two differ where TLS and
SASL are concerned; here each is made of the other. A value may be `env:NAME` or `file:/path`: it is looked up when the
client is made, so the flow itself holds no secret.
"""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from penstock.errors import SetupError
from penstock.graph.endpoints.secrets import Secret

AGAIN = 30.0
"""So many seconds a client does not say the same again."""


class Repetitions(logging.Filter):
    """Lets through what was not said lately: a client that does not reach its broker says so ten times a second.

    >>> repetitions = Repetitions()
    >>> said = ("failed (after 3ms)", "failed (after 12ms)", "failed (after 9ms, 1 identical error(s) suppressed)", "other")
    >>> [repetitions.filter(logging.makeLogRecord({"msg": each})) for each in said]
    [True, False, False, True]
    """

    def __init__(self) -> None:
        super().__init__()
        self.last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether this is new, but for how long it took."""
        text, now = _SINCE.sub("", record.getMessage()), time.monotonic()
        if now - self.last.get(text, -AGAIN) < AGAIN:
            return False
        self.last = {t: at for t, at in self.last.items() if now - at < AGAIN} | {text: now}
        return True


_SINCE = re.compile(r"\(after .*\)")
LOG = logging.getLogger("penstock.kafka")
"""What clients say beside their errors; silent unless the user listens to it."""
LOG.addHandler(logging.NullHandler())
LOG.addFilter(Repetitions())
_JAVA_ONLY = ("ssl.truststore.", "ssl.keystore.", "sasl.jaas.config", "ssl.engine.factory", "sasl.client.callback")
_JAVA_NAMES = (
    "max.poll.records", "buffer.memory", "max.block.ms", "default.api.timeout.ms", "receive.buffer.bytes", "send.buffer.bytes",
    "max.request.size", "metrics.recording.level",
)  # fmt: skip
"""Settings that librdkafka does not know, and that change nothing for it."""
_PYTHON_ONLY = ("sasl.username", "sasl.password", "ssl.ca.location", "ssl.ca.pem", "ssl.certificate.", "ssl.key.")
_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}


def looked_up(value: str) -> str:
    """A value, or what stands where it points to.

    >>> looked_up("plain")
    'plain'
    """
    kind, _, location = value.partition(":")
    if kind == "env":
        if location not in os.environ:
            raise SetupError(f"a Kafka setting is 'env:{location}', and the environment has no {location}")
        return os.environ[location]
    if kind == "file":
        try:
            return Path(location).read_text().rstrip("\n")
        except OSError as error:
            raise SetupError(f"a Kafka setting is 'file:{location}', which cannot be read: {error.strerror}") from None
    return str(value)


def java_settings(servers: str, given: Mapping[str, str]) -> dict[str, str]:
    """The settings for Kafka's Java client, with the prefix that Spark's connector wants."""
    if any(isinstance(value, Secret) for value in given.values()):
        _hush_py4j()
    found = {name: looked_up(value) for name, value in given.items()}
    made = {k: v for k, v in found.items() if not k.startswith(_PYTHON_ONLY) or k == "ssl.key.password"}
    made |= _java_sasl(found) | _java_tls(found)
    return {f"kafka.{name}": value for name, value in {"bootstrap.servers": servers, **made}.items()}


def _hush_py4j() -> None:
    """Keeps the link to the JVM from logging what passes over it, which it does when all loggers are set to debug."""
    log = logging.getLogger("py4j")
    if log.getEffectiveLevel() < logging.INFO:
        log.setLevel(logging.INFO)


def _java_sasl(given: Mapping[str, str]) -> dict[str, str]:
    if "sasl.username" not in given or "sasl.jaas.config" in given:
        return {}
    mechanism = given.get("sasl.mechanism", given.get("sasl.mechanisms", "PLAIN"))
    if mechanism not in _LOGIN:
        raise SetupError(f"sasl.username goes with {', '.join(_LOGIN)}; for {mechanism} give sasl.jaas.config")
    name, word = (_quoted(given.get(f"sasl.{each}", "")) for each in ("username", "password"))
    return {
        "sasl.mechanism": mechanism,
        "sasl.jaas.config": f"{_LOGIN[mechanism]} required username={name} password={word};",
    }


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _java_tls(given: Mapping[str, str]) -> dict[str, str]:
    made: dict[str, str] = {}
    if "ssl.ca.location" in given or "ssl.ca.pem" in given:
        pem = given.get("ssl.ca.pem") or _pem(given["ssl.ca.location"])
        made |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": pem}
    if "ssl.certificate.location" in given or "ssl.certificate.pem" in given:
        chain = given.get("ssl.certificate.pem") or _pem(given["ssl.certificate.location"])
        key = given.get("ssl.key.pem") or _pem(given.get("ssl.key.location", given.get("ssl.certificate.location", "")))
        made |= {"ssl.keystore.type": "PEM", "ssl.keystore.certificate.chain": chain, "ssl.keystore.key": key}
    return made


def _pem(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError as error:
        raise SetupError(f"the file {path} of a Kafka setting cannot be read: {error.strerror}") from None


def python_settings(servers: str, given: Mapping[str, str]) -> dict[str, Any]:
    """The settings for confluent-kafka."""
    found = {name: looked_up(value) for name, value in given.items()}
    made = {k: v for k, v in found.items() if not k.startswith(_JAVA_ONLY) and k not in _JAVA_NAMES}
    made |= _python_sasl(found) | _python_tls(found)
    return {"bootstrap.servers": servers, "logger": LOG, "log_level": 3, **made}


def _python_sasl(given: Mapping[str, str]) -> dict[str, str]:
    config = given.get("sasl.jaas.config")
    if config is None or "sasl.username" in given:
        return {}
    found = dict(re.findall(r'(username|password)\s*=\s*"((?:[^"\\]|\\.)*)"', config))
    if set(found) != {"username", "password"}:
        raise SetupError(
            "sasl.jaas.config has no username and password in double quotes; give sasl.username and sasl.password"
        )
    return {f"sasl.{name}": re.sub(r"\\(.)", r"\1", word) for name, word in found.items()}


def _python_tls(given: Mapping[str, str]) -> dict[str, str]:
    made: dict[str, str] = {}
    for store, mine in (("truststore", "ssl.ca.location"), ("keystore", "ssl.certificate.location")):
        location = given.get(f"ssl.{store}.location")
        if location is None or mine in given:
            continue
        if given.get(f"ssl.{store}.type", "JKS").upper() != "PEM":
            raise SetupError(
                f"ssl.{store}.location is a Java key store, which only the JVM reads; give PEM files: {mine}"
                + (", ssl.key.location" if store == "keystore" else "")
            )
        made[mine] = location
        if store == "keystore":
            made["ssl.key.location"] = given.get("ssl.key.location", location)
    names = {"ssl.truststore.certificates": "ssl.ca.pem", "ssl.keystore.certificate.chain": "ssl.certificate.pem"}
    names["ssl.keystore.key"] = "ssl.key.pem"
    made |= {mine: given[theirs] for theirs, mine in names.items() if theirs in given}
    return made


def confluent() -> Any:
    """The confluent-kafka package, or an error that says how to get it."""
    try:
        import confluent_kafka
    except ImportError:
        raise SetupError("Kafka needs the package confluent-kafka: pip install 'penstock[kafka]'") from None
    return confluent_kafka
