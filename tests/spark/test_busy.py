"""A live run on a machine so busy that Spark gives up waiting for a Python process of its own."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import penstock as ps
from penstock.errors import RunError
from penstock.graph.run import RunSpec
from penstock.log import Log
from penstock.spark.run import run_live

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]  # Spark waits ten seconds, each time

TARDY = """#!/bin/sh
case "$*" in
  *python_streaming_source_runner*)
    echo >> {folder}/started
    [ $(wc -l < {folder}/started) -gt {late} ] || sleep 15 ;;
esac
exec {python} "$@"
"""


@pytest.mark.parametrize("late", [1, 4])
def test_a_source_that_spark_did_not_wait_for_is_started_again(
    penstock_spark: SparkSession,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    late: int,
) -> None:
    python = tmp_path / "python"
    python.write_text(TARDY.format(folder=tmp_path, late=late, python=sys.executable))
    python.chmod(0o755)
    monkeypatch.setattr(penstock_spark.sparkContext, "pythonExec", str(python))
    with Log(tmp_path / "log") as log, log.producer() as producer:
        log.create_topic("t")
        producer.send_many("t", [b"a", b"b"])
    got: list[bytes] = []
    flow = ps.Flow("busy")
    source = flow.source("in", ps.topic("t", path=tmp_path / "log"))
    source.sink("out", ps.callback(lambda rows, _: got.extend(row.value for row in rows)))
    with caplog.at_level(logging.WARNING, "penstock"):
        run = run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path / "checkpoint", mode="once"))
        if late == 1:
            run.wait()
            assert sorted(got) == [b"a", b"b"]
        else:
            with pytest.raises(RunError, match="failed to connect back"):
                run.wait()
    assert caplog.text.count("the query is started again") == min(late, 3)
