"""A server of lines: it listens, bounds the number of connections, and ends in good order."""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress
from time import monotonic
from typing import Any, TypeAlias, cast

from penstock.bridge.intake import Intake
from penstock.bridge.limits import Limits
from penstock.bridge.listening import stop_listening
from penstock.log import Log

Reader: TypeAlias = asyncio.StreamReader
Writer: TypeAlias = asyncio.StreamWriter
_CLOSE = 2.0


class Server:
    """A bridge from the network to a topic. Made and used inside an event loop."""

    stream_limit = 32 << 10

    def __init__(self, log: Log, topic: str, limits: Limits | None = None) -> None:
        self.limits = limits or Limits()
        self.topic = topic
        self.intake = Intake(log, topic, self.limits)
        self.stopping = False
        self.address: tuple[str, int] = ("", 0)
        self._server: asyncio.Server | None = None
        self._talks: set[asyncio.Task[None]] = set()
        self._idle: dict[Writer, float] = {}

    async def start(self, host: str, port: int) -> None:
        """Begin to listen; `address` then says where."""
        made = await asyncio.start_server(self._connected, host, port, limit=self.stream_limit, backlog=1024)
        self._server = made
        self.address = made.sockets[0].getsockname()[:2]

    async def stop(self, seconds: float = 9.0) -> bool:
        """Take nothing new, finish and answer what was taken, and close; whether that was done in time."""
        deadline = monotonic() + seconds
        self.stopping = True
        if self._server is not None:
            await stop_listening([self._server])
        for writer in list(self._idle):
            writer.close()
        if self._talks:
            await asyncio.wait(self._talks, timeout=max(deadline - monotonic() - _CLOSE, 0))
        done = await self.intake.close(max(deadline - monotonic(), 0))
        for talk in self._talks:
            talk.cancel()
        if self._talks:
            await asyncio.wait(self._talks, timeout=0.5)
        return done

    async def talk(self, reader: Reader, writer: Writer) -> None:
        """Serve one connection."""
        raise NotImplementedError

    def refusal(self) -> bytes:
        """The answer to a connection too many."""
        raise NotImplementedError

    async def _connected(self, reader: Reader, writer: Writer) -> None:
        task = asyncio.current_task()
        assert task is not None
        if self.stopping or (len(self._talks) >= self.limits.connections and not self._close_idle()):
            writer.write(self.refusal())
            await self._hang_up(writer)
            return
        self._talks.add(task)
        _watch(writer)
        self.bound(writer)
        try:
            await self.talk(reader, writer)
        except (ConnectionError, TimeoutError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._talks.discard(task)
            await self._hang_up(writer)

    def _close_idle(self) -> bool:
        """Closes the connection that has rested longest, to make room for another; false when none has rested long enough."""
        for writer, since in self._idle.items():
            if monotonic() - since < self.limits.crowded_seconds:
                return False
            del self._idle[writer]
            writer.close()
            return True
        return False

    def bound(self, writer: Writer) -> int:
        """Bounds what is read of a connection before it is looked at; returns how much that is."""
        size = self.limits.piece(len(self._talks))
        if hasattr(writer.transport, "max_size"):
            cast(Any, writer.transport).max_size = size
        return size

    async def _hang_up(self, writer: Writer) -> None:
        self._idle.pop(writer, None)
        writer.close()
        with suppress(OSError, TimeoutError, asyncio.CancelledError):
            await asyncio.wait_for(writer.wait_closed(), _CLOSE)
        writer.transport.abort()

    async def more(self, reader: Reader, writer: Writer, size: int) -> bytes:
        """What comes next on a connection that is at rest; nothing when it ends, or rests too long."""
        if self.stopping:
            return b""
        self._idle[writer] = monotonic()
        try:
            async with asyncio.timeout(self.limits.idle_seconds or None):
                return await reader.read(size)
        except TimeoutError:
            return b""
        finally:
            self._idle.pop(writer, None)

    async def send(self, writer: Writer, data: bytes) -> None:
        """Write, and wait while the client leaves too much unread; but not for ever."""
        writer.write(data)
        async with asyncio.timeout(self.limits.write_seconds):
            await writer.drain()


def _watch(writer: Writer) -> None:
    """Let the kernel find out when the other machine has gone."""
    found = writer.get_extra_info("socket")
    if found is not None:
        with suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def complain(text: str) -> None:
    """A line for whoever runs the bridge."""
    sys.stderr.write(f"bridge: {text}\n")
    sys.stderr.flush()
