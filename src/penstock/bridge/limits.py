"""How much a bridge takes, and how long it waits: nothing a client does makes it hold more."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

_SMALLEST, _LARGEST = 4 << 10, 256 << 10


@dataclass(frozen=True)
class Limits:
    """The bounds of a bridge. Sizes in bytes, times in seconds."""

    body: int = 1 << 20
    """The longest body of a request, or the longest line."""
    waiting: int = 1000
    """Requests that wait for the disk at once."""
    held: int = 64 << 20
    """Bytes of all requests that are being read or wait for the disk."""
    connections: int = 1000
    remember: int = 100_000
    """Idempotency keys that are known again."""
    head_seconds: float = 10.0
    """How long the head of a request, or a line that has begun, may take."""
    idle_seconds: float = 60.0
    """How long a connection may stay without a request."""
    crowded_seconds: float = 1.0
    """How long a connection may stay without a request when others cannot get one."""
    write_seconds: float = 10.0
    """How long a client may leave an answer unread."""
    least_rate: int = 32 << 10
    """Bytes a second that a body must come with, after `head_seconds`."""

    def piece(self, connections: int) -> int:
        """How many bytes of a connection are read at once, and so held unseen: all connections together take a quarter of `held`.

        >>> Limits().piece(1), Limits().piece(1000)
        (262144, 16777)
        """
        return max(_SMALLEST, min(_LARGEST, self.held // 4 // max(1, connections)))

    def body_seconds(self, size: int) -> float:
        """How long a body of this size may take.

        >>> Limits().body_seconds(1 << 20)
        42.0
        """
        return self.head_seconds + size / self.least_rate


class Room:
    """What is held in memory on its way to the disk. For the thread of the event loop alone."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._freed = asyncio.Event()
        self.requests = self.size = 0

    @property
    def full(self) -> bool:
        """Whether nothing more may be taken in."""
        return self.requests >= self._limits.waiting or self.size >= self._limits.held

    def take(self, requests: int, size: int) -> None:
        """Count something in."""
        self.requests += requests
        self.size += size

    def give(self, requests: int, size: int) -> None:
        """Count it out again."""
        self.take(-requests, -size)
        self._freed.set()

    async def free(self) -> None:
        """Wait until it is not full."""
        while self.full:
            self._freed.clear()
            await self._freed.wait()
