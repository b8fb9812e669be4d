"""The disk of the jobs: a job that takes more than its share, or fills what all of them need, is stopped, and told why."""

from __future__ import annotations

import logging
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import OptionError, PenstockError
from penstock.jobs.manager.manager import Manager

log = logging.getLogger("penstock")
KEPT_FREE = 1 << 30
"""Bytes of the disk that jobs leave to the database, if nothing else is said."""
LOOK = 10.0
"""Seconds between two looks; where the disk fills up, a tenth."""
NEAR = 4
"""From so many times as much as is kept free on it is known how jobs grow."""
SHARE = 16
"""A job that has grown by less than this part of what is kept free does not fill the disk."""
_MOST_OF_TIME = 0.02


@dataclass(frozen=True)
class DiskLimits:
    """How many bytes a job may take, if that is limited, and how many all of them leave free."""

    of_job: int | None = None
    free: int = KEPT_FREE

    def __post_init__(self) -> None:
        if (self.of_job is not None and self.of_job < 1) or self.free < 0:
            raise OptionError(f"expected bytes of a disk, got {self.of_job} of a job, {self.free} to be left free")


def size_of(folder: Path) -> int:
    """The bytes that a directory takes on its disk. What goes meanwhile counts nothing, and links lead nowhere."""
    return sum(_blocks(entry) for entry in _entries(str(folder)))


def _entries(folder: str) -> Iterator[os.DirEntry[str]]:
    left = [folder]
    while left:
        try:
            with os.scandir(left.pop()) as found:
                for entry in found:
                    yield entry
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
        except OSError:  # it was deleted, or is not for us to read
            continue


def _blocks(entry: os.DirEntry[str]) -> int:
    try:
        return 512 * entry.stat(follow_symlinks=False).st_blocks
    except OSError:
        return 0


def _free(folder: Path) -> int:
    return shutil.disk_usage(folder).free


@dataclass
class DiskGuard:
    """Looks at what the jobs of a manager take. `free` says how much of its disk is left."""

    manager: Manager
    limits: DiskLimits = field(default_factory=DiskLimits)
    free: Callable[[Path], int] = _free
    before: dict[str, int] = field(default_factory=dict)
    """What each job took when the disk began to fill up."""

    def run(self, stopping: threading.Event) -> None:
        """Looks again and again, until it is told to stop."""
        pause = 0.0
        while not stopping.wait(pause):
            began = time.monotonic()
            try:
                is_near = self.look()
            except (PenstockError, OSError) as error:
                is_near = False
                log.warning("the disk of the jobs was not looked at: %s", error)
            pause = max(LOOK / 10 if is_near else LOOK, (time.monotonic() - began) / _MOST_OF_TIME)

    def look(self) -> bool:
        """Stops who takes too much; whether the disk fills up."""
        left = self.free(self.manager.root)
        is_near = left < NEAR * self.limits.free
        if not self.manager.leads or (not is_near and self.limits.of_job is None):
            self.before.clear()
            return is_near
        sizes = {name: size_of(self.manager.directory(name).path) for name in self._running()}
        self._hold_to_share(sizes)
        if not is_near:
            self.before.clear()
        elif left >= self.limits.free:
            self.before = {name: min(size, self.before.get(name, size)) for name, size in sizes.items()}
        else:
            self._make_it_stop(sizes, left)
        return is_near

    def _running(self) -> list[str]:
        return [s.job.name for s in self.manager.last_states() if s.job.wish == "running" and s.is_supervised]

    def _hold_to_share(self, sizes: dict[str, int]) -> None:
        """Stops each job that takes more than a job may."""
        most = self.limits.of_job
        for name, size in sizes.items():
            if most is not None and size > most:
                self._stop(name, f"it takes {_mib(size)} of the disk, and a job may take {_mib(most)} (--job-disk)")

    def _make_it_stop(self, sizes: dict[str, int], left: int) -> None:
        """Stops the job that has grown most since the disk began to fill up, unless none has grown by much: then something else fills it."""
        grown = {name: size - self.before.setdefault(name, size) for name, size in sizes.items()}
        name = max(grown, key=lambda each: grown[each], default="")
        if name and grown[name] > self.limits.free // SHARE:
            why = f"{_mib(left)} of the disk are left, {_mib(self.limits.free)} are to be (--keep-free)"
            self._stop(name, f"{why}, and it took {_mib(grown[name])} meanwhile, more than any other job")
            self.before = sizes

    def _stop(self, name: str, why: str) -> None:
        told = f"{why}; make room, and resume it"
        log.warning("job %s is stopped: %s", name, told)
        self.manager.wish(name, "stopped", "manager", is_forced=True, why=told)


def _mib(size: int) -> str:
    """A number of bytes for people.

    >>> _mib(3 << 30)
    '3,072 MiB'
    """
    return f"{size >> 20:,} MiB"
