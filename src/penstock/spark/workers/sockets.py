"""Sockets between Spark and its Python workers that are files of this user alone.

Over TCP a task waits for the delayed acknowledgements of small messages, which costs tens of milliseconds in every Python stage, and each connection
says a secret first. A Unix socket has neither: who may open the file may talk.
"""

from __future__ import annotations

import atexit
import os
import socket
import tempfile
from pathlib import Path

from penstock.temporary import LockedDirectory

LONGEST = 60
"""The most bytes in the path of the directory: Linux allows 107 for a socket, and Spark's names take up 42."""


def socket_settings() -> dict[str, str]:
    """The settings that make Spark use them; none where there is no directory for them."""
    directory = _made() if hasattr(socket, "AF_UNIX") else None
    if directory is None:
        return {}
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(directory),
    }


def _made() -> Path | None:
    """A directory that only this user can enter, for this process: it goes when the process ends."""
    for above in (tempfile.gettempdir(), "/tmp"):
        if len(os.fsencode(above)) <= LONGEST - len("/penstock-s-12345678.locked"):
            try:
                made = LockedDirectory.make("s", above)
            except OSError:
                continue
            atexit.register(made.close)
            return made.path
    return None
