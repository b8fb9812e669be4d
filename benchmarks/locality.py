"""What it would bring to send a task back to the worker that has its state: `python -m benchmarks.locality`, the figures of decision 22.

Two executors of one core each, and a checkpoint on an S3 server. With copies that both share, every task finds its state, as if it had been sent back; with copies of their own a
task finds what its executor has written or read, and fetches the rest. A proxy counts the bytes and requests.
"""

from __future__ import annotations

import statistics
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import big_state
from benchmarks.harness import folder
from benchmarks.remote_state import counting_proxy, worker_environment
from penstock.location import Location

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS, ROUNDS = 1_000_000, 12
MASTER = "local-cluster[2,1,1024]"


def measured(spark: SparkSession, directory: Path, url: str, port: int, copies: str) -> str:
    """A line of figures: batches that touch 100 k keys after the state has grown."""
    path, step = str(directory / "records"), KEYS // big_state.TOUCHED
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


def main() -> None:
    """Prints all figures."""
    from penstock.spark.jvm.session import session
    from penstock.testing.stores import s3_server

    with s3_server() as store, store.as_environment() as url, folder() as directory:
        spark = session("locality", MASTER, {"spark.executor.memory": "512m"})
        with worker_environment(spark, dict(store.environment)):
            for name, copies in {"shared": str(directory / "copies"), "own": "copies"}.items():
                line = measured(spark, directory / name, f"{url}/{name}", store.server.port, copies)
                print(f"copies {name}: {line}", flush=True)


if __name__ == "__main__":
    main()
