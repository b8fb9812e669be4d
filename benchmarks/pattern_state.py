"""pattern-state: a batch that touches 10 k keys, where 10 k keys and where 1 M keys have an open run each."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, folder, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "pattern-state"
ABOUT = "a batch that touches 10 k keys, with an open run in each of 10 k and of 1 M keys"
TOUCHED, CHUNK = 10_000, 250_000
"""How many keys a batch touches, and how many a batch brings in while the state grows."""
START = 1_767_225_600


def graph(path: str) -> Graph:
    """Runs that began and wait for what does not come; a second event b opens and ends none, it is taken by nobody but looked at."""
    flow = ps.Flow("pattern-state")
    source = ps.files(path, "parquet", "k bigint, kind string, ts timestamp", files_per_batch=1)
    events = flow.source("events", source, event_time="ts")
    steps = ps.pattern("abc").begin("a", "kind = 'a'").followed_by("b", "kind = 'b'", one_or_more=True, greedy=True)
    found = events.key_by("k").match("abc", steps.followed_by("c", "kind = 'c'").within("30d"), select={"k": "k"})
    found.sink("out", nothing())
    return flow.graph


class Feed:
    """Files of events, each a batch, with times that rise from file to file."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        self.spark, self.path, self.files = spark, path, 0

    def add(self, kind: str, begin: int, end: int, step: int = 1) -> None:
        """An event of these keys."""
        self.files += 1
        at = f"timestamp_seconds({START + self.files}) as ts"
        rows = self.spark.range(begin, end, step, 1).selectExpr("id as k", f"'{kind}' as kind", at)
        rows.write.mode("append").parquet(self.path)


def batches(spark: SparkSession, flow: Graph, directory: Path) -> list[float]:
    """Runs what has come, and gives the seconds of each batch."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    reports: list[Any] = []
    run_live(flow, spark, RunSpec(checkpoint=directory, mode="once"), observers=(reports.append,)).wait(pause=0.02)
    return [r.seconds["compute"] + r.seconds["state"] for r in reports if r.taken.get("abc")]


def run(quick: bool) -> Result:
    """The same batch in both states."""
    large, rounds = (100_000, 3) if quick else (1_000_000, 5)
    spark = spark_session()
    with folder() as directory:
        path = str(directory / "events")
        feed, flow = Feed(spark, path), graph(path)
        feed.add("a", 0, TOUCHED)
        for _ in range(rounds + 2):
            feed.add("b", 0, TOUCHED)
        small = statistics.median(batches(spark, flow, directory / "flow")[-rounds:])
        for begin in range(TOUCHED, large, CHUNK):
            feed.add("a", begin, min(begin + CHUNK, large))
        for _ in range(rounds + 2):
            feed.add("b", 1, large, large // TOUCHED)
        big = statistics.median(batches(spark, flow, directory / "flow")[-rounds:])
    figures = {"keys": large, "small_seconds": small, "large_seconds": big}
    return Result(NAME, figures, (Bar("time of a batch, 1 M keys over 10 k", big / small, at_most=2.0),))
