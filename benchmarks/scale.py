"""The figures of `docs/scale.md`: `python -m benchmarks.scale`, and `--spark` for those that need a JVM.

Tasks are simulated, as in the bench `many-tasks`; requests are counted by a storage that counts.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from benchmarks.harness import folder, medians
from benchmarks.many_tasks import fill, now, planner, totals
from benchmarks.remote_state import REGION, regions_of
from penstock.graph.expr import as_expr
from penstock.graph.nodes import EventTime
from penstock.graph.state.layout import Column, Layout
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.watermarks import Timekeeper
from penstock.state.file import StateFile, map_file, write_file
from penstock.state.notes import note_bytes
from penstock.state.ranges import ranges_of
from penstock.state.store import StateStore, is_state_file
from penstock.state.values import FileState
from penstock.storage import CachedStorage, MemoryStorage
from penstock.storage.base import Data, Entry, joined

TASKS = (1, 64, 1024, 4096)
LAYOUT = Layout((Column("k", pa.string()),), (Column("n", pa.int64()),), single=True, bare=True)
READS = ("read", "size", "read_versioned")


class CountingStorage(MemoryStorage):
    """Objects in memory, and how often and how much was asked of them."""

    def __init__(self) -> None:
        super().__init__()
        self.requests: Counter[str] = Counter()
        self.moved: Counter[str] = Counter()

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        """Counts a GET."""
        made = super().read(name, begin, length)
        self.requests["GET"] += 1
        self.moved["GET"] += len(made)
        return made

    def write(self, name: str, data: Data) -> None:
        """Counts a PUT."""
        self.requests["PUT"] += 1
        self.moved["PUT"] += len(joined(data))
        super().write(name, data)

    def put_if_absent(self, name: str, data: Data) -> bool:
        """Counts a PUT."""
        self.requests["PUT"] += 1
        self.moved["PUT"] += len(joined(data))
        return super().put_if_absent(name, data)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        """Counts a LIST for each thousand names."""
        found = list(super().list(prefix))
        self.requests["LIST"] += 1 + len(found) // 1000
        return iter(found)

    def children(self, prefix: str = "") -> Any:
        """Counts a LIST."""
        self.requests["LIST"] += 1
        return super().children(prefix)

    def delete(self, *names: str) -> None:
        """Counts a DELETE for each thousand names, as object stores take them."""
        self.requests["DELETE"] += -(-len(names) // 1000)
        super().delete(*names)


def driver(spark: object) -> None:
    """Seconds of the driver for a batch, by tasks."""
    print("tasks  files  begin  plan  publish  manifest")
    for tasks in TASKS:
        with folder() as place:
            made = now(place / "s", tasks, planner(spark, tasks) if spark is not None else None)  # type: ignore[arg-type]
            fill(made, 10_000 * tasks // 4096 + 4)
            parts = medians(totals(made, 5, tasks))
            path = place / "s" / "versions" / f"{made.version}.json"
            files = len(made.store.read(made.version)["count"])
            seconds = "  ".join(f"{parts[p] * 1000:.0f} ms" for p in ("begin", "plan", "publish"))
            print(f"{tasks:,}  {files:,}  {seconds}  {path.stat().st_size:,} bytes", flush=True)


def manifest(files: int = 100_000, tasks: int = 4096) -> None:
    """The size of a manifest with many files, and how long it takes to write and read it."""
    made = [
        StateFile(f"files/{n}-0123456789ab-18f0a1b2c3d4e5f6/count/{n % tasks}-{n:08x}.state", 1 << 20, n, 9999, ranges_of(n % tasks, tasks, 32_768))
        for n in range(files)
    ]  # fmt: skip
    began = time.perf_counter()
    text = note_bytes({"steps": {"count": [f.to_json() for f in made]}})
    written = time.perf_counter()
    found = [StateFile.from_json(f) for f in json.loads(text.rpartition(b"\n")[0])["steps"]["count"]]
    seconds = written - began, time.perf_counter() - written
    assert found == made
    print(f"manifest of {files:,} files: {len(text):,} bytes, written {seconds[0]:.2f} s, read {seconds[1]:.2f} s")


def requests(*, is_cold: bool) -> None:
    """Requests and bytes of a batch with a URL, by tasks: 100 records of each task, of which half are of known keys.

    Workers that are not cold have copies of the files that they have written.
    """
    print(f"tasks  driver  tasks together, {'cold' if is_cold else 'warm'}")
    for tasks in (1, 8, 64):
        with folder() as place:
            storage, published = CountingStorage(), StateStore(MemoryStorage())._published
            for version in range(8):
                copies = place / (str(version) if is_cold else "copies")
                store = StateStore(CachedStorage(storage, is_state_file, copies), run="r", groups=32_768, epoch=1)
                store._published = published
                storage.requests.clear()
                storage.moved.clear()
                files = store.begin(version, {"count": tasks}, version - 1)["count"]
                mine = storage.requests.copy()
                _work(files, tasks, version)
                theirs = storage.requests - mine
                before = storage.requests.copy()
                store.publish(version)
                published = store._published
                mine += storage.requests - before
        moved = {name: f"{size:,} bytes" for name, size in storage.moved.items()}
        print(f"{tasks:,}  {dict(mine)}  {dict(theirs)}  {moved}", flush=True)


def regions(keys: int = 10_000_000) -> None:
    """What a worker without a copy reads of a file of state, by the keys that a batch touches."""
    rolled = np.random.default_rng(0)
    hashes = np.sort(rolled.integers(-(2**63), 2**63 - 1, keys))
    batch = pa.record_batch({"key_hash": hashes, "key:k": np.arange(keys), "value:n": np.arange(keys)})
    storage = CountingStorage()
    size, crc = write_file(storage, "a.state", batch)
    content = storage.read("a.state")
    for touched in (1, 10, 100, 1000, 10_000, 100_000):
        rows = np.sort(rolled.choice(keys, touched, replace=False))
        storage.requests.clear()
        storage.moved.clear()
        with folder() as place:
            file = StateFile("a.state", size, crc, keys, ranges_of(0, 1, 128))
            opened = map_file(CachedStorage(storage, directory=place), file)
            _, found = opened.find(hashes[rows])
            for name in ("key:k", "value:n"):
                opened.taken(name, found)
        needed = int(regions_of(content, hashes[rows])[0].sum()) * REGION
        read = storage.moved["GET"]
        print(
            f"{touched:,} of {keys:,} keys: {read / 1e6:.1f} MB, {read / needed:.2f} of what is needed, {storage.requests['GET']} GETs"
        )


def _work(files: Any, tasks: int, version: int) -> None:
    keys = [f"key {n}" for n in range(version * 50 * tasks, (version * 50 + 100) * tasks)]
    hashes = key_hashes([pa.array(keys)], len(keys))
    for task in range(tasks):
        state = FileState(files, task)
        state.describe(LAYOUT)
        owned = state.ranges.mask(hashes)
        named = [key for key, is_mine in zip(keys, owned.tolist(), strict=True) if is_mine]
        state.prefetch(named, hashes[owned].tolist())
        for key in named:
            state.put(key, (state.get(key) or 0) + 1)
        state.save()


def watermarks() -> None:
    """What the marks of many partitions cost the driver in a batch."""
    for partitions in (1, 64, 1000, 10_000):
        keeper = Timekeeper((EventTime("s", (), "ts", as_expr("ts"), lateness=0, max_lead=0, idle=50),))
        highs = {"s": {f"{n * 0x9E3779B97F4A7C15 % (1 << 63):x}": 1_700_000_000_000_000 + n for n in range(partitions)}}
        stored: Any = {}
        began = time.perf_counter()
        for now_ in range(1, 6):
            keeper.begin(now_ * 1_700_000_000_000_000)
            stored = keeper.finish(highs)
        seconds = (time.perf_counter() - began) / 5
        print(f"{partitions:,} partitions: {seconds * 1000:.1f} ms, {len(json.dumps(stored)):,} bytes in the manifest")


def scheduling(spark: Any) -> None:
    """What Spark itself takes for a job of many tasks that do nothing."""
    for tasks in TASKS:
        frame = spark.range(0, tasks, 1, tasks)
        frame.count()
        began = time.perf_counter()
        frame.count()
        print(f"a job of {tasks:,} tasks that do nothing: {time.perf_counter() - began:.2f} s", flush=True)


def main() -> None:
    """Prints all figures."""
    asked = argparse.ArgumentParser()
    asked.add_argument("--spark", action="store_true")
    spark: object = None
    if asked.parse_args().spark:
        from benchmarks.harness import spark_session

        spark = spark_session()
        scheduling(spark)
    driver(spark)
    manifest()
    requests(is_cold=False)
    requests(is_cold=True)
    regions()
    watermarks()


if __name__ == "__main__":
    main()
