"""Running totals under `where`, a second aggregate and a join of tables, against the same totals alone."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "changes"
ABOUT = "running totals under where, a second aggregate and a join: 1 M updates, 100 k keys, 4 batches, against the totals alone"
KEYS, BATCHES, LANDS = 100_000, 4, 50
NOTHING = nothing()


def totals(path: Path, name: str) -> tuple[ps.Flow, ps.Stream]:
    """A flow with the running totals of its records."""
    flow = ps.Flow(name)
    records = flow.source("records", ps.files(path / "records", "parquet", "k bigint, n bigint", files_per_batch=1))
    return flow, records.key_by("k").aggregate("totals", many="count(*)", total="sum(n)")


def alone(path: Path) -> Graph:
    """The totals."""
    flow, made = totals(path, "alone")
    made.sink("out", NOTHING)
    return flow.graph


def over(path: Path) -> Graph:
    """The totals, filtered, joined with a table of 100 k rows, and totalled again."""
    flow, made = totals(path, "over")
    keys = flow.source("keys", ps.files(path / "keys", "parquet", "k bigint, land string", files_per_batch=1))
    lands = keys.key_by("k").aggregate("lands", land="max(land)")
    some = made.where("some", "many > 1")
    some.key_by("many").count("levels").sink("levels-out", NOTHING)
    some.join("known", lands, on="k").sink("out", NOTHING)
    return flow.graph


def records(spark: SparkSession, path: Path, many: int, keys: int) -> None:
    """A file of records for each batch; the keys come with the first one."""
    for batch in range(BATCHES):
        part = spark.range(batch * many // BATCHES, (batch + 1) * many // BATCHES, 1, 1)
        part.selectExpr(f"pmod(xxhash64(id), {keys}) as k", "id as n").write.mode("append").parquet(
            str(path / "records")
        )
    named = spark.range(0, keys, 1, 1).selectExpr("id as k", f"concat('land-', id % {LANDS}) as land")
    named.write.parquet(str(path / "keys"))


def penstock(spark: SparkSession, flow: Graph, directory: Path) -> None:
    """A live run over all files."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    shutil.rmtree(directory, ignore_errors=True)
    run_live(flow, spark, RunSpec(checkpoint=directory, mode="once")).wait(pause=0.02)


def run(quick: bool) -> Result:
    """Both flows, in turns."""
    many, keys, rounds = (200_000, KEYS // 5, 1) if quick else (1_000_000, KEYS, 5)
    spark = spark_session()
    with folder() as directory:
        records(spark, directory, many, keys)
        first, second = alone(directory), over(directory)
        runs = {
            "alone": lambda: penstock(spark, first, directory / "alone"),
            "over": lambda: penstock(spark, second, directory / "over"),
        }
        taken = alternate(runs, rounds, warm=1)
    seconds = medians(taken)
    figures = {f"{name}_seconds": value for name, value in seconds.items()}
    bar = Bar("time over the totals alone", paired_ratio(taken, "over", "alone"), at_most=2.5)
    return Result(NAME, {"updates": many, "keys": keys, **figures}, (bar,))
