"""Temporary directories: private, gone with their process, and removed by the next one where it was killed."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

_PREFIX, _SUFFIX = "penstock-", ".locked"
YOUNG = 60.0
"""A directory that was made so many seconds ago may be one whose process has not come to lock it."""


@dataclass
class LockedDirectory:
    """A directory that a lock shows to be in use, for as long as this process lives.

    The lock is on the directory itself: services that remove old temporary files leave alone what is in such a one.
    """

    path: Path
    handle: int

    @classmethod
    def make(cls, purpose: str, above: str | None = None) -> LockedDirectory:
        """Makes one in the directory for temporary files, or in another, and removes those of processes that were killed."""
        above = above or tempfile.gettempdir()
        for left in _abandoned(Path(above)):
            shutil.rmtree(left, ignore_errors=True)
        path = Path(tempfile.mkdtemp(suffix=_SUFFIX, prefix=f"{_PREFIX}{purpose}-", dir=above))
        handle = _opened(path)
        fcntl.flock(handle, fcntl.LOCK_EX)
        return cls(path, handle)

    def close(self) -> None:
        """Removes it; does nothing when it was removed before."""
        shutil.rmtree(self.path, ignore_errors=True)
        handle, self.handle = self.handle, -1
        if handle >= 0:
            os.close(handle)


@contextmanager
def temporary_directory(purpose: str) -> Iterator[Path]:
    """A directory for the time of a block; if the process is killed in it, the next one removes it.

    >>> with temporary_directory("example") as made:
    ...     oct(made.stat().st_mode & 0o777)
    '0o700'
    """
    made = LockedDirectory.make(purpose)
    try:
        yield made.path
    finally:
        made.close()


def _abandoned(directory: Path) -> Iterator[Path]:
    """The locked directories of this user whose process is gone."""
    for found in directory.glob(f"{_PREFIX}*{_SUFFIX}"):
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
    return os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
