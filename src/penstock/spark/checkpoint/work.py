"""Working directories of drivers whose checkpoint is a URL: private, gone with the process, and removed by the next where it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_PREFIX = "penstock-work-"
_LOCK = "lock"
YOUNG = 60.0
"""A directory without a lock that was made so many seconds ago may be one whose process has not come to lock it."""


@dataclass
class WorkingDirectory:
    """A directory that a lock shows to be in use, for as long as this process lives."""

    path: Path
    lock: IO[str]

    @classmethod
    def make(cls) -> WorkingDirectory:
        """Makes one in the directory for temporary files, and removes those of drivers that were killed."""
        for left in abandoned(Path(tempfile.gettempdir())):
            shutil.rmtree(left, ignore_errors=True)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        lock = (path / _LOCK).open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return cls(path, lock)

    def close(self) -> None:
        """Removes it."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.lock.close()


def abandoned(directory: Path) -> Iterator[Path]:
    """The working directories of this user whose process is gone."""
    for found in directory.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if found.stat().st_uid == os.getuid() and not _is_in_use(found / _LOCK):
                yield found


def _is_in_use(lock: Path) -> bool:
    if not lock.exists():
        return time.time() - lock.parent.stat().st_ctime < YOUNG
    with lock.open("r") as file:
        if time.time() - os.fstat(file.fileno()).st_mtime < YOUNG:
            return True
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return True
    return False
