"""How long a record takes from topic to topic through one Python step.

Open loop: a process of its own sends on schedule, whatever the flow does, and writes the moment it meant to send into the record; another
reads the output and takes the difference. So a flow that falls behind is seen as late, and not as a sender that waits.
"""

from __future__ import annotations

import json
import multiprocessing
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, folder, spark_session
from penstock.graph.graph import Graph
from penstock.log import Log

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.spark.live.live import LiveRun

NAME = "latency"
ABOUT = "log to log through a Python step at 1,000 records a second, from the intended send time"
RATE = 1000
FIELDS = "n bigint, due bigint"
PATIENCE = 60
Serve = Callable[[threading.Event], None]
"""Runs a flow until the event is set."""


def step(n: int, due: int) -> tuple[int, int]:
    """What both sides do with a record."""
    return n + 1, due


def graph(path: Path) -> Graph:
    flow = ps.Flow("latency")
    records = flow.source("in", ps.topic("in", FIELDS, path=path))
    records.map("step", lambda r: step(r.n, r.due), FIELDS).sink("out", ps.write_topic("out", path=path))
    return flow.graph


def send(path: str, start: int, seconds: int) -> None:
    """Sends records on schedule, from a moment in nanoseconds on."""
    with Log(path) as log, log.producer() as producer:
        for n in range(RATE * seconds):
            due = start + n * 1_000_000_000 // RATE
            time.sleep(max(due - time.time_ns(), 0) / 1e9)
            producer.send("in", json.dumps({"n": n, "due": due}).encode())


def receive(path: str, records: int, deadline: float, reported: Any) -> None:
    """Reads so many records, and tells the delay of each in seconds, by its number."""
    delays: dict[int, float] = {}
    with Log(path) as log, log.consumer(None, "out") as consumer:
        while len(delays) < records and time.time() < deadline:
            found = consumer.poll(10_000, timeout=0.5)
            now = time.time_ns()
            for record in found:
                row = record.json()
                delays[row["n"] - 1] = (now - row["due"]) / 1e9
    reported.put(delays)


def make_topics(path: Path) -> None:
    with Log(path) as log:
        log.create_topic("in")
        log.create_topic("out")


def measure(directory: str, ends: tuple[Any, Any], serve: Serve, warm: int, seconds: int) -> list[float]:
    """The delays of a served flow, in order, without those of the first seconds. `ends` are the sender and the receiver."""
    context = multiprocessing.get_context("spawn")
    reported = context.Queue()
    whole, start = warm + seconds, time.time_ns() + 3_000_000_000
    processes = [
        context.Process(target=ends[0], args=(directory, start, whole), daemon=True),
        context.Process(
            target=ends[1], args=(directory, RATE * whole, time.time() + whole + PATIENCE, reported), daemon=True
        ),
    ]
    for process in processes:
        process.start()
    ended = threading.Event()
    found: list[dict[int, float]] = []

    def await_delays() -> None:
        found.append(reported.get())
        ended.set()

    waiting = threading.Thread(target=await_delays, daemon=True)
    waiting.start()
    serve(ended)
    waiting.join()
    for process in processes:
        process.join()
    delays = [found[0].get(n, float("inf")) for n in range(RATE * warm, RATE * whole)]
    return sorted(delays)


def penstock(spark: SparkSession, directory: Path) -> Serve:
    return served(spark, graph(directory / "log"), directory / "flow")


def served(spark: SparkSession, flow: Graph, checkpoint: Path) -> Serve:
    """A flow of Penstock, live."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    def serve(ended: threading.Event) -> None:
        live = run_live(flow, spark, RunSpec(checkpoint=checkpoint, by_value=(__name__,)))
        threading.Thread(target=_stop_after, args=(ended, live), daemon=True).start()
        live.wait(pause=0.05)

    return serve


def _stop_after(ended: threading.Event, live: LiveRun) -> None:
    ended.wait()
    live.ask_to_stop()


def shown(name: str, delays: list[float]) -> dict[str, float]:
    """The figures of one side."""
    p50, p99 = statistics.median(delays), percentile(delays, 0.99)
    return {f"{name}_p50": p50, f"{name}_p99": p99, f"{name}_most": delays[-1]}


def by_hand(spark: SparkSession, directory: Path) -> Serve:
    from penstock.connectors.log.source import NAME as FORMAT
    from penstock.connectors.log.source import LogDataSource

    def serve(ended: threading.Event) -> None:
        spark.dataSource.register(LogDataSource)
        options = {
            "path": str(directory / "log"),
            "topic": "in",
            "start": "earliest",
            "step": "in",
            "pace": str(directory / "none"),
        }
        raw = spark.readStream.format(FORMAT).options(**options).load()
        rows = (
            raw.selectExpr(f"from_json(cast(value as string), '{FIELDS}') as v").select("v.*").mapInArrow(steps, FIELDS)
        )
        with Log(directory / "log") as log, log.producer() as producer:

            def write(batch: DataFrame, number: int) -> None:
                values = batch.selectExpr("cast(to_json(struct(*)) as binary) as v").toArrow().column(0).to_pylist()
                producer.send_many("out", values)

            writer = rows.writeStream.foreachBatch(write).option("checkpointLocation", str(directory / "hand"))
            query = writer.trigger(processingTime="0 seconds").start()
            ended.wait()
            query.stop()

    return serve


def steps(batches: Iterator[Any]) -> Iterator[Any]:
    """The Python step by hand."""
    import pyarrow as pa

    for batch in batches:
        rows = [step(row["n"], row["due"]) for row in batch.to_pylist()]
        columns = [pa.array([row[at] for row in rows], pa.int64()) for at in (0, 1)]
        yield pa.RecordBatch.from_arrays(columns, ["n", "due"])


def percentile(values: list[float], share: float) -> float:
    """The value below which a share of the sorted values lies.

    >>> percentile([float(n) for n in range(1, 101)], 0.99)
    99.0
    """
    return values[max(round(share * len(values)) - 1, 0)]


def run(quick: bool) -> Result:
    from pyspark import cloudpickle

    warm, seconds = (10, 10) if quick else (20, 60)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    spark = spark_session()
    figures: dict[str, float] = {"records_per_second": RATE}
    for name, made in (("by_hand", by_hand), ("penstock", penstock)):
        with folder() as directory:
            make_topics(directory / "log")
            delays = measure(str(directory / "log"), (send, receive), made(spark, directory), warm, seconds)
        figures |= shown(name, delays)
    figures["p50_over_by_hand"] = figures["penstock_p50"] / figures["by_hand_p50"]
    bars = (
        Bar("p50 in seconds", figures["penstock_p50"], at_most=0.4),
        Bar("p99 in seconds", figures["penstock_p99"], at_most=1.0),
    )
    return Result(NAME, figures, bars)
