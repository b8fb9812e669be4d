"""Object stores: the storage of Penstock against `pyarrow.fs`, on one S3 server on the loopback. fsspec takes part where `s3fs` is installed."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from benchmarks.harness import Bar, Result
from penstock.storage import storage_at
from penstock.testing.stores import KEY, SECRET, StoreServer, s3_server

NAME = "stores"
ABOUT = "small puts and gets, ranges and a large object, on an S3 server"
SMALL, LARGE = 1000, 64 << 20


@dataclass(frozen=True)
class Client:
    """What a library does with the objects of a bucket."""

    put: Callable[[str, bytes], object]
    get: Callable[[str], bytes]
    part: Callable[[str, int, int], bytes]


def penstock(store: StoreServer) -> Client:
    """The storage of Penstock, on obstore."""
    storage = storage_at(f"{store.url}/penstock")
    return Client(storage.write, storage.read, storage.read)


def arrow(store: StoreServer) -> Client:
    """The file systems of Arrow."""
    from pyarrow import fs

    address = store.server.url.removeprefix("http://")
    made = fs.S3FileSystem(
        access_key=KEY, secret_key=SECRET, endpoint_override=address, scheme="http", region="us-east-1"
    )

    def put(name: str, data: bytes) -> None:
        with made.open_output_stream(f"penstock/arrow/{name}") as file:
            file.write(data)

    def part(name: str, begin: int, length: int) -> bytes:
        with made.open_input_file(f"penstock/arrow/{name}") as file:
            return bytes(file.read_at(length, begin))

    def get(name: str) -> bytes:
        with made.open_input_file(f"penstock/arrow/{name}") as file:
            return bytes(file.read())

    return Client(put, get, part)


def fsspec(store: StoreServer) -> Client:
    """The s3fs of fsspec."""
    import s3fs  # type: ignore[import-not-found] # not in the lock

    made = s3fs.S3FileSystem(key=KEY, secret=SECRET, endpoint_url=store.server.url)
    at = "penstock/fsspec/{}".format
    return Client(
        lambda name, data: made.pipe_file(at(name), data),
        lambda name: bytes(made.cat_file(at(name))),
        lambda name, begin, length: bytes(made.cat_file(at(name), start=begin, end=begin + length)),
    )


def measured(client: Client, calls: int) -> dict[str, float]:
    """Milliseconds of small calls, megabytes a second of a large object."""
    small, large = b"x" * SMALL, os.urandom(LARGE)
    client.put("warm", small)
    put = _median(lambda at: client.put(f"small/{at}", small), calls)
    get = _median(lambda at: client.get(f"small/{at}"), calls)
    sent = _median(lambda _: client.put("large", large), 2)
    taken = _median(lambda _: client.get("large"), 3)
    part = _median(lambda at: client.part("large", at * 500_000, 65_536), calls)
    rates = {"put_mb_per_second": LARGE / 1e6 / sent, "get_mb_per_second": LARGE / 1e6 / taken}
    return {"put_ms": put * 1000, "get_ms": get * 1000, "range_ms": part * 1000, **rates}


def _median(call: Callable[[int], object], count: int) -> float:
    taken = []
    for at in range(count):
        begun = time.perf_counter()
        call(at)
        taken.append(time.perf_counter() - begun)
    return statistics.median(taken)


def run(quick: bool) -> Result:
    clients = {"penstock": penstock, "arrow": arrow} | ({"fsspec": fsspec} if find_spec("s3fs") else {})
    with s3_server() as store, store.as_environment():
        found = {name: measured(make(store), 20 if quick else 60) for name, make in clients.items()}
    figures = {f"{name}_{what}": value for name, each in found.items() for what, value in each.items()}
    ratio = found["arrow"]["put_ms"] / found["penstock"]["put_ms"]
    return Result(NAME, figures, (Bar("small puts against pyarrow.fs", ratio, at_least=1.0),))
