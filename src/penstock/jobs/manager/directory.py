"""The directory of a job: what is wanted, how its supervisor and its driver are, what they log, and the locks that they hold.

`wanted.json` is written by the manager and followed by the supervisor, which writes `status.json`; `progress.json` is the driver's. `log/` has what the
driver prints, the newest part in `driver.log`, and `checkpoint/` what the flow keeps. `supervisor.lock` and `driver.lock` are held by the one process of each
kind; the kernel gives them up when it ends, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from penstock.jobs.manager.course import Course
from penstock.jobs.manager.job import Job
from penstock.storage import LocalStorage, read_if_present
from penstock.storage.private import make_private

WANTED, STATUS, PROGRESS = "wanted.json", "status.json", "progress.json"
SUPERVISOR, DRIVER = "supervisor.lock", "driver.lock"
LOG = "driver.log"


@dataclass(frozen=True)
class JobDirectory:
    """The files of one job."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """What the flow keeps."""
        return self.path / "checkpoint"

    @property
    def log(self) -> Path:
        """What the driver has printed last."""
        return self.path / "log" / LOG

    def make(self) -> None:
        """Makes it, for its owner alone."""
        for each in (self.path, self.log.parent, self.path / "work"):
            make_private(each)

    def write_wanted(self, job: Job) -> None:
        """Says what is wanted; returns when it is on disk."""
        self._storage.write(WANTED, job.to_json())

    def wanted(self) -> Job | None:
        """What is wanted, if anything was said."""
        found = read_if_present(self._storage, WANTED)
        return None if found is None else Job.from_json(found[0])

    def write_course(self, course: Course) -> None:
        """Says where the job is."""
        self._storage.write(STATUS, json.dumps(asdict(course)).encode())

    def course(self) -> Course:
        """Where the job was said to be last."""
        found = read_if_present(self._storage, STATUS)
        return Course() if found is None else Course(**json.loads(found[0]))

    def write_progress(self, found: Mapping[str, object]) -> None:
        """Says how far the driver is."""
        self._storage.write(PROGRESS, json.dumps(found, default=str).encode())

    def progress(self) -> dict[str, object]:
        """How far the driver said it is last; empty before its first word."""
        found = read_if_present(self._storage, PROGRESS)
        told: dict[str, object] = {} if found is None else json.loads(found[0])
        return told

    def forget_progress(self) -> None:
        """Leaves nothing of the driver before."""
        self._storage.delete(PROGRESS)

    def lock(self, name: str, seconds: float = 0.0) -> IO[bytes] | None:
        """Takes a lock of the job, which holds while the file that is returned is open; None when another process has it for so many seconds.

        Whoever asks `is_held` has the lock for a moment, so the process that is to hold it waits a little.
        """
        deadline = time.monotonic() + seconds
        file = (self.path / name).open("ab")
        while not _take(file):
            if time.monotonic() >= deadline:
                file.close()
                return None
            time.sleep(0.02)
        return file

    def is_held(self, name: str) -> bool:
        """Whether a process has a lock of the job."""
        if not (self.path / name).exists():
            return False
        file = self.lock(name)
        if file is not None:
            file.close()
        return file is None

    @property
    def _storage(self) -> LocalStorage:
        return LocalStorage(self.path)


def _take(file: IO[bytes]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
