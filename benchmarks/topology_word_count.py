"""Word count as a topology: a spout, a split bolt by shuffle, a count bolt by fields; with acks and without, against the all-native query."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from benchmarks.keyed_state import ROCKSDB
from benchmarks.python_word_count import native
from benchmarks.topology import LINE, Lines, drain
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "topology-word-count"
ABOUT = "spout, split bolt, count bolt with acks, against the all-native Spark query and against no acks"
WORDS = len(LINE.split()) + 1


class Split(ps.BasicBolt):
    """Words of lines."""

    outputs = "word string"
    stateful = False

    def process(self, tup: Any) -> Any:
        """All words."""
        return tup.line.split()


class Count(ps.BasicBolt):
    """Words so far."""

    outputs = "word string, n bigint"

    def prepare(self, context: Any) -> None:
        """None yet."""
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> Any:
        """One more."""
        counts, word = self.counts, tup.word
        n = counts[word] = counts.get(word, 0) + 1
        return ((word, n),)


def graph(lines: int, reliable: bool) -> Graph:
    """The topology; as in Storm nobody reads what its last bolt emits."""
    top = ps.Topology("topology-word-count")
    top.spout("lines", Lines(lines, reliable))
    top.bolt("split", Split(), parallelism=2).shuffle("lines")
    top.bolt("count", Count(), parallelism=2).fields("split", "word")
    return top.graph


def written(spark: SparkSession, lines: int, directory: Path) -> str:
    """The same lines as text files."""
    made = spark.range(0, lines, 1, 8).selectExpr(f"concat('{LINE} ', id % 5000) as value")
    made.write.mode("overwrite").text(str(directory / "lines"))
    return str(directory / "lines")


def batch(spark: SparkSession, path: str) -> None:
    """A batch query, which keeps nothing; it has no bar."""
    words = spark.read.text(path).selectExpr("explode(split(value, ' ')) as word")
    words.groupBy("word").count().write.format("noop").mode("overwrite").save()


def run(quick: bool) -> Result:
    """The all-native streaming query, which keeps its counts as the topology does; the topology unacked and acked; a batch query beside them."""
    lines, rounds = (100_000, 1) if quick else (1_000_000, 5)
    spark = spark_session()
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    with folder() as directory:
        path = written(spark, lines, directory)
        runs = {
            "native": lambda: native(spark, path, directory / "native"),
            "batch": lambda: batch(spark, path),
            "unacked": lambda: drain(spark, graph(lines, False), directory / "unacked", __name__),
            "acked": lambda: drain(spark, graph(lines, True), directory / "acked", __name__),
        }
        taken = alternate(runs, rounds)
    seconds = medians(taken)
    figures = {f"{name}_words_per_second": WORDS * lines / value for name, value in seconds.items()}
    bars = (
        Bar("throughput over the native query", paired_ratio(taken, "native", "acked"), at_least=0.35),
        Bar("million words a second", WORDS * lines / seconds["acked"] / 1e6, at_least=0.485),
        Bar("time with acks over without", paired_ratio(taken, "acked", "unacked"), at_most=1.5),
    )
    return Result(NAME, {"words": WORDS * lines, **figures}, bars)
