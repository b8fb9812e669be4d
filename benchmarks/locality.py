"""What it would bring to send a task back to the worker that has its state: `python -m benchmarks.locality`, the figures of decision 22.

Workers are simulated: directories of copies, one for each. A batch touches 100 k keys of a state of 1 M, and its 8 tasks go to workers by chance, as Spark sends them. With
`--spark` the same is run by Spark with two executors, with copies that both share (as if each task had been sent back) and with copies of their own.
"""

from __future__ import annotations

import argparse
import random
import statistics
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks import big_state
from benchmarks.harness import folder
from benchmarks.remote_state import counting_proxy, worker_environment
from benchmarks.scale import CountingStorage
from penstock.graph.arrays import IntArray
from penstock.graph.state.layout import Column, Layout
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.location import Location
from penstock.state.chain import StepFiles
from penstock.state.store import StateStore, is_state_file
from penstock.state.values import FileState
from penstock.storage import CachedStorage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS, TOUCHED, ROUNDS, TASKS = 1_000_000, 100_000, 12, 8
LAYOUT = Layout((Column("k", pa.int64()),), (Column("n", pa.int64()),), single=True, bare=True)
MASTER = "local-cluster[2,1,1024]"


def simulated(workers: int) -> str:
    """The bytes and requests of a batch, after some that have filled the state."""
    storage, rolled, read = CountingStorage(), random.Random(1), []
    with folder() as place:
        published = StateStore(storage)._published
        for version in range(ROUNDS):
            keys = np.arange(KEYS) if version == 0 else np.arange(version % 10, KEYS, KEYS // TOUCHED)
            hashes = key_hashes([pa.array(keys)], len(keys))
            storage.requests.clear()
            storage.moved.clear()
            store = StateStore(storage, run="r")
            store._published = published
            files = store.begin(version, {"count": TASKS}, version - 1)["count"]
            for task in range(TASKS):
                copies = place / str(rolled.randrange(workers))
                _work(files, CachedStorage(storage, is_state_file, copies), task, keys, hashes)
            store.publish(version)
            published = store._published
            read.append((storage.moved["GET"], storage.requests["GET"]))
        size = sum(file.size for file in published[1]["count"])
    late = read[ROUNDS // 2 :]
    bytes_, gets = (statistics.mean(each) for each in zip(*late, strict=True))
    return f"{workers} workers: {bytes_ / 1e6:.2f} MB and {gets:.1f} GETs a batch, of a state of {size / 1e6:.0f} MB"


def _work(files: StepFiles, storage: CachedStorage, task: int, keys: IntArray, hashes: IntArray) -> None:
    there = StepFiles(storage, files.read, files.folder, files.tasks, files.groups, notes=files.notes)
    state = FileState(there, task)
    state.describe(LAYOUT)
    owned = state.ranges.mask(hashes)
    named = keys[owned].tolist()
    state.prefetch(named, hashes[owned].tolist())
    for key in named:
        state.put(key, (state.get(key) or 0) + 1)
    state.save()


def measured(spark: SparkSession, directory: Path, url: str, port: int, copies: str) -> str:
    """The same by Spark."""
    path, step = str(directory / "records"), KEYS // TOUCHED
    flow, checkpoint = big_state.graph(path), Location(url)
    with counting_proxy(port) as proxy:
        found = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.own_port}", "PENSTOCK_STATE_CACHE": copies}
        with worker_environment(spark, found):
            big_state.keys(spark, path, 0, KEYS)
            big_state.batches(spark, flow, checkpoint)  # type: ignore[arg-type]
            before = proxy.received, proxy.gets
            for at in range(ROUNDS):
                big_state.keys(spark, path, at % step, KEYS, step)
            seconds = big_state.batches(spark, flow, checkpoint)  # type: ignore[arg-type]
        read, gets = (proxy.received - before[0]) / ROUNDS, (proxy.gets - before[1]) / ROUNDS
    return f"{statistics.median(seconds):.2f} s, {read / 1e6:.2f} MB and {gets:.1f} GETs a batch"


def by_spark() -> None:
    """Prints what Spark's two executors take."""
    from penstock.spark.jvm.session import session
    from penstock.testing.stores import s3_server

    with s3_server() as store, store.as_environment() as url, folder() as directory:
        spark = session("locality", MASTER, {"spark.executor.memory": "512m"})
        with worker_environment(spark, dict(store.environment)):
            for name, copies in {"shared": str(directory / "copies"), "own": "copies"}.items():
                line = measured(spark, directory / name, f"{url}/{name}", store.server.port, copies)
                print(f"copies {name}: {line}", flush=True)


def main() -> None:
    """Prints all figures."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--spark", action="store_true")
    for workers in (1, 2, 4, 16):
        print(simulated(workers), flush=True)
    if asked.parse_args().spark:
        by_spark()


if __name__ == "__main__":
    main()
