"""Where Spark and the Kafka client are less safe by default than they can be: what Penstock sets on the driver that it starts, and what it refuses."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from penstock.errors import OptionError
from penstock.spark.jvm.command import OPTIONS

EXECUTOR_OPTIONS = "spark.executor.extraJavaOptions"
EVERYWHERE: dict[str, str] = {
    "spark.ui.killEnabled": "false",
    "spark.redaction.regex": r"(?i)secret|password|passphrase|token|credential|dsn|access[._-]?key|api[._-]?key|private[._-]?key",
}
"""Set for every master unless the user sets it: Spark's pages end no work, and show no secret."""
LOCAL_SECURITY: dict[str, str] = {
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.cipher": "AES/GCM/NoPadding",
    "spark.network.crypto.saslFallback": "false",
}
"""Set for a local master: other users of the machine cannot talk to Spark's ports. Spark makes the secret itself and shows it nowhere."""
KAFKA: dict[str, str] = {
    "org.apache.kafka.sasl.oauthbearer.allowed.urls": "",
    "org.apache.kafka.disallowed.login.modules": "com.sun.security.auth.module.JndiLoginModule,com.sun.security.auth.module.LdapLoginModule",
    "org.apache.kafka.automatic.config.providers": "none",
}
"""Properties of a JVM: what an option of a Kafka client cannot have it do. Without them one may read files, call other hosts, and load foreign code."""
_WHY = {
    "spark.network.crypto.cipher": "which also finds messages that were changed",
    "spark.network.crypto.authEngineVersion": "whose keys are bound to the whole handshake",
    "spark.network.crypto.saslFallback": "so that nobody can ask for weaker encryption",
}


def check_encryption(settings: Mapping[str, str]) -> None:
    """Refuses encryption that is said to be there and does not hold; none at all is a choice.

    Raises:
        OptionError: messages can be changed on their way, or whoever connects may ask for something weaker.

    >>> check_encryption({"spark.network.crypto.enabled": "true", "spark.network.crypto.cipher": "AES/CTR/NoPadding"})
    Traceback (most recent call last):
    penstock.errors.OptionError: spark.network.crypto.cipher=AES/CTR/NoPadding with spark.network.crypto.enabled=true: expected AES/GCM/NoPadding, which also finds messages that were changed; leave the setting out
    """
    if settings.get("spark.network.crypto.enabled", "").strip().lower() != "true":
        return
    for name, why in _WHY.items():
        given, expected = settings.get(name), LOCAL_SECURITY[name]
        if given is not None and given.strip().lower() != expected.lower():
            raise OptionError(
                f"{name}={given} with spark.network.crypto.enabled=true: expected {expected}, {why}; leave the setting out"
            )


def left_weak(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The settings of encryption that are left to Spark, which takes weaker ones; empty where there is no encryption.

    >>> left_weak({"spark.network.crypto.enabled": "true", "spark.network.crypto.authEngineVersion": "2"})
    ('spark.network.crypto.cipher=AES/GCM/NoPadding', 'spark.network.crypto.saslFallback=false')
    """
    if settings.get("spark.network.crypto.enabled", "").strip().lower() != "true":
        return ()
    return tuple(f"{name}={LOCAL_SECURITY[name]}" for name in _WHY if name not in settings)


def with_kafka_bounds(settings: Mapping[str, str]) -> dict[str, str]:
    """Settings whose driver and executors have the bounds of Kafka clients; properties that the user gives stand.

    >>> with_kafka_bounds({})["spark.executor.extraJavaOptions"].split()[0]
    '-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls='
    """
    return {**settings, **{name: _bounded(settings.get(name, "")) for name in (OPTIONS, EXECUTOR_OPTIONS)}}


def _bounded(given: str) -> str:
    named = {word.removeprefix("-D").partition("=")[0] for word in shlex.split(given)}
    own = [f"-D{name}={value}" for name, value in KAFKA.items() if name not in named]
    return " ".join((*own, given)).strip()
