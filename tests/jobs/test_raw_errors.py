"""What befalls the machine is reported in words: the cause, what is safe, what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.preflight import check_outside
from penstock.errors import FlowError, RunError
from penstock.log import Log
from penstock.log.errors import BadSetting
from penstock.spark.failures import as_run_error


class Py4JNetworkError(Exception):
    """As py4j raises it when the JVM is gone."""


class Answer:
    """A cause in a JVM that is gone."""

    def getMessage(self) -> str:  # noqa: N802 - Java's name
        raise ConnectionRefusedError(111, "Connection refused")


@pytest.mark.parametrize(
    "error",
    [
        Py4JNetworkError("Answer from Java side is empty"),
        ConnectionRefusedError(111, "Connection refused"),
        RuntimeError("An error occurred while trying to connect to the Java server (127.0.0.1:43211)"),
        RuntimeError("An error occurred while calling o53.awaitTermination"),
    ],
)
def test_a_jvm_that_was_killed(error: Exception) -> None:
    said = str(as_run_error(error))
    assert "Spark's JVM has ended" in said
    assert "continues from its checkpoint" in said
    assert "spark.driver.memory" in said
    assert "Py4J" not in said


def test_a_call_that_fails_within_the_jvm_is_not_its_end() -> None:
    error = RuntimeError("An error occurred while calling o53.load.\n: java.lang.IllegalStateException: no such thing")
    assert "no such thing" in str(as_run_error(error))


def test_a_cause_that_cannot_be_asked_for_any_more_hides_nothing() -> None:
    error: Any = ValueError("[DIVIDE_BY_ZERO] Division by zero.")
    error.java_exception = Answer()
    assert "DIVIDE_BY_ZERO" in str(as_run_error(error))


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):\n  File x\nOSError: [Errno 28] No space left on device: '/data/state/x'\n\n\tat org",
        "java.io.IOException: No space left on device",
    ],
)
def test_a_full_disk_in_a_worker(text: str) -> None:
    error = as_run_error(Exception(text))
    assert isinstance(error, RunError)
    assert "a disk is full" in str(error)
    assert "nothing is lost" in str(error)
    assert "Traceback" not in str(error)
    assert ("/data/state/x" in str(error)) == ("/data" in text)


@pytest.mark.parametrize("name", [".", "..", ".hidden", "", "a/b"])
def test_names_of_producers_that_are_no_file_names(tmp_path: Path, name: str) -> None:
    with Log(tmp_path) as log, pytest.raises(BadSetting, match="a producer name has"):
        log.producer(name=name or "/")


@pytest.mark.parametrize(
    "name, says", [("a%b", "has a %"), ("a\0b", "has a NUL"), ("x" * 64, "has 64 bytes"), ("ü" * 32, "has 64 bytes")]
)
def test_names_that_postgresql_cannot_hold(name: str, says: str) -> None:
    url = "postgresql://localhost/shop"
    for table, more in ((name, {}), (f"public.{name}", {}), ("t", {"key": name}), ("t", {"workspace": name})):
        with pytest.raises(FlowError, match=says):
            ps.write_postgres(url, table, **more)  # type: ignore[arg-type]
    with pytest.raises(FlowError, match=says):
        ps.postgres(url, name, by="id", schema="id bigint")
    flow = ps.Flow("names")
    flow.source("in", ps.items([], f"id bigint, `{name}` string")).sink("out", ps.write_postgres(url, "t"))
    with pytest.raises(FlowError, match=says):
        check_outside(flow.graph)


def test_names_of_63_bytes_are_fine() -> None:
    ps.write_postgres("postgresql://localhost/shop", f'"{"x" * 63}"."{"y" * 63}"')
