"""A Python counter per key against Spark's native count on RocksDB, and against Spark's own Python state."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "keyed-state"
ABOUT = "a Python counter per key: 1 M records, 100 k keys, 4 batches, against groupBy().count() on RocksDB"
KEYS, BATCHES = 100_000, 4
FEWER = 10
"""Spark's own Python state gets a tenth of the records over a tenth of the keys, or it would take minutes; rates are compared."""
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


class Counter(ps.Process):
    """Counts the records of a key."""

    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterable[Any]:
        """One more."""
        self.n += 1
        yield self.key, self.n


def graph(path: str) -> Graph:
    flow = ps.Flow("keyed-state")
    records = flow.source("records", ps.files(path, "parquet", "k string", files_per_batch=1))
    records.key_by("k").process("count", Counter, schema="k string, n bigint").sink("out", nothing())
    return flow.graph


def records(spark: SparkSession, directory: Path, many: int, keys: int = KEYS) -> str:
    """A folder of parquet files, one for each batch."""
    for batch in range(BATCHES):
        part = spark.range(batch * many // BATCHES, (batch + 1) * many // BATCHES, 1, 1)
        keyed = part.selectExpr(f"concat('key-', pmod(xxhash64(id), {keys})) as k")
        keyed.write.mode("append").parquet(str(directory / "records"))
    return str(directory / "records")


def penstock(spark: SparkSession, flow: Graph, directory: Path) -> None:
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    shutil.rmtree(directory, ignore_errors=True)
    run_live(flow, spark, RunSpec(checkpoint=directory, mode="once", by_value=(__name__,))).wait(pause=0.02)


def native(spark: SparkSession, path: str, directory: Path) -> None:
    shutil.rmtree(directory, ignore_errors=True)
    counts = _stream(spark, path).groupBy("k").count()
    _finish(counts, directory, "update")


def _stream(spark: SparkSession, path: str) -> DataFrame:
    return spark.readStream.schema("k string").option("maxFilesPerTrigger", 1).parquet(path)


def _finish(frame: DataFrame, directory: Path, mode: str) -> None:
    query = frame.writeStream.format("noop").outputMode(mode).trigger(availableNow=True)
    query.option("checkpointLocation", str(directory)).start().awaitTermination()


def in_pandas(spark: SparkSession, path: str, directory: Path) -> None:
    """The same counter with Spark's own Python state."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Count(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.n = handle.getValueState("n", "n bigint")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            before = self.n.get()[0] if self.n.exists() else 0
            now = before + sum(len(each) for each in rows)
            self.n.update((now,))
            yield pd.DataFrame({"k": [key[0]], "n": [now]})

        def close(self) -> None:
            pass

    shutil.rmtree(directory, ignore_errors=True)
    grouped = _stream(spark, path).groupBy("k")
    made = grouped.transformWithStateInPandas(Count(), "k string, n bigint", "update", "none")
    _finish(made, directory, "update")


def run(quick: bool) -> Result:
    many, rounds = (200_000, 1) if quick else (1_000_000, 5)
    spark = spark_session()
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    with folder() as directory:
        path, own = records(spark, directory / "all", many), _by_value()
        flow = graph(path)
        runs = {
            "native": lambda: native(spark, path, directory / "native"),
            "penstock": lambda: penstock(spark, flow, directory / "flow"),
        }
        taken = alternate(runs, rounds, warm=2)
        few = many // FEWER
        part = records(spark, directory / "some", few, KEYS // FEWER)
        slow = alternate({"in_pandas": lambda: own(spark, part, directory / "pandas")}, 1, warm=0)["in_pandas"][0]
    seconds = medians(taken)
    rates = {name: many / value for name, value in seconds.items()} | {"in_pandas": few / slow}
    figures = {f"{name}_records_per_second": rate for name, rate in rates.items()}
    bars = (
        Bar("throughput over native groupBy().count()", paired_ratio(taken, "native", "penstock"), at_least=1.0),
        Bar("throughput over transformWithStateInPandas", rates["penstock"] / rates["in_pandas"], at_least=20.0),
    )
    return Result(NAME, {"records": many, "records_in_pandas": few, **figures}, bars)


def _by_value() -> Any:
    """The query with Spark's Python state, its class sent to the workers as it is: they cannot import this folder."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return in_pandas
