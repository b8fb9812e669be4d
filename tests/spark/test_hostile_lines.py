"""Hostile lines that come while a flow runs, over TCP, HTTP and from a server of lines, in one query: none stops it, none vanishes."""

from __future__ import annotations

import os
import socket
import threading
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.bridge import HttpBridge, SocketBridge
from penstock.graph.run import RunSpec
from penstock.graph.schema import schema_of
from penstock.kernels.records.reading import read_json
from penstock.log import Log
from penstock.spark.run import run_live
from tests.bridge.serving import Client, serving
from tests.bridge.test_hostile import hostile_lines, sent_over_tcp
from tests.same import hostile

pytestmark = [pytest.mark.spark, pytest.mark.timeout(900)]
MANY = int(os.environ.get("HOSTILE_LINES", "2000"))


def strict(row: Any) -> int:
    """The id of a line of JSON."""
    read_json(row.value, schema_of("id bigint"))
    return len(row.value)


class LineServer:
    """Gives lines to whoever connects."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines, self.server, self.done = lines, socket.create_server(("127.0.0.1", 0)), threading.Event()
        self.thread = threading.Thread(target=self.serve)

    def serve(self) -> None:
        connection, _ = self.server.accept()
        with connection:
            connection.sendall(b"".join(line + b"\n" for line in self.lines))
            self.done.wait(600)

    def __enter__(self) -> LineServer:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.done.set()
        self.thread.join()
        self.server.close()


def test_hostile_lines_of_all_servers_in_one_query(penstock_spark: Any, tmp_path: Path) -> None:
    lines = [line.replace(b"\r", b" ") for line in hostile_lines(MANY)]  # a server of lines ends them there, too
    rows: Counter[str] = Counter()
    dead: list[Any] = []
    flow = ps.Flow("lines", on_error="dead_letter")
    flow.dead_letters("dead", ps.callback(lambda got, batch: dead.extend(got)))

    def sink(name: str) -> Any:
        return ps.callback(lambda got, batch: rows.update({name: len(got)}))

    with ExitStack() as stack:
        log = stack.enter_context(Log(tmp_path / "log"))
        for name in ("tcp", "http"):
            log.create_topic(name, 2)
        server = stack.enter_context(LineServer(lines))
        tcp = stack.enter_context(serving(lambda: SocketBridge(log, "tcp")))
        http = stack.enter_context(serving(lambda: HttpBridge(log, "http")))
        client = stack.enter_context(Client(http.port))
        topics = {name: ps.topic(name, hostile.SCHEMA, path=tmp_path / "log") for name in ("tcp", "http")}
        for name, topic in topics.items():
            flow.source(name, topic, on_error="dead_letter").sink(f"{name}-out", sink(name))
        texts = flow.source("socket", ps.socket_lines(port=server.server.getsockname()[1]))
        texts.map("size", strict, "size int").sink("socket-out", sink("socket"))
        assert all(a.startswith("ok") for a in sent_over_tcp(tcp.port, lines))
        for body in lines[: MANY // 4]:
            assert client.post(body, path="/topics/http").status in (200, 400)
        stored = sum(end for _, end in log.offsets("http").values())
        expected = 2 * len(lines) + stored
        read: list[int] = []
        spec = RunSpec(checkpoint=tmp_path / "checkpoint", duration=600)

        def is_read(report: Any) -> bool:
            read.append(report.rows_in)
            return sum(read) >= expected

        run_live(flow.graph, penstock_spark, spec, until=is_read).wait(0.05)
    assert sum(read) == expected
    letters = Counter({"size": "socket"}.get(letter.step, letter.step) for letter in dead)
    assert {name: rows[name] + letters[name] for name in ("tcp", "http", "socket")} == {
        "tcp": len(lines),
        "http": stored,
        "socket": len(lines),
    }
    assert all(letter.cause for letter in dead)
    assert all(rows[name] for name in rows)
