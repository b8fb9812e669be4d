"""A batch that touches 100 k keys, in a small state and in a large one; memory of the workers; a restart."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, folder, spark_session
from benchmarks.keyed_state import Counter
from penstock.graph.endpoints.basic import nothing
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "big-state"
ABOUT = "a batch of 100 k keys in a state of 100 k and of 10 M keys, memory of the workers, and a restart"
TOUCHED = 100_000
CHUNK = 1_000_000
"""How many keys a batch brings in while the state grows."""


def graph(path: str) -> Graph:
    flow = ps.Flow("big-state")
    records = flow.source("records", ps.files(path, "parquet", "k bigint", files_per_batch=1))
    records.key_by("k").process("count", Counter, schema="k bigint, n bigint").sink("out", nothing())
    return flow.graph


def keys(spark: SparkSession, path: str, begin: int, end: int, step: int = 1) -> None:
    """One file with these keys, which makes one batch."""
    spark.range(begin, end, step, 1).toDF("k").write.mode("append").parquet(path)


class Memory:
    """The most memory that all Python workers together have had, in bytes: what is theirs alone and a fair share of the rest."""

    def __init__(self) -> None:
        self.most, self.over = 0, threading.Event()

    def __enter__(self) -> Memory:
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()

    def _watch(self) -> None:
        while not self.over.wait(0.2):
            self.most = max(self.most, sum(map(resident, workers())))


def workers() -> list[int]:
    """The Python workers below this process."""
    parents: dict[int, int] = {}
    named: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                status = (entry / "stat").read_text()
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            parents[int(entry.name)] = int(status.rpartition(")")[2].split()[1])
            if b"pyspark.daemon" in command:
                named.append(int(entry.name))
    return [pid for pid in named if _below(pid, parents)]


def _below(pid: int, parents: dict[int, int]) -> bool:
    while pid in parents:
        if pid == os.getpid():
            return True
        pid = parents[pid]
    return False


def resident(pid: int) -> int:
    """Resident memory of a process; pages it shares with others count in part."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return sum(1024 * int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def batches(spark: SparkSession, flow: Graph, directory: Path) -> list[float]:
    """Runs what has come, and gives the seconds of each batch."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    reports: list[Any] = []
    options = RunSpec(checkpoint=directory, mode="once", by_value=(__name__, Counter.__module__))
    run_live(flow, spark, options, observers=(reports.append,)).wait(pause=0.02)
    return [r.seconds["compute"] + r.seconds["state"] for r in reports if r.taken.get("count")]


def run(quick: bool) -> Result:
    large, rounds = (1_000_000, 3) if quick else (10_000_000, 5)
    spark = spark_session()
    with folder() as directory, Memory() as memory:
        path, flow = str(directory / "records"), graph(str(directory / "records"))
        keys(spark, path, 0, TOUCHED)
        for _ in range(rounds + 2):
            keys(spark, path, 0, TOUCHED)
        small = statistics.median(batches(spark, flow, directory / "flow")[-rounds:])
        for begin in range(TOUCHED, large, CHUNK):
            keys(spark, path, begin, min(begin + CHUNK, large))
        batches(spark, flow, directory / "flow")
        for at in range(rounds + 2):
            keys(spark, path, at, large, large // TOUCHED)
        big = statistics.median(batches(spark, flow, directory / "flow")[-rounds:])
        keys(spark, path, 1, large, large // TOUCHED)
        restart = _restart(path, directory / "flow")
    figures = {"keys": large, "small_seconds": small, "large_seconds": big, "workers_mib": memory.most / 2**20}
    bars = (
        Bar("time of a batch, large over small state", big / small, at_most=2.0),
        Bar("memory of all workers, GiB", memory.most / 2**30, at_most=1.5),
        Bar("restart to first output, seconds", restart, at_most=30.0),
    )
    return Result(NAME, {**figures, "restart_seconds": restart}, bars)


def _restart(path: str, directory: Path) -> float:
    """From the start of a new process, with a JVM and workers that know nothing, to the end of its first batch."""
    began = time.perf_counter()
    code = "import sys; from benchmarks.big_state import once; once(*sys.argv[1:])"
    settings = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    subprocess.run([sys.executable, "-c", code, path, str(directory)], env=settings, check=True)
    return time.perf_counter() - began


def once(path: str, directory: str) -> None:
    """A life of the flow, over what has come."""
    if not batches(spark_session(), graph(path), Path(directory)):
        raise RuntimeError("the flow found nothing to do")
