"""A Python step and a native count against hand-written mapInArrow and groupBy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session, text_lines
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "python"
ABOUT = "split in Python, count natively, against mapInArrow and groupBy"


def graph(path: str) -> Graph:
    flow = ps.Flow("python")
    lines = flow.source("lines", ps.files(path, format="text"))
    words = lines.flat_map("split", lambda row: row.value.split(), schema="word string")
    words.key_by("word").count("count").sink("out", nothing())
    return flow.graph


def split(batches: Iterator[Any]) -> Iterator[Any]:
    import pyarrow as pa

    for batch in batches:
        words = [word for line in batch.column(0).to_pylist() for word in line.split()]
        yield pa.RecordBatch.from_arrays([pa.array(words, pa.string())], ["word"])


def by_hand(spark: SparkSession, path: str) -> None:
    words = spark.read.text(path).mapInArrow(split, "word string")
    words.groupBy("word").count().write.format("noop").mode("overwrite").save()


def run(quick: bool) -> Result:
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_bounded

    lines, rounds = (100_000, 3) if quick else (1_000_000, 7)
    spark = spark_session()
    options = RunSpec(by_value=(__name__,))
    with folder() as directory:
        path = text_lines(spark, directory, lines)
        flow, own = graph(path), _by_value()
        runs = {"by_hand": lambda: own(spark, path), "penstock": lambda: run_bounded(flow, spark, options)}
        taken = alternate(runs, rounds, warm=2)
    seconds = medians(taken)
    figures = {f"{name}_seconds": value for name, value in seconds.items()}
    figures |= {f"{name}_words_per_second": 10 * lines / value for name, value in seconds.items()}
    bar = Bar("throughput over mapInArrow by hand", paired_ratio(taken, "by_hand", "penstock"), at_least=0.9)
    return Result(NAME, {"lines": lines, **figures}, (bar,))


def _by_value() -> Any:
    """The hand-written query, with its function sent to the workers as it is: they cannot import this folder."""
    import sys

    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return by_hand
