"""Counts per key and window against Spark's own windows on RocksDB, with the same watermark."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

NAME = "windows"
ABOUT = "counts per key in 10 s tumbling, 60 s / 10 s sliding and session windows: 10 M events, 10 k keys, against Spark's own on RocksDB"
KEYS, BATCHES, RATE = 10_000, 10, 10_000
"""Events have a time of their own, `RATE` of them to a second, and come up to five seconds out of order."""
LATENESS = 10
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SCHEMA = "k string, ts timestamp"
GAP = "2s"
KINDS: dict[str, Any] = {
    "tumbling": lambda: ps.tumbling("10s"),
    "sliding": lambda: ps.sliding("60s", every="10s"),
    "session": lambda: ps.session(GAP),
}


def graph(path: str, kind: str) -> Graph:
    """The flow."""
    flow = ps.Flow(f"windows-{kind}")
    source = ps.files(path, "parquet", SCHEMA, files_per_batch=1)
    events = flow.source("events", source, event_time="ts", lateness=LATENESS)
    events.key_by("k").window(KINDS[kind]()).count("n").sink("out", nothing())
    return flow.graph


def events(spark: SparkSession, directory: Path, many: int) -> str:
    """A folder of parquet files, one for each batch."""
    for batch in range(BATCHES):
        part = spark.range(batch * many // BATCHES, (batch + 1) * many // BATCHES, 1, 1)
        micros = f"1700000000000000 + id * {1_000_000 // RATE} - pmod(xxhash64(id, 7), 5000000)"
        rows = part.selectExpr(f"concat('key-', pmod(xxhash64(id), {KEYS})) as k", f"timestamp_micros({micros}) as ts")
        rows.write.mode("append").parquet(str(directory / "events"))
    return str(directory / "events")


def penstock(spark: SparkSession, flow: Graph, directory: Path) -> None:
    """The flow, from an empty folder."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    shutil.rmtree(directory, ignore_errors=True)
    run_live(flow, spark, RunSpec(checkpoint=directory, mode="once")).wait(pause=0.02)


def native(spark: SparkSession, path: str, directory: Path, kind: str) -> None:
    """The same query in PySpark."""
    shutil.rmtree(directory, ignore_errors=True)
    stream = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(path)
    counts = stream.withWatermark("ts", f"{LATENESS} seconds").groupBy("k", _window(kind)).count()
    _finish(counts, directory)


def _window(kind: str) -> Column:
    from pyspark.sql import functions as f

    if kind == "session":
        return f.session_window("ts", GAP.replace("s", " seconds"))
    return f.window("ts", "10 seconds") if kind == "tumbling" else f.window("ts", "60 seconds", "10 seconds")


def _finish(frame: DataFrame, directory: Path) -> None:
    query = frame.writeStream.format("noop").outputMode("append").trigger(availableNow=True)
    query.option("checkpointLocation", str(directory)).start().awaitTermination()


def run(quick: bool) -> Result:
    """Both in turns, a kind of windows at a time."""
    many, rounds = (1_000_000, 1) if quick else (10_000_000, 3)
    spark = spark_session()
    before = spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    figures: dict[str, float] = {"events": many}
    bars: list[Bar] = []
    try:
        with folder() as directory:
            path = events(spark, directory, many)
            for kind in KINDS:
                figures |= _compared(spark, path, directory, kind, many, rounds, bars)
    finally:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", before or ROCKSDB)
    return Result(NAME, figures, tuple(bars))


def _compared(
    spark: SparkSession, path: str, directory: Path, kind: str, many: int, rounds: int, bars: list[Bar]
) -> dict[str, float]:
    flow = graph(path, kind)
    runs = {
        "native": lambda: native(spark, path, directory / f"native-{kind}", kind),
        "penstock": lambda: penstock(spark, flow, directory / f"penstock-{kind}"),
    }
    taken = alternate(runs, rounds, warm=1)
    wanted = 2.0 if kind == "session" else 1.0
    bars.append(Bar(f"{kind}: throughput over native", paired_ratio(taken, "native", "penstock"), at_least=wanted))
    return {f"{kind}_{name}_per_second": many / seconds for name, seconds in medians(taken).items()}
