"""A real HTTP server that keeps what it gets and answers as it is reported."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest


@dataclass
class Desk:
    """What came in, and what to answer: `answers` is used up first, then `judge` is asked."""

    url: str = ""
    bodies: list[Any] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    answers: list[tuple[int, dict[str, str]]] = field(default_factory=list)
    answered: list[tuple[Any, int]] = field(default_factory=list)
    judge: Callable[[Any], tuple[int, dict[str, str]]] = lambda body: (200, {})
    pause: float = 0.0
    now: int = 0
    most: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def keys(self) -> list[str]:
        return [h["Idempotency-Key"] for h in self.headers]

    def take(self, path: str, headers: dict[str, str], body: Any) -> tuple[int, dict[str, str]]:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(self.pause)
        with self.lock:
            self.now -= 1
            self.paths.append(path)
            self.headers.append(headers)
            self.bodies.append(body)
            made = self.answers.pop(0) if self.answers else self.judge(body)
            self.answered.append((body, made[0]))
            return made


@pytest.fixture
def desk() -> Iterator[Desk]:
    made = Desk()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, headers = made.take(self.path, dict(self.headers), body)
            self.send_response(status)
            for name, text in headers.items():
                self.send_header(name, text)
            self.send_header("Content-Length", "2")
            self.end_headers()
            self.wfile.write(b"ok")

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{server.server_address[1]}/hook?token=geheim"
    yield made
    server.shutdown()
    server.server_close()
