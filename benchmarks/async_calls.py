"""async: a service that takes 10 ms, called by `map_async` with 100 calls under way and by `map`, one after the other.

    penstock bench async

The service is an HTTP server in a process of its own, on this machine. Both flows run on the local host over 2,000 records, and keep their
connections: `map` one of `http.client`, `map_async` a hundred streams of `asyncio`.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import multiprocessing
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from multiprocessing.connection import Connection
from typing import Any

import penstock as ps
from benchmarks.harness import Bar, Result
from penstock.testing import run_local

NAME = "async"
ABOUT = "map_async with 100 calls at a time against map, a service of 10 ms: at least 20 times the throughput"
SECONDS = 0.01
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
        while await reader.readuntil(b"\r\n\r\n"):
            await asyncio.sleep(SECONDS)
            writer.write(ANSWER)
    writer.close()


async def _serve(reported: Connection) -> None:
    server = await asyncio.start_server(_answer, "127.0.0.1", 0, backlog=1000)
    reported.send(server.sockets[0].getsockname()[1])
    await server.serve_forever()


def _server(reported: Connection) -> None:
    asyncio.run(_serve(reported))


@contextmanager
def service() -> Iterator[int]:
    """The port of a service that takes 10 ms for each answer."""
    spawning = multiprocessing.get_context("spawn")
    here, there = spawning.Pipe()
    process = spawning.Process(target=_server, args=(there,), daemon=True)
    process.start()
    try:
        yield here.recv()
    finally:
        process.terminate()
        process.join()


@lru_cache(maxsize=1)
def connection(port: int) -> http.client.HTTPConnection:
    """The one connection of this process."""
    return http.client.HTTPConnection("127.0.0.1", port)


def blocking(port: int, row: Any) -> Any:
    """A call that waits."""
    connection(port).request("GET", "/")
    return row.n, connection(port).getresponse().read().decode()


class Calls(ps.AsyncFunction):
    """A call that lets others go on."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def on_open(self) -> None:
        """No connection yet."""
        self.idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []

    async def on_event(self, row: Any) -> Any:
        """The record with the answer."""
        reader, writer = self.idle.pop() if self.idle else await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(REQUEST)
        head = await reader.readuntil(b"\r\n\r\n")
        body = await reader.readexactly(int(head.split(b"Content-Length: ")[1].split()[0]))
        self.idle.append((reader, writer))
        return row.n, body.decode()

    async def on_close(self) -> None:
        """Closes all."""
        for _, writer in self.idle:
            writer.close()


Flow = Callable[[int], ps.Flow]


def with_map(port: int) -> ps.Flow:
    """One call at a time."""
    flow = ps.Flow("with-map")
    numbers = flow.source("n", ps.items([], "n bigint"))
    numbers.map("call", partial(blocking, port), "n bigint, answer string").sink("out", ps.console())
    return flow


def with_map_async(port: int) -> ps.Flow:
    """A hundred calls at a time, in order."""
    flow = ps.Flow("with-map-async")
    numbers = flow.source("n", ps.items([], "n bigint"))
    numbers.map_async("call", Calls(port), "n bigint, answer string", concurrency=100).sink("out", ps.console())
    return flow


def seconds(make: Flow, port: int, records: int) -> float:
    """How long a flow takes for so many records."""
    flow = make(port)
    began = time.perf_counter()
    rows = run_local(flow, {"n": range(records)})["out"]
    taken = time.perf_counter() - began
    assert [tuple(row) for row in rows] == [(n, "ok") for n in range(records)]
    return taken


def run(quick: bool = False) -> Result:
    """Measures both; the first, short runs only warm up."""
    records = 400 if quick else 2_000
    with service() as port:
        for make in (with_map, with_map_async):
            seconds(make, port, 50)
        one, many = seconds(with_map, port, records), min(seconds(with_map_async, port, records) for _ in range(3))
    figures = {"map_records_per_second": records / one, "map_async_records_per_second": records / many}
    return Result(NAME, figures, (Bar("map_async_over_map", one / many, at_least=20),))
