"""Word count as a topology: a spout, a split bolt by shuffle, a count bolt by fields; with acks and without, against the all-native query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from benchmarks.topology import LINE, Lines, drain
from penstock.graph.endpoints.basic import nothing
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
    """The topology."""
    top = ps.Topology("topology-word-count")
    top.spout("lines", Lines(lines, reliable))
    top.bolt("split", Split(), parallelism=2).shuffle("lines")
    top.bolt("count", Count(), parallelism=2).fields("split", "word")
    top.sink("out", nothing(), from_="count")
    return top.graph


def native(spark: SparkSession, lines: int) -> None:
    """The same in Spark alone."""
    made = spark.range(lines).selectExpr(f"concat('{LINE} ', id % 5000) as line")
    counts = made.selectExpr("explode(split(line, ' ')) as word").groupBy("word").count()
    counts.write.format("noop").mode("overwrite").save()


def run(quick: bool) -> Result:
    """Native, unacked and acked in turns."""
    lines, rounds = (100_000, 1) if quick else (1_000_000, 5)
    spark = spark_session()
    with folder() as directory:
        runs = {
            "native": lambda: native(spark, lines),
            "unacked": lambda: drain(spark, graph(lines, False), directory / "unacked", __name__),
            "acked": lambda: drain(spark, graph(lines, True), directory / "acked", __name__),
        }
        taken = alternate(runs, rounds)
    seconds = medians(taken)
    figures = {f"{name}_words_per_second": WORDS * lines / value for name, value in seconds.items()}
    bars = (
        Bar("throughput over the native query", seconds["native"] / seconds["acked"], at_least=0.35),
        Bar("million words a second", WORDS * lines / seconds["acked"] / 1e6, at_least=0.485),
        Bar("time with acks over without", paired_ratio(taken, "acked", "unacked"), at_most=1.5),
    )
    return Result(NAME, {"words": WORDS * lines, **figures}, bars)
