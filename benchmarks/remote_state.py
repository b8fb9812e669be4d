"""Keyed state with the checkpoint in an object store against one on the local disk, warm; and what a worker reads that has no copies.

The store is an S3 server on the loopback. A cold worker is a new process with an empty directory of copies; a proxy counts the bytes and requests of its reads, and those few of the driver. What it needs are the regions of the
files in which its keys stand, and all of those files that it merges, worked out from the files themselves.
"""

from __future__ import annotations

import os
import socket
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np
import pyarrow as pa

from benchmarks import big_state, keyed_state
from benchmarks.harness import Bar, Result, alternate, folder, medians, paired_ratio, spark_session
from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.graph import Graph
from penstock.location import Address, Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.state.file import StateFile
    from penstock.storage import Storage

NAME = "remote-state"
ABOUT = "keyed state and a large state with the checkpoint on an S3 server, against the local disk; the bytes that a cold worker reads"
TOUCHED = big_state.TOUCHED
REGION = 1 << 16
"""What has a checksum, and is read or not."""


@dataclass
class CountingProxy:
    """Passes connections on to a port of the loopback, and counts what comes back, and what was asked."""

    port: int
    own_port: int = 0
    received: int = 0
    gets: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def pass_on(self, client: socket.socket) -> None:
        """One connection, both ways."""
        with socket.create_connection(("127.0.0.1", self.port)) as server:
            back = threading.Thread(target=self._copy, args=(server, client, self._answered), daemon=True)
            back.start()
            self._copy(client, server, self._asked)
            back.join()

    def _answered(self, part: bytes) -> None:
        with self._lock:
            self.received += len(part)

    def _asked(self, part: bytes) -> None:
        with self._lock:
            self.gets += part.startswith(b"GET /")

    @staticmethod
    def _copy(source: socket.socket, target: socket.socket, seen: Callable[[bytes], None]) -> None:
        with suppress(OSError):
            while part := source.recv(1 << 18):
                seen(part)
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads, block_on_close, request_queue_size = True, False, 128


@contextmanager
def counting_proxy(port: int) -> Iterator[CountingProxy]:
    """A proxy that counts, as long as the context lasts."""
    proxy = CountingProxy(port)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                proxy.pass_on(self.request)

    with _Server(("127.0.0.1", 0), Handler) as server:
        proxy.own_port = int(server.server_address[1])
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield proxy
        finally:
            server.shutdown()


def life(spark: SparkSession, flow: Graph, checkpoint: Address) -> None:
    """The keyed-state bench once, from its first record to its last."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    spec = RunSpec(checkpoint=checkpoint, mode="once", by_value=(keyed_state.__name__,))
    run_live(flow, spark, spec).wait(pause=0.02)


def throughput(spark: SparkSession, directory: Path, url: str, many: int, rounds: int) -> dict[str, list[float]]:
    """The seconds of the keyed-state bench on the local disk and in the store, in turns."""
    flow, numbers = keyed_state.graph(keyed_state.records(spark, directory, many)), count()
    runs = {
        "local": lambda: life(spark, flow, directory / f"flow-{next(numbers)}"),
        "remote": lambda: life(spark, flow, Location(f"{url}/keyed-{next(numbers)}")),
    }
    return alternate(runs, rounds, warm=1)


def grown(
    spark: SparkSession, directory: Path, sides: dict[str, Address], large: int, rounds: int
) -> dict[str, list[float]]:
    """Has both checkpoints keep so many keys, and returns the seconds of batches that touch 100 k of them, warm, in turns."""
    path = str(directory / "records")
    flow = big_state.graph(path)
    for begin in range(0, large, big_state.CHUNK):
        big_state.keys(spark, path, begin, min(begin + big_state.CHUNK, large))
    for checkpoint in sides.values():
        big_state.batches(spark, flow, checkpoint)  # type: ignore[arg-type]
    taken: dict[str, list[float]] = {name: [] for name in sides}
    for at in range(rounds + 1):
        for _ in ("the first batch of a run", "one that is timed"):
            big_state.keys(spark, path, at, large, large // TOUCHED)
        for name, checkpoint in sides.items():
            taken[name].append(big_state.batches(spark, flow, checkpoint)[-1])  # type: ignore[arg-type]
    return {name: seconds[1:] for name, seconds in taken.items()}


def cold(spark: SparkSession, directory: Path, checkpoint: Location, large: int, port: int) -> dict[str, float]:
    """What workers without copies read for a batch that touches 100 k keys, and what they need."""
    from penstock.kernels.hashing.key_hash import key_hashes
    from penstock.state.store import state_storage

    keys = np.arange(1, large, large // TOUCHED)
    needed = bytes_needed(state_storage(checkpoint).storage, np.sort(key_hashes([pa.array(keys)], len(keys))))  # type: ignore[attr-defined]
    big_state.keys(spark, str(directory / "records"), 1, large, large // TOUCHED)
    with counting_proxy(port) as proxy:
        found = {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy.own_port}",
            "PENSTOCK_STATE_CACHE": str(directory / "cold"),
        }
        with worker_environment(spark, found):
            (seconds,) = big_state.batches(spark, big_state.graph(str(directory / "records")), checkpoint)  # type: ignore[arg-type]
        return {
            "cold_seconds": seconds,
            "cold_bytes": proxy.received,
            "cold_gets": proxy.gets,
            "cold_needed_bytes": needed,
        }


@contextmanager
def worker_environment(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """Has Python workers started with these variables, which the driver has too; workers with others are not used."""
    environment: dict[str, str] = spark.sparkContext.environment
    before = dict(environment)
    environment.update(settings)
    try:
        with patch.dict(os.environ, settings):  # a driver tells tasks where its store is
            yield
    finally:
        environment.clear()
        environment.update(before)


def bytes_needed(storage: Storage, hashes: IntArray) -> int:
    """How many bytes a task without copies needs for a batch that touches these key hashes, which are sorted: of the newest version in a store of state."""
    from penstock.state.store import StateStore

    store = StateStore(storage)
    (files,) = store.read(store.versions()[-1]).values()
    by_owner: dict[Any, list[StateFile]] = {}
    for file in files:
        by_owner.setdefault(file.ranges, []).append(file)
    return sum(_needed_of(storage, mine, hashes[ranges.mask(hashes)]) for ranges, mine in by_owner.items())


def _needed_of(storage: Storage, files: list[StateFile], hashes: IntArray) -> int:
    """The same for one task; it merges its newest files while they are at most twice as large as what it writes."""
    written, needed, merges = len(hashes), 0, True
    for file in reversed(files):
        touched, found = regions_of(storage.read(file.path), hashes)
        merges = merges and file.rows <= 2 * written
        written += file.rows if merges else 0
        needed += file.size if merges else int(touched.sum()) * REGION
        hashes = hashes[~found]  # older files are not asked for them
    return needed


def regions_of(content: bytes, hashes: IntArray) -> tuple[BoolArray, BoolArray]:
    """The regions of a file in which rows with these key hashes stand, and which of them it has."""
    data = pa.py_buffer(content)
    end = content.rfind(b"ARROW1") + 6
    batch = pa.ipc.open_file(data.slice(0, end)).get_batch(0)
    mine = batch.column(0).to_numpy()
    at = np.searchsorted(mine, hashes)
    found = mine[np.minimum(at, len(mine) - 1)] == hashes
    rows = at[found]
    touched = np.zeros(end // REGION + 1, bool)
    for column in batch.columns:
        width = column.type.bit_width // 8
        base = column.buffers()[1].address - data.address
        touched[(base + rows * width) // REGION] = touched[(base + rows * width + width - 1) // REGION] = True
    return touched, found


def run(quick: bool) -> Result:
    from penstock.testing.stores import s3_server

    many, large, rounds = (200_000, 1_000_000, 3) if quick else (1_000_000, 10_000_000, 5)
    with s3_server() as store, store.as_environment() as url, folder() as directory:
        spark = spark_session()
        warm = {**store.environment, "PENSTOCK_STATE_CACHE": str(directory / "warm")}
        with worker_environment(spark, warm):
            taken = throughput(spark, directory / "keyed", url, many, rounds)
            sides: dict[str, Address] = {"local": directory / "big" / "flow", "remote": Location(f"{url}/big")}
            big = grown(spark, directory / "big", sides, large, rounds)
            found = cold(spark, directory / "big", Location(f"{url}/big"), large, store.server.port)
    rates = {f"{name}_records_per_second": many / value for name, value in medians(taken).items()}
    seconds = {f"big_{name}_seconds": value for name, value in medians(big).items()}
    bars = (
        Bar("throughput over that on the local disk", paired_ratio(taken, "local", "remote"), at_least=0.7),
        Bar("time of a batch in a large state, over the local disk", paired_ratio(big, "remote", "local"), at_most=2.5),
        Bar("bytes a cold worker reads, over those it needs", found["cold_bytes"] / found["cold_needed_bytes"], at_most=1.3),
    )  # fmt: skip
    return Result(NAME, {"records": many, "keys": large, **rates, **seconds, **found}, bars)
