"""Streams of a run that somebody looks at: what they see, and that the run does what it does otherwise."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import penstock as ps
from penstock.graph.run import RunSpec
from penstock.live.report import BatchReport
from penstock.live.sampling import SAMPLER, SampleWish, Seen
from penstock.spark.live.task_time import TaskTime
from penstock.spark.run import run_bounded, run_live

pytestmark = pytest.mark.spark


def flow(rows: list[int]) -> ps.Flow:
    made = ps.Flow("looked-at")
    numbers = made.source("in", ps.items(rows, "n bigint"))
    numbers.map("twice", lambda r: r.n * 2, schema="n bigint").key_by("n").count("many").sink("out", ps.console())
    made.source("native", ps.items(rows, "m bigint")).where("some", "m > 2").sink("other", ps.console())
    return made


def test_streams_of_python_and_of_spark_are_seen_while_somebody_looks(penstock_spark: SparkSession) -> None:
    seen: dict[tuple[str, str, str], list[dict[str, object]]] = {}

    def tell(batch: int, found: Seen) -> None:
        seen.update(found.samples)

    until = time.time() + 300
    wanted = [("in", ""), ("twice", "n >= 6"), ("some", "m <> 4"), ("many", "")]
    SAMPLER.tell = tell
    SAMPLER.look_at(SampleWish(step, "out", where, until) for step, where in wanted)
    try:
        run_bounded(flow([1, 2, 3, 4, 5]).graph, penstock_spark, RunSpec(mode="batch"))
    finally:
        SAMPLER.look_at(())
    assert sorted(row["n"] for row in seen["in", "out", ""]) == [1, 2, 3, 4, 5]  # type: ignore[type-var]
    assert sorted(row["n"] for row in seen["twice", "out", "n >= 6"]) == [6, 8, 10]  # type: ignore[type-var]
    assert sorted(row["m"] for row in seen["some", "out", "m <> 4"]) == [3, 5]  # type: ignore[type-var]
    seen.clear()
    run_bounded(flow([1]).graph, penstock_spark, RunSpec(mode="batch"))
    assert seen == {}


class Lines(ps.Spout):
    outputs = "line string"
    reliable = True

    def __init__(self, lines: list[str]) -> None:
        self.waiting = list(lines)

    def next_tuple(self) -> object:
        if not self.waiting:
            return ps.END
        line = self.waiting.pop(0)
        self.emit((line,), id=line)
        return None


class Split(ps.BasicBolt):
    outputs = "word string"

    def process(self, tup: Any) -> Any:
        for word in tup.line.split():
            yield (word,)


class Count(ps.BasicBolt):
    outputs = "word string, n bigint"

    def process(self, tup: Any) -> Any:
        yield tup.word, 1


def test_a_message_is_followed_through_its_bolts_and_the_time_of_workers_is_seen(penstock_spark: SparkSession) -> None:
    top = ps.Topology("followed")
    top.spout("lines", Lines(["a b c", "d"]))
    top.bolt("split", Split(), parallelism=2).shuffle("lines")
    top.bolt("count", Count(), parallelism=2).fields("split", "word")
    top.sink("out", ps.console(), from_="count")
    seen: list[Seen] = []
    SAMPLER.tell = lambda batch, found: seen.append(found)
    SAMPLER.look_at((), time.time() + 300, time.time() + 300)
    try:
        run_bounded(top.graph, penstock_spark, RunSpec(mode="batch"))
    finally:
        SAMPLER.look_at(())
    traces = [trace for found in seen for trace in found.traces]
    by_step = sorted(sorted((t["step"], *t["values"].values()) for t in trace["tuples"]) for trace in traces)
    assert by_step == [
        [("count", "a"), ("count", "b"), ("count", "c"), ("split", "a b c")],
        [("count", "d"), ("split", "d")],
    ]
    assert {trace["state"] for trace in traces} == {"done"}
    assert all(isinstance(many, int) for found in seen for many in found.stacks.values())


class Keep(ps.Process):
    """Keeps a value and a timer for each key."""

    many = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[tuple[str]]:
        self.many += 1
        self.set_timer(timedelta(hours=1), clock="processing")
        yield from ()

    def on_timer(self, timer: Any) -> Iterator[tuple[str]]:
        yield from ()


def loud(row: ps.Row) -> str:
    """The word of a row; fails where the worker does not log as much as was asked for."""
    assert logging.getLogger("a.flow").level == logging.DEBUG
    return str(row.value)


def test_reports_say_how_busy_and_uneven_steps_are_and_what_they_keep_and_workers_follow_levels_of_logs(
    tmp_path: Path, penstock_spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SAMPLER, "levels", (("a.flow", "debug"),))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("hot\n" * 90 + "".join(f"k{n}\n" for n in range(10)))
    made = ps.Flow("loaded")
    words = made.source("in", ps.files(str(tmp_path / "in"), format="text"))
    kept = words.map("same", loud, schema="word string").key_by("word").process("keep", Keep(), schema="word string")
    kept.sink("out", ps.console())
    reports: list[BatchReport] = []
    spec = RunSpec(checkpoint=tmp_path / "checkpoint", mode="once", parallelism=2)
    run_live(made.graph, penstock_spark, spec, observers=(reports.append,)).wait(pause=0.02)
    report = next(each for each in reports if each.load)
    assert report.load["keep"]["tasks"] == 2
    assert report.load["keep"]["skew"] > 1.5
    assert 0 < report.load["keep"]["longest"] <= report.load["keep"]["seconds"]
    assert report.load["same"]["seconds"] > 0
    assert report.state["keep"]["rows"] == 11
    assert report.state["keep"]["bytes"] > 100
    assert report.timers["keep"] == 11
    assert max(each.cores for each in reports) == penstock_spark.sparkContext.defaultParallelism
    worked = TaskTime(penstock_spark)
    worked.added_to(report)
    assert sum(worked.seconds.values()) > 0
