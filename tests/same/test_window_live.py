"""Windows in a live run that goes on: they close on quiet input, and survive a restart."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import penstock as ps
from penstock.testing import run_spark
from tests.same.test_window import CLICKS, LATE, Joined, at, clicks, cut

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


class Until:
    """A sink that ends the run when it has got something."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.run: Any = None

    def take(self, rows: list[Any], batch: Any) -> None:
        self.rows += rows
        if rows and self.run is not None:
            self.run.ask_to_stop()


def started(flow: ps.Flow, spark: SparkSession, folder: Path, until: Until) -> None:
    """Runs until something has come, or too much time has passed."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    until.run = run_live(flow.graph, spark, RunSpec(checkpoint=folder, duration=300))
    until.run.wait(pause=0.05)


@pytest.mark.parametrize("spec", [ps.tumbling("10s"), ps.session("500ms")], ids=str)
def test_windows_close_on_quiet_input(penstock_spark: SparkSession, tmp_path: Path, spec: Any) -> None:
    flow, until = ps.Flow("quiet"), Until()
    source = flow.source("clicks", ps.items([("a", at(9.6))], "user string, ts timestamp"), event_time="ts", idle="1s")
    source.key_by("user").window(spec).count("n").sink("out", ps.callback(until.take))
    started(flow, penstock_spark, tmp_path, until)
    assert [(r.user, r.n) for r in until.rows] == [("a", 1)]


@pytest.mark.parametrize("how", [{"clock": "processing"}, {"early": ps.every_interval("1s")}], ids=str)
def test_the_clock_ends_windows_and_gives_early_results(
    penstock_spark: SparkSession, tmp_path: Path, how: dict[str, Any]
) -> None:
    flow, until = ps.Flow("clock"), Until()
    source = flow.source("clicks", ps.items([("a", at(1))], "user string, ts timestamp"), event_time="ts", idle=None)
    source.key_by("user").window(ps.tumbling("2s"), **how).count("n").sink("out", ps.callback(until.take))
    started(flow, penstock_spark, tmp_path, until)
    assert [(r.user, r.n) for r in until.rows] == [("a", 1)]


@pytest.mark.parametrize("spec", [ps.sliding("20s", every="10s"), ps.session("15s")], ids=str)
def test_open_windows_go_on_after_a_restart(penstock_spark: SparkSession, tmp_path: Path, spec: Any) -> None:
    """The same flow, stopped in the middle and started again with more records."""
    records = [("a", at(s), s) for s in range(0, 60, 4)]
    flow, stream = clicks("restart", lateness="5s")
    stream.key_by("user").window(spec).sum("n", "n").sink("out", ps.console())
    whole = run_spark(flow, penstock_spark, {"clicks": records})["out"]
    first = run_spark(flow, penstock_spark, {"clicks": records[:7]}, cuts={"clicks": [3]}, folder=tmp_path, drain=False)
    second = run_spark(flow, penstock_spark, {"clicks": records}, cuts={"clicks": [3, 7, 11]}, folder=tmp_path)
    assert sorted([*first["out"], *second["out"]]) == sorted(whole)


@pytest.mark.parametrize("aggregate", ["count(*)", Joined], ids=["native", "own"])
def test_late_records_that_nobody_reads_are_counted_in_the_report(
    penstock_spark: SparkSession, tmp_path: Path, aggregate: Any
) -> None:
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    records, cuts = cut(LATE)
    batches: Any = cuts
    flow = ps.Flow("counted")
    source = flow.source("clicks", ps.items(records, CLICKS, batches=batches), event_time="ts")
    source.key_by("user").window(ps.tumbling("10s")).aggregate("w", n=aggregate).sink(
        "out", ps.callback(lambda *_: None)
    )
    reports: list[Any] = []
    run_live(flow.graph, penstock_spark, RunSpec(checkpoint=tmp_path, mode="once"), observers=(reports.append,)).wait()
    assert [report.late for report in reports if report.late] == [{"w": 1}]
    assert sum(report.steps["w"][0] for report in reports if "w" in report.steps) == len(records)
