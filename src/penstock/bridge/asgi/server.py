"""uvicorn as we use it: with bounds on connections, quiet, and without signals of its own; in an event loop or in a thread."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp

from penstock.bridge.asgi.protocol import HEAD, BoundedProtocol, Connections
from penstock.bridge.limits import Limits
from penstock.bridge.listening import listening_socket, stop_listening

_NEVER = 1 << 30
"""Connections at rest are closed by their own protocol."""


def bounded_config(app: ASGIApp, shared: Connections, **settings: Any) -> uvicorn.Config:
    """The settings of a server whose connections are bounded."""
    return uvicorn.Config(
        app,
        http=cast(type[asyncio.Protocol], partial(BoundedProtocol, shared)),
        ws="none",
        h11_max_incomplete_event_size=HEAD,
        timeout_keep_alive=_NEVER,
        **{"log_level": "error", "access_log": False, "server_header": False, "proxy_headers": False, **settings},
    )


class QuietServer(uvicorn.Server):
    """A server that leaves signals to its program, and no connection behind."""

    def __init__(self, app: ASGIApp, limits: Limits, **settings: Any) -> None:
        self.shared = Connections(limits)
        super().__init__(bounded_config(app, self.shared, lifespan="off", log_config=None, **settings))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends."""
        await stop_listening(self.servers)
        await super().shutdown(sockets)
        await self.shared.abort()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Takes none."""
        yield


class LoopServer:
    """Serves an application in the event loop that is running."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.server = QuietServer(app, limits)
        self._serving: asyncio.Task[None] | None = None

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return len(self.server.server_state.connections)

    async def start(self, listening: socket.socket) -> None:
        """Begins to answer at a socket."""
        self._serving = asyncio.create_task(self.server.serve([listening]))
        while not self.server.started and not self._serving.done():
            await asyncio.sleep(0.001)

    async def stop(self, seconds: float) -> None:
        """Takes no connection more and closes those at rest; requests that have begun have so many seconds."""
        if self._serving is None:
            return
        await stop_listening(self.server.servers)
        self.server.config.timeout_graceful_shutdown = cast(int, seconds)  # a float does as well
        self.server.should_exit = True
        await self._serving


class ThreadServer:
    """Serves an application in a thread of its own, until it is closed."""

    def __init__(self, app: ASGIApp, host: str, port: int, option: str = "--port") -> None:
        listening = listening_socket(host, port, option)
        self.port = int(listening.getsockname()[1])
        self._server = QuietServer(app, Limits(connections=100), timeout_graceful_shutdown=1)
        self._thread = threading.Thread(target=self._server.run, args=([listening],), name="penstock-http", daemon=True)
        self._thread.start()
        while not self._server.started and self._thread.is_alive():  # it does not answer before
            time.sleep(0.005)

    def close(self) -> None:
        """Stops answering."""
        self._server.should_exit = True
        self._thread.join(timeout=5)
