"""A spout of a bounded run that asks Spark in `next_tuple`, where its bolts hold all cores or all but one."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.connectors.process import own_jobs
from penstock.errors import RunError
from penstock.testing import run_spark
from tests.waiting import wait_until

pytestmark = pytest.mark.spark


class Asks(ps.Spout):
    """Asks Spark when so many tasks run."""

    outputs = "n bigint"

    def __init__(self, many: int, running: int) -> None:
        self.many, self.running = many, running

    def next_tuple(self) -> Any:
        from pyspark.sql import SparkSession

        if self.many == 0:
            return ps.END
        self.many -= 1
        spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()
        wait_until(lambda: running_tasks(spark) >= self.running)
        return [spark.range(5).count()]


def running_tasks(spark: Any) -> int:
    tracker = spark.sparkContext.statusTracker()
    stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
    return sum(stage.numActiveTasks for stage in stages if stage is not None)


class Same(ps.Bolt):
    outputs = "n bigint"
    stateful = False

    def process(self, tup: Any) -> Any:
        yield tup.n


def asking(tasks: int) -> ps.Topology:
    top = ps.Topology("asks")
    top.spout("asks", Asks(2, min(tasks, 2)))
    top.bolt("same", Same(), parallelism=tasks).shuffle("asks")
    top.sink("out", ps.console(), from_="same")
    return top


def test_a_spout_gets_answers_while_a_core_is_left(penstock_spark: Any) -> None:
    assert run_spark(asking(1), penstock_spark)["out"] == [(5,), (5,)]


def test_a_spout_that_would_wait_for_its_own_bolts_ends_the_run(
    penstock_spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_jobs, "PATIENCE", 1.0)
    with pytest.raises(RunError, match=r"spout 'asks' asks Spark in next_tuple, .* Ask in open\(self, context\)"):
        run_spark(asking(4), penstock_spark)
