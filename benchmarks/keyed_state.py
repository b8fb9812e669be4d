"""A Python counter per key against Spark's native count on RocksDB, and against Spark's own Python state."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "keyed-state"
ABOUT = "a Python counter per key: 1 M records, 100 k keys, 4 batches, against groupBy().count() on RocksDB"
KEYS, BATCHES = 100_000, 4
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Counter(ps.Process):
    """Counts the records of a key."""

    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterable[Any]:
        self.n += 1
        yield self.key, self.n


def graph(path: str) -> Graph:
    flow = ps.Flow("keyed-state")
    records = flow.source("records", ps.files(path, "parquet", "k string", files_per_batch=1))
    records.key_by("k").process("count", Counter, schema="k string, n bigint").sink("out", Endpoint("nothing"))
    return flow.graph


def records(spark: SparkSession, place: Path, many: int) -> str:
    """A folder of parquet files, one for each batch."""
    for batch in range(BATCHES):
        part = spark.range(batch * many // BATCHES, (batch + 1) * many // BATCHES, 1, 1)
        keyed = part.selectExpr(f"concat('key-', pmod(xxhash64(id), {KEYS})) as k")
        keyed.write.mode("append").parquet(str(place / "records"))
    return str(place / "records")


def penstock(spark: SparkSession, flow: Graph, place: Path) -> None:
    from penstock.spark.run import RunOptions, run_live

    shutil.rmtree(place, ignore_errors=True)
    run_live(flow, spark, RunOptions(checkpoint=place, once=True, by_value=(__name__,))).wait(pause=0.02)


def native(spark: SparkSession, path: str, place: Path) -> None:
    shutil.rmtree(place, ignore_errors=True)
    counts = _stream(spark, path).groupBy("k").count()
    _finish(counts, place, "update")


def _stream(spark: SparkSession, path: str) -> DataFrame:
    return spark.readStream.schema("k string").option("maxFilesPerTrigger", 1).parquet(path)


def _finish(frame: DataFrame, place: Path, mode: str) -> None:
    query = frame.writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
    query.option("checkpointLocation", str(place)).start().awaitTermination()
