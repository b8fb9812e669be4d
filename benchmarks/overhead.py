"""The micro-batch of an empty flow against the floor: a foreachBatch that does nothing with its rows."""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import penstock as ps
from benchmarks.harness import Bar, Result, batch_seconds, folder, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "overhead"
ABOUT = "an empty flow's micro-batch, against the floor of foreachBatch"
SKIP = 5


def graph(path: str) -> Graph:
    flow = ps.Flow("overhead")
    flow.source("lines", ps.files(path, format="text", files_per_batch=1)).sink("out", nothing())
    return flow.graph


def penstock(spark: SparkSession, path: str, checkpoint: Path) -> list[float]:
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    live = run_live(graph(path), spark, RunSpec(checkpoint=checkpoint, mode="once"))
    live.wait()
    return batch_seconds(live.query, SKIP)


def by_hand(spark: SparkSession, path: str, checkpoint: Path) -> list[float]:
    def nothing(batch: DataFrame, number: int) -> None:
        batch.write.format("noop").mode("overwrite").save()

    lines = spark.readStream.format("text").schema("value string").option("maxFilesPerTrigger", 1).load(path)
    writer = lines.writeStream.foreachBatch(nothing).option("checkpointLocation", str(checkpoint))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return batch_seconds(query, SKIP)


def run(quick: bool) -> Result:
    batches, rounds = (15, 2) if quick else (40, 4)
    spark = spark_session()
    with folder() as directory:
        path = _files(directory, batches)
        taken: dict[str, list[list[float]]] = {"by_hand": [], "penstock": []}
        for at in range(rounds + 1):
            taken["by_hand"].append(by_hand(spark, path, directory / f"hand{at}"))
            taken["penstock"].append(penstock(spark, path, directory / f"flow{at}"))
    middle = {name: [statistics.median(r) for r in lists[1:]] for name, lists in taken.items()}
    ratio = statistics.median(p / h for p, h in zip(middle["penstock"], middle["by_hand"], strict=True))
    figures = {f"{name}_batch_seconds": statistics.median(values) for name, values in middle.items()}
    return Result(NAME, {"batches": batches, **figures}, (Bar("micro-batch over the floor", ratio, at_most=1.3),))


def _files(directory: Path, number: int) -> str:
    source = directory / "lines"
    source.mkdir()
    for at in range(number):
        (source / f"{at:04d}.txt").write_text("one line\n" * 10)
    return str(source)
