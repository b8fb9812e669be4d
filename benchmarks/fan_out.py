"""Three sources, four branches, five sinks: one flow against a foreachBatch with persist, written by hand."""

from __future__ import annotations

import json
import statistics
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, batch_seconds, folder, spark_session
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "fan-out"
ABOUT = "3 sources, 4 branches, 5 sinks: each source read once per batch, at the price of persist by hand"
FIELDS = "id bigint, customer string, amount double"
SOURCES = ("orders", "returns", "credits")
BRANCHES = {"negative": "amount < 0", "small": "amount < 50", "large": "amount >= 150"}
SKIP = 3


@dataclass(frozen=True)
class Measured:
    """A run: the time of its batches, and the rows that Spark counted at each source, over those that are there."""

    seconds: list[float]
    reads: list[float]


def graph(directory: Path, out: Path) -> Graph:
    flow = ps.Flow("fan-out")
    first, *others = (
        flow.source(name, ps.files(directory / name, "json", FIELDS, files_per_batch=1)) for name in SOURCES
    )
    entries = first.union("entries", *others)
    parts = entries.branch("size", **BRANCHES)
    for name in (*BRANCHES, "otherwise"):
        changed = parts[name].with_columns(f"taxed_{name}", amount="amount * 1.2")
        changed.sink(name, ps.write_files(out / name, format="json"))
    entries.sink("all", ps.write_files(out / "all", format="json"))
    return flow.graph


def penstock(spark: SparkSession, directory: Path, out: Path, rows: int) -> Measured:
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    live = run_live(graph(directory, out), spark, RunSpec(checkpoint=out / "checkpoint", mode="once"))
    live.wait()
    return _measured(live.query, rows)


def by_hand(spark: SparkSession, directory: Path, out: Path, rows: int) -> Measured:
    from pyspark.sql import functions as f

    def write(batch: DataFrame, number: int) -> None:
        kept = batch.persist()
        rest = f.lit(True)
        for name, condition in {**BRANCHES, "otherwise": "true"}.items():
            mine = kept.where(rest & f.expr(condition)).withColumn("amount", f.col("amount") * 1.2)
            mine.drop("source").write.mode("overwrite").json(str(out / name / str(number)))
            rest = rest & ~f.expr(condition)
        kept.drop("source").write.mode("overwrite").json(str(out / "all" / str(number)))
        kept.unpersist()

    first, *others = (_read(spark, directory / name).withColumn("source", f.lit(name)) for name in SOURCES)
    union = first
    for each in others:
        union = union.unionByName(each)
    writer = union.writeStream.foreachBatch(write).option("checkpointLocation", str(out / "checkpoint"))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return _measured(query, rows)


def _read(spark: SparkSession, path: Path) -> DataFrame:
    return spark.readStream.schema(FIELDS).option("maxFilesPerTrigger", 1).json(str(path))


def _measured(query: Any, rows: int) -> Measured:
    progress = [p for p in query.recentProgress if p["numInputRows"]]
    reads = [s["numInputRows"] / rows for p in progress for s in p["sources"]]
    return Measured(batch_seconds(query, SKIP), reads)


def run(quick: bool) -> Result:
    batches, rows, rounds = (8, 2_000, 1) if quick else (20, 10_000, 3)
    spark = spark_session()
    with folder() as directory:
        _make(directory, batches, rows)
        hand, own = [], []
        for at in range(rounds + 1):
            hand.append(by_hand(spark, directory, directory / f"hand{at}", rows))
            own.append(penstock(spark, directory, directory / f"flow{at}", rows))
    middle = [(statistics.median(o.seconds), statistics.median(h.seconds)) for o, h in zip(own, hand, strict=True)]
    ratio = statistics.median(o / h for o, h in middle[1:])
    reads = [r for measured in own for r in measured.reads]
    bars = (
        Bar("reads of a source per batch, at most", max(reads), at_most=1.0),
        Bar("reads of a source per batch, at least", min(reads), at_least=1.0),
        Bar("batch over foreachBatch with persist", ratio, at_most=1.3),
    )
    figures = {
        "penstock_batch_seconds": statistics.median(o for o, _ in middle[1:]),
        "by_hand_batch_seconds": statistics.median(h for _, h in middle[1:]),
        "by_hand_reads": max(r for measured in hand for r in measured.reads),
    }
    return Result(NAME, {"batches": batches, "rows_per_source": rows, **figures}, bars)


def _make(directory: Path, batches: int, rows: int) -> None:
    for name in SOURCES:
        (directory / name).mkdir()
        for at in range(batches):
            made = (
                {"id": at * rows + n, "customer": f"customer{n % 97}", "amount": float(n % 230 - 20)}
                for n in range(rows)
            )
            (directory / name / f"{at:04d}.json").write_text("".join(json.dumps(each) + "\n" for each in made))
