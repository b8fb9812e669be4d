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

_PREFIX = "penstock-work-"
YOUNG = 60.0
"""A directory that was made so many seconds ago may be one whose process has not come to lock it."""


@dataclass
class WorkingDirectory:
    """A directory that a lock shows to be in use, for as long as this process lives.

    The lock is on the directory itself: services that remove old temporary files leave alone what is in such a one.
    """

    path: Path
    handle: int

    @classmethod
    def make(cls) -> WorkingDirectory:
        """Makes one in the directory for temporary files, and removes those of drivers that were killed."""
        for left in abandoned(Path(tempfile.gettempdir())):
            shutil.rmtree(left, ignore_errors=True)
        path = Path(tempfile.mkdtemp(prefix=_PREFIX))
        handle = _opened(path)
        fcntl.flock(handle, fcntl.LOCK_EX)
        return cls(path, handle)

    def close(self) -> None:
        """Removes it."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self.handle)


def abandoned(directory: Path) -> Iterator[Path]:
    """The working directories of this user whose process is gone."""
    for found in directory.glob(f"{_PREFIX}*"):
        with suppress(OSError):
            if found.stat().st_uid == os.getuid() and not _is_in_use(found):
                yield found


def _is_in_use(directory: Path) -> bool:
    if time.time() - directory.stat().st_mtime < YOUNG:
        return True
    handle = _opened(directory)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(handle)
    return False


def _opened(directory: Path) -> int:
    return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
