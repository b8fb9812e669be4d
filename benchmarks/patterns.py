"""patterns: a then b then c of a key within ten minutes, against Flink's SQL and against Spark's own Python state.

    PENSTOCK_BENCH_FLINK=path/to/python penstock bench patterns

2 M events of 10 k keys in order, a millisecond apart, as CSV; one in a hundred is an a, b or c, and then one in two. The runs are bounded and write what
they find, which must be the same. Of a, b, b, c Flink's query takes either b, although `X*?` prefers the first: its matches are compared by key, a and
c. Flink runs where `PENSTOCK_BENCH_FLINK` names a Python that has `apache-flink`; Spark's own Python state gets a tenth of
the events and keys, or it would take minutes: rates are compared.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, best, folder, spark_session
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "patterns"
ABOUT = "a then b then c of a key within 10 min: 2 M events, 10 k keys, 1 % and 50 % of them relevant, against Flink and transformWithStateInPandas"
KEYS, FEWER = 10_000, 10
SHARES = {"1_percent": 100, "50_percent": 2}
"""One event in so many is an a, b or c."""
SCHEMA = "k string, kind string, ts timestamp"
FLINK = "PENSTOCK_BENCH_FLINK"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
START = 1_767_225_600_000
"""The time of the first event."""
Found = set[tuple[str, ...]]
"""Matches: the key, and the times of a, b and c."""


def graph(path: str, out: str) -> Graph:
    """The flow."""
    flow = ps.Flow("patterns")
    events = flow.source("events", ps.files(path, "csv", SCHEMA, header=False), event_time="ts")
    steps = ps.pattern("abc").begin("a", "kind = 'a'").followed_by("b", "kind = 'b'").followed_by("c", "kind = 'c'")
    chosen = {"k": "k", "a": "a.ts", "b": "b.ts", "c": "c.ts"}
    found = events.key_by("k").match("abc", steps.within("10m"), select=chosen)
    found.sink("out", ps.write_files(out, "parquet"))
    return flow.graph


def events(spark: SparkSession, path: Path, many: int, keys: int, one_in: int) -> str:
    """Two CSV files: the first half of the events, then the second."""
    kind = f"if(pmod(xxhash64(id, 1), {one_in}) = 0, element_at(array('a', 'b', 'c'), 1 + cast(pmod(xxhash64(id, 2), 3) as int)), 'x')"
    rows = spark.range(0, many, 1, 2).selectExpr(
        f"concat('key-', pmod(xxhash64(id, 3), {keys})) as k",
        f"{kind} as kind",
        f"date_format(timestamp_millis({START} + id), 'yyyy-MM-dd HH:mm:ss.SSS') as ts",
    )
    rows.write.csv(str(path))
    return str(path)


def penstock(spark: SparkSession, path: str, out: Path) -> None:
    """The flow, bounded."""
    from penstock.spark.run import run_bounded

    shutil.rmtree(out, ignore_errors=True)
    run_bounded(graph(path, str(out)), spark)


def flink(python: str, path: str, out: Path, way: str, rounds: int) -> float:
    """The seconds of Flink's query: the least of several in one process, after one that only warms up."""
    script = Path(__file__).parent / "flink" / "match_recognize.py"
    shutil.rmtree(out, ignore_errors=True)
    command = [python, str(script), path, str(out), way, str(rounds)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"Flink failed:\n{done.stderr[-2000:]}")
    return float(done.stdout.split()[-1])


def in_pandas(spark: SparkSession, path: str, out: Path) -> None:
    """The same pattern as a state machine over Spark's own Python state."""
    import pandas as pd
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor

    class Machine(StatefulProcessor):
        def init(self, handle: Any) -> None:
            self.runs = handle.getListState("runs", "a timestamp, b timestamp")

        def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Any]:  # noqa: N802, N803
            runs = [(a, b) for a, b in self.runs.get()] if self.runs.exists() else []
            limit, found = pd.Timedelta(minutes=10), []
            for kind, ts in sorted(
                ((k, t) for part in rows for k, t in zip(part["kind"], part["ts"], strict=True)), key=lambda r: r[1]
            ):
                if kind == "x":
                    continue
                runs = [run for run in runs if ts - run[0] < limit]
                if kind == "a":
                    runs.append((ts, None))
                elif kind == "b":
                    runs = [(a, ts if b is None or b is pd.NaT else b) for a, b in runs]
                else:
                    found += [(key[0], a, b, ts) for a, b in runs if b is not None and b is not pd.NaT]
                    runs = [(a, b) for a, b in runs if b is None or b is pd.NaT]
            if runs:
                self.runs.put(runs)
            else:
                self.runs.clear()
            if found:
                yield pd.DataFrame(found, columns=["k", "a", "b", "c"])

        def close(self) -> None:
            pass

    shutil.rmtree(out, ignore_errors=True)
    stream = spark.readStream.schema(SCHEMA).csv(path)
    schema = "k string, a timestamp, b timestamp, c timestamp"
    made = stream.groupBy("k").transformWithStateInPandas(Machine(), schema, "append", "none")
    query = made.writeStream.format("parquet").outputMode("append").trigger(availableNow=True)
    query.option("checkpointLocation", str(out) + "-checkpoint").start(str(out)).awaitTermination()


def found_in(spark: SparkSession, out: Path, form: str) -> Found:
    """The matches that were written: the key, and the three times to the millisecond."""
    if not out.exists():
        return set()
    shown = [f"date_format({name}, 'HH:mm:ss.SSS')" for name in "abc"]
    schema = "k string, a timestamp, b timestamp, c timestamp"
    rows = spark.read.schema(schema).format(form).load(str(out)).selectExpr("k", *shown).collect()
    return {(row[0], row[1], row[2], row[3]) for row in rows}


class Comparison:
    """The runs over events of which one in so many counts."""

    def __init__(self, spark: SparkSession, directory: Path, many: int, one_in: int) -> None:
        self.spark, self.directory, self.many = spark, directory, many
        self.path = events(spark, directory / "events", many, KEYS, one_in)
        self.few = events(spark, directory / "few", many // FEWER, KEYS // FEWER, one_in)
        self.python = os.environ.get(FLINK, "")

    def figures(self, rounds: int) -> dict[str, float]:
        """The seconds of each, after a look whether they find the same."""
        out = self.directory / "out"
        made = {"penstock": best(alternate({"_": lambda: penstock(self.spark, self.path, out)}, rounds))["_"]}
        expected = found_in(self.spark, out, "parquet")
        made["matches"] = len(expected)
        ways = ("plain", "filtered", "read") if self.python else ()
        for way in ways:
            made[f"flink_{way}"] = flink(self.python, self.path, self.directory / way, way, rounds)
            if way != "read":
                self.check(way, _ends(found_in(self.spark, self.directory / way, "csv")), _ends(expected))
        return made | {"in_pandas": self.state_machine()}

    def state_machine(self) -> float:
        """The seconds that Spark's own Python state would take for all events, from those for a part."""
        out, own = self.directory / "few-out", _by_value()
        seconds = alternate({"_": lambda: own(self.spark, self.few, out)}, 1, warm=0)["_"][0]
        penstock(self.spark, self.few, self.directory / "few-ours")
        expected = found_in(self.spark, self.directory / "few-ours", "parquet")
        self.check("in_pandas", found_in(self.spark, out, "parquet"), expected)
        return seconds * FEWER

    def check(self, name: str, got: Found, expected: Found) -> None:
        """Matches must be the same."""
        if got != expected:
            raise RuntimeError(f"{name} finds {len(got)} matches, Penstock {len(expected)}; they must be the same")


def _ends(found: Found) -> Found:
    """Matches without what lies between their ends."""
    return {(key, first, last) for key, first, _, last in found}


def _by_value() -> Callable[[Any, str, Path], None]:
    """The query with Spark's Python state, its class sent to the workers as it is: they cannot import this folder."""
    from pyspark import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    return in_pandas


def bars(name: str, figures: dict[str, float]) -> list[Bar]:
    """What must hold."""
    ours = figures["penstock"]
    made = [Bar(f"{name}: throughput over transformWithStateInPandas", figures["in_pandas"] / ours, at_least=10.0)]
    if "flink_plain" in figures:
        made.append(Bar(f"{name}: throughput over Flink's query", figures["flink_plain"] / ours, at_least=2.0))
    if "flink_filtered" in figures and name == "1_percent":
        made.append(Bar(f"{name}: throughput over Flink's, filtered", figures["flink_filtered"] / ours, at_least=1.0))
    return made


def run(quick: bool) -> Result:
    """Both shares."""
    many, rounds = (200_000, 1) if quick else (2_000_000, 3)
    spark = spark_session()
    before = spark.conf.get("spark.sql.streaming.stateStore.providerClass")
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", ROCKSDB)
    figures: dict[str, float] = {"events": many}
    held: list[Bar] = []
    try:
        for name, one_in in SHARES.items():
            with folder() as directory:
                made = Comparison(spark, directory, many, one_in).figures(rounds)
            figures |= {f"{name}_{what}": value for what, value in made.items()}
            held += bars(name, made)
    finally:
        spark.conf.set("spark.sql.streaming.stateStore.providerClass", before or ROCKSDB)
    return Result(NAME, figures, tuple(held))
