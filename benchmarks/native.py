"""A flow of native steps against the same query written by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session, text_lines
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "native"
ABOUT = "native steps over lines of ten words, against the same query in PySpark"


def graph(path: str) -> Graph:
    flow = ps.Flow("native")
    lines = flow.source("lines", ps.files(path, format="text"))
    words = lines.explode("split", "word", "split(value, ' ')").where("long", "length(word) > 3")
    counts = words.key_by("word").count("count")
    counts.sink("out", nothing())
    return flow.graph


def by_hand(spark: SparkSession, path: str) -> None:
    from pyspark.sql import functions as f

    words = spark.read.text(path).select(f.explode(f.split("value", " ")).alias("word")).where("length(word) > 3")
    words.groupBy("word").count().write.format("noop").mode("overwrite").save()


def run(quick: bool) -> Result:
    from penstock.spark.run import run_bounded

    lines, rounds = (200_000, 3) if quick else (2_000_000, 7)
    spark = spark_session()
    with folder() as directory:
        path = text_lines(spark, directory, lines)
        flow = graph(path)
        runs = {"by_hand": lambda: by_hand(spark, path), "penstock": lambda: run_bounded(flow, spark)}
        taken = alternate(runs, rounds, warm=2)
    seconds = medians(taken)
    figures = {f"{name}_seconds": value for name, value in seconds.items()}
    figures |= {f"{name}_lines_per_second": lines / value for name, value in seconds.items()}
    bar = Bar("throughput over hand-written PySpark", paired_ratio(taken, "by_hand", "penstock"), at_least=0.95)
    return Result(NAME, {"lines": lines, **figures}, (bar,))
