"""Ports of the loopback, for servers of one's own."""

from __future__ import annotations

import socket

LOOPBACK = "127.0.0.1"


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.create_server((LOOPBACK, 0)) as server:
        return int(server.getsockname()[1])


def answers(port: int) -> bool:
    """Whether somebody listens on a port."""
    try:
        socket.create_connection((LOOPBACK, port), timeout=0.5).close()
    except OSError:
        return False
    return True
