"""A socket on which a server listens, or the reason why it cannot."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable

from penstock.errors import SetupError


def listening_socket(host: str, port: int, option: str = "--port") -> socket.socket:
    """A socket that is bound to an address; port 0 takes a free one. `option` is what chooses the port.

    Raises:
        SetupError: the port is taken, or the address is none of this machine.

    >>> with listening_socket("127.0.0.1", 0) as made:
    ...     made.getsockname()[0]
    '127.0.0.1'
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host.strip("[]"), port))
    except OSError as error:
        made.close()
        raise SetupError(
            f"cannot listen at {host}:{port}: {(error.strerror or str(error)).lower()}; "
            f"stop what listens there, or choose another port; {option} 0 takes a free port"
        ) from None
    return made


async def stop_listening(servers: Iterable[asyncio.Server]) -> None:
    """Has servers take no connection more. Those that asyncio has accepted become connections first: it would lose them when the server closes before."""
    found, loop = list(servers), asyncio.get_running_loop()
    for each in found:
        for listening in each.sockets:
            loop.remove_reader(listening)
    for _ in range(3):
        await asyncio.sleep(0)
    for each in found:
        each.close()
