"""What the tests of the bridges use: a bridge in a thread or in a process of its own, clients, and a disk that can be held."""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from penstock.bridge import HttpBridge, SocketBridge
from penstock.log import Log
from penstock.log.storage import files

COMMAND = [sys.executable, "-m", "penstock.cli.main", "bridge"]


class Running:
    """A bridge that runs in a thread."""

    def __init__(self) -> None:
        self.server: Any  # a bridge
        self.loop: asyncio.AbstractEventLoop
        self.ready = threading.Event()
        self.stop = threading.Event()
        self.done: bool | None = None
        self.failed: BaseException | None = None

    @property
    def port(self) -> int:
        return int(self.server.address[1])

    async def serve(self, made: Callable[[], HttpBridge | SocketBridge], seconds: float) -> None:
        self.loop = asyncio.get_running_loop()
        self.server = made()
        await self.server.start("127.0.0.1", 0)
        self.ready.set()
        await asyncio.to_thread(self.stop.wait)
        self.done = await self.server.stop(seconds)

    def run(self, made: Callable[[], HttpBridge | SocketBridge], seconds: float) -> None:
        try:
            asyncio.run(self.serve(made, seconds))
        except BaseException as error:
            self.failed = error
        finally:
            self.ready.set()


@contextmanager
def serving(made: Callable[[], HttpBridge | SocketBridge], seconds: float = 9.0) -> Iterator[Running]:
    """A bridge for the time of a block; it ends in good order."""
    running = Running()
    thread = threading.Thread(target=running.run, args=(made, seconds))
    thread.start()
    try:
        assert running.ready.wait(300)
        if running.failed is not None:
            raise running.failed
        yield running
    finally:
        running.stop.set()
        thread.join(300)
    assert running.failed is None, running.failed


class Answer(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def positions(self) -> list[tuple[int, int, int]]:
        return [(p["partition"], p["offset"], p["records"]) for p in self.json()["positions"]]


class Client:
    """An HTTP client that keeps its connection."""

    def __init__(self, port: int, timeout: float = 300) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)

    def post(self, body: bytes, path: str = "/topics/t", kind: str = "", **headers: str) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.ask("POST", path, body, given | ({"Content-Type": kind} if kind else {}))

    def ask(
        self, method: str, path: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> Answer:
        self.connection.request(method, path, body, dict(headers or {}))
        found = self.connection.getresponse()
        return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())

    def close(self) -> None:
        self.connection.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def raw(port: int, data: bytes, timeout: float = 300) -> bytes:
    """Send bytes as they are; all that comes back until the bridge closes the connection."""
    with socket.create_connection(("127.0.0.1", port), timeout=timeout) as made:
        made.sendall(data)
        return everything(made)


def everything(made: socket.socket) -> bytes:
    parts = []
    while part := made.recv(65536):
        parts.append(part)
    return b"".join(parts)


class HeldDisk:
    """A disk whose fsync waits until it is let go."""

    def __init__(self) -> None:
        self.reached, self.go = threading.Event(), threading.Event()
        self.syncs = 0

    def __call__(self, call: files.Call) -> None:
        if call.op == "sync" and call.path.endswith(".log"):
            self.syncs += 1
            self.reached.set()
            assert self.go.wait(300)


@contextmanager
def held_disk() -> Iterator[HeldDisk]:
    disk = HeldDisk()
    files.watch(disk)
    try:
        yield disk
    finally:
        disk.go.set()
        files.watch(None)


def until(holds: Callable[[], object], seconds: float = 300) -> None:
    """Wait for something that happens elsewhere."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def stored(path: Path, topic: str = "t") -> dict[tuple[int, int], bytes | None]:
    """All records by place."""
    with Log(path) as log:
        return {(p, r.offset): r.value for p in log.offsets(topic) for r in log.read(topic, p, 0)}


@contextmanager
def bridge_process(
    *arguments: object, log: Path, port: int = 0, **environment: str
) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """The command in a process of its own, and the port it listens at; killed at the latest with the block."""
    command = [*COMMAND, *map(str, arguments), "--port", str(port), "--log", str(log)]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, env={**os.environ, **environment}
    ) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.search(r":(\d+)(?:/|;)", line)
            assert found is not None, line + process.stderr.read()
            yield process, int(found[1])
        finally:
            process.kill()
