"""Sockets between Spark and its Python workers that are files of this user alone.

Over TCP a task waits for the delayed acknowledgements of small messages, which costs tens of milliseconds in every Python stage, and each connection
says a secret first. A Unix socket has neither: who may open the file may talk.
"""

from __future__ import annotations

import os
import socket
import stat
import tempfile
import time
from contextlib import suppress
from pathlib import Path

from penstock.spark.jvm.cache import cache_dir
from penstock.storage.private import DIRECTORY, make_private

LONGEST = 60
"""The most bytes in the path of the directory: Linux allows 107 for a socket, and Spark's names take up 42."""
SETTLED = 60.0
"""After how many seconds a socket that nobody listens to is taken to be of a process that died."""


def socket_settings() -> dict[str, str]:
    """The settings that make Spark use them; none where there is no directory for them."""
    directory = socket_directory() if hasattr(socket, "AF_UNIX") else None
    if directory is None:
        return {}
    _sweep(directory)
    return {
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.python.unix.domain.socket.dir": str(directory),
    }


def socket_directory() -> Path | None:
    """A directory that only this user can enter, with a path that is short enough; it is the same for every run."""
    candidates = (cache_dir() / "sockets", Path(tempfile.gettempdir()) / f"penstock-{os.getuid()}")
    return next(filter(_is_made, candidates), None)


def _is_made(directory: Path) -> bool:
    if len(os.fsencode(directory)) > LONGEST:
        return False
    try:
        found = make_private(directory).lstat()
    except OSError:
        return False
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return mine and stat.S_IMODE(found.st_mode) == DIRECTORY


def _sweep(directory: Path) -> None:
    """Removes the sockets that killed processes have left."""
    for path in directory.glob(".*.sock"):
        with suppress(OSError):
            if time.time() - path.lstat().st_mtime > SETTLED and not _is_open(path):
                path.unlink()


def _is_open(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as mine:
        try:
            mine.connect(str(path))
        except ConnectionRefusedError:
            return False
        return True
