"""Ports of the loopback, for servers of one's own."""

from __future__ import annotations

import random
import socket
from pathlib import Path

LOOPBACK = "127.0.0.1"
_LOWEST, _TRIES = 20_000, 100
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def free_port() -> int:
    """A port that nobody listens on just now, for a server that is about to start.

    It is none of those that the system gives to connections by itself: any of these could be taken before the server has come up.
    """
    first = _first_of_connections()
    for _ in range(_TRIES if first > _LOWEST else 0):
        port = random.randrange(_LOWEST, first)
        if _is_free(port):
            return port
    with socket.create_server((LOOPBACK, 0)) as server:
        return int(server.getsockname()[1])


def _first_of_connections() -> int:
    """The lowest port that the system gives to connections."""
    try:
        return int(_RANGE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return 32_768


def _is_free(port: int) -> bool:
    try:
        socket.create_server((LOOPBACK, port)).close()
    except OSError:
        return False
    return True


def answers(port: int) -> bool:
    """Whether somebody listens on a port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=0.5).close()
    except OSError:
        return False
    return True
