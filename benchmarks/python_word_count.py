"""Word count with split and count both in Python, live, against the all-native query on RocksDB."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session, text_lines
from benchmarks.keyed_state import ROCKSDB
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "python-word-count"
ABOUT = "20 M words, split and count both in Python, against the all-native Spark query"


class Count(ps.Aggregator):
    """A count in Python, made in parts before the shuffle."""

    schema = "bigint"

    def init(self) -> int:
        """None yet."""
        return 0

    def add(self, so_far: int, row: Any) -> int:
        """One more."""
        return so_far + 1

    def add_all(self, so_far: int, rows: Sequence[Any]) -> int:
        """The records of a key that came together."""
        return so_far + len(rows)

    def merge(self, one: int, other: int) -> int:
        """Two parts."""
        return one + other


def split(row: Any) -> Iterable[str]:
    words: list[str] = row.value.split()
    return words


def graph(path: str) -> Graph:
    flow = ps.Flow("python-word-count")
    lines = flow.source("lines", ps.files(path, format="text"))
    words = lines.flat_map("split", split, schema="word string")
    words.key_by("word").aggregate("count", n=Count).sink("out", nothing())
    return flow.graph


def penstock(spark: SparkSession, flow: Graph, directory: Path) -> None:
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    shutil.rmtree(directory, ignore_errors=True)
    run_live(flow, spark, RunSpec(checkpoint=directory, mode="once", by_value=(__name__,))).wait(pause=0.02)


def native(spark: SparkSession, path: str, directory: Path) -> None:
    from pyspark.sql import functions as f

    shutil.rmtree(directory, ignore_errors=True)
    lines = spark.readStream.format("text").schema("value string").load(path)
    counts = lines.select(f.explode(f.split("value", " ")).alias("word")).groupBy("word").count()
    query = counts.writeStream.format("noop").outputMode("update").trigger(availableNow=True)
    query.option("checkpointLocation", str(directory)).start().awaitTermination()


def run(quick: bool) -> Result:
    lines, rounds = (200_000, 1) if quick else (2_000_000, 5)
    spark = spark_session()
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    with folder() as directory:
        path = text_lines(spark, directory, lines)
        flow = graph(path)
        runs = {
            "native": lambda: native(spark, path, directory / "native"),
            "penstock": lambda: penstock(spark, flow, directory / "flow"),
        }
        taken = alternate(runs, rounds, warm=3)
    seconds = medians(taken)
    figures = {f"{name}_words_per_second": 10 * lines / value for name, value in seconds.items()}
    bar = Bar("time over the native query", paired_ratio(taken, "penstock", "native"), at_most=1.5)
    return Result(NAME, {"words": 10 * lines, **figures}, (bar,))
