"""A proxy that stands before a server of HTTP and does to requests what networks and busy servers do: loses them, loses answers, delays, says 503."""

from __future__ import annotations

import random
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

BUSY = (
    b"HTTP/1.1 503 Slow Down\r\nContent-Type: application/xml\r\nContent-Length: 40\r\nConnection: close\r\n\r\n"
    b"<Error><Code>SlowDown</Code></Error>    "
)
FAULTS = ("reset", "lose the request", "lose the answer", "cut the answer", "503", "delay")
"""What may happen to a request."""


@dataclass
class Request:
    """A request on its way: its method and path."""

    method: str
    path: str


@dataclass
class FaultProxy:
    """Passes requests on to `port`, one connection for each. `choose` says what happens to a request; "" is nothing."""

    port: int
    choose: Callable[[Request], str] = lambda request: ""
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    own_port: int = 0
    delay: float = 0.3

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.own_port}"

    @property
    def faults(self) -> int:
        """How many requests had a fault."""
        return sum(fault != "" for _, _, fault in self.requests)

    def once(self, fault: str, method: str, part: str = "") -> None:
        """Has a fault happen to the next request of a method whose path holds `part`."""
        waiting = [fault]

        def choose(request: Request) -> str:
            fits = request.method == method and part in request.path
            return waiting.pop() if fits and waiting else ""

        self.choose = choose

    def serve(self, client: socket.socket) -> None:
        """Handles the one request of a connection."""
        head, body = _read_message(client)
        if not head:
            return
        method, path, _ = head.split(b"\r\n", 1)[0].decode().split(" ", 2)
        fault = self.choose(Request(method, path))
        self.requests.append((method, path, fault))
        if fault == "503":
            client.sendall(BUSY)
        elif fault == "delay":
            time.sleep(self.delay)
        if fault in ("503", "lose the request"):
            return
        if fault == "reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return
        answer = self._forward(head, body)
        if fault == "cut the answer":
            answer = answer[: len(answer) // 2]
        if fault != "lose the answer":
            client.sendall(answer)

    def _forward(self, head: bytes, body: bytes) -> bytes:
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as server:
            server.sendall(b"\r\n".join([lines[0], b"Connection: close", *lines[1:]]) + b"\r\n\r\n" + body)
            return b"".join(iter(lambda: server.recv(1 << 16), b""))


def at_random(share: float, seed: int, faults: Sequence[str] = FAULTS[:-1]) -> Callable[[Request], str]:
    """Has a share of requests meet a fault of those given; by default any but a delay."""
    dice, lock = random.Random(seed), threading.Lock()

    def choose(request: Request) -> str:
        with lock:
            return dice.choice(faults) if dice.random() < share else ""

    return choose


def _read_message(client: socket.socket) -> tuple[bytes, bytes]:
    """The head and the body of a request; empty when the connection ends."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = client.recv(1 << 16)
        if not part:
            return b"", b""
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [int(line[15:]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    parts, missing = [body], (lengths[0] if lengths else 0) - len(body)
    while missing > 0:
        part = client.recv(min(missing, 1 << 16))
        if not part:
            return b"", b""
        parts.append(part)
        missing -= len(part)
    return head, b"".join(parts)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128


@contextmanager
def fault_proxy(port: int) -> Iterator[FaultProxy]:
    """A proxy before the server at a port of the loopback, as long as the context lasts."""
    proxy = FaultProxy(port)

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            with suppress(OSError):
                proxy.serve(self.request)

    with _Server(("127.0.0.1", 0), Handler) as server:
        proxy.own_port = int(server.server_address[1])
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield proxy
        finally:
            server.shutdown()
            thread.join()
