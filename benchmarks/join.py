"""An interval join of two streams against Spark's native stream-stream join on RocksDB."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "join"
ABOUT = "an interval join of two streams of 2 M rows, 100 k keys, 4 batches, against Spark's own on RocksDB"
KEYS, BATCHES = 100_000, 4
SCHEMAS = {"left": "k bigint, n bigint, ts timestamp", "right": "k bigint, m bigint, tb timestamp"}
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


def graph(directory: Path) -> Graph:
    flow = ps.Flow("join")
    read = {side: ps.files(directory / side, "parquet", of, files_per_batch=1) for side, of in SCHEMAS.items()}
    left = flow.source("left", read["left"], event_time="ts", lateness="10s")
    right = flow.source("right", read["right"], event_time="tb", lateness="10s")
    left.join("near", right, "k", within="30s").sink("out", nothing())
    return flow.graph


def records(spark: SparkSession, directory: Path, many: int) -> None:
    """Two folders of parquet files, a file for each batch: a record each millisecond, over all keys."""
    for side, schema in SCHEMAS.items():
        key, number, time = (field.split()[0] for field in schema.split(", "))
        for batch in range(BATCHES):
            part = spark.range(batch * many // BATCHES, (batch + 1) * many // BATCHES, 1, 1).selectExpr(
                f"pmod(xxhash64(id, '{side}'), {KEYS}) as {key}",
                f"id as {number}",
                f"timestamp_millis(1700000000000 + id) as {time}",
            )
            part.write.mode("append").parquet(str(directory / side))


def penstock(spark: SparkSession, flow: Graph, directory: Path) -> None:
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    shutil.rmtree(directory, ignore_errors=True)
    run_live(flow, spark, RunSpec(checkpoint=directory, mode="once", by_value=(__name__,))).wait(pause=0.02)


def native(spark: SparkSession, source: Path, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    left = _stream(spark, source, "left").withWatermark("ts", "10 seconds").alias("l")
    right = _stream(spark, source, "right").withWatermark("tb", "10 seconds").alias("r")
    near = "l.k = r.k and tb between ts - interval 30 seconds and ts + interval 30 seconds"
    from pyspark.sql import functions as f

    joined = left.join(right, f.expr(near)).selectExpr("l.k", "n", "ts", "m", "tb")
    query = joined.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    query.option("checkpointLocation", str(directory)).start().awaitTermination()


def _stream(spark: SparkSession, source: Path, side: str) -> DataFrame:
    reader = spark.readStream.schema(SCHEMAS[side]).option("maxFilesPerTrigger", 1)
    return reader.parquet(str(source / side))


def run(quick: bool) -> Result:
    many = 200_000 if quick else 2_000_000
    spark = spark_session()
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    with folder() as directory:
        records(spark, directory, many)
        flow = graph(directory)
        runs = {
            "penstock": lambda: penstock(spark, flow, directory / "penstock"),
            "native": lambda: native(spark, directory, directory / "native"),
        }
        taken = alternate(runs, rounds=1 if quick else 3)
    seconds = medians(taken)
    figures = {f"{name}_seconds": s for name, s in seconds.items()}
    figures |= {f"{name}_rows_per_second": 2 * many / s for name, s in seconds.items()}
    ratio = paired_ratio(taken, over="native", under="penstock")
    return Result(NAME, figures, (Bar("throughput over Spark's stream-stream join", ratio, at_least=1.0),))
