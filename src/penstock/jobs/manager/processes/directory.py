"""The directory of a job: what is wanted, how its supervisor and its driver are, what they log, and the locks that they hold.

`wanted-EPOCH.json` is written by the manager that leads and followed by the supervisor, which writes `status.json`; of several the highest counts; `progress.json` is the driver's, and so are `plan.json`, what the
flow will do, and `failure.json`, what ended the last driver that failed; `watch.json` says what somebody looks at, and
`samples.json`, `trace.json` and `profile.json` have what is seen there. `log/` has what the
driver prints, the newest part in `driver.log`, and `checkpoint/` what the flow keeps; each upgrade has a
`checkpoint-N/` of its own. `supervisor.lock` and `driver.lock` are held by the one process of each
kind; the kernel gives them up when it ends, however it ends.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import IO

from penstock.errors import PenstockError
from penstock.jobs.manager.access.accounts import Account, acting_as, pass_through, share
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.course import Course
from penstock.jobs.manager.processes.heard import heard, read_object
from penstock.storage import LocalStorage, read_if_present
from penstock.storage.local import TEMPORARY
from penstock.storage.private import FILE, make_private

WATCH, SAMPLES, TRACE, PROFILE = "watch.json", "samples.json", "trace.json", "profile.json"
LOG_LEVELS = "log_levels.json"
STATUS, PROGRESS, PLAN, FAILURE = "status.json", "progress.json", "plan.json", "failure.json"
_WANTED = re.compile(r"wanted-([0-9]{1,18})\.json")
_TRIES = 100
ACCOUNT = "account.json"
LARGEST = 16 << 20
"""How many bytes a file may have that a driver wrote."""
SUPERVISOR, DRIVER = "supervisor.lock", "driver.lock"
LOG = "driver.log"


@dataclass(frozen=True)
class JobDirectory:
    """The files of one job."""

    path: Path

    @property
    def checkpoint(self) -> Path:
        """What the version of the flow keeps that runs, or ran last."""
        job = self.wanted()
        return self.path / ("checkpoint" if job is None else self.course().followed(job).checkpoint)

    @property
    def log(self) -> Path:
        """What the driver has printed last."""
        return self.path / "log" / LOG

    def make(self, account: Account | None = None) -> None:
        """Makes it, for its owner alone; with a user of the machine, for that one's driver too."""
        for each in (self.path, self.log.parent, self.path / "work"):
            make_private(each)
        if account is not None and self.account is None:
            self._share(account)

    def _share(self, account: Account) -> None:
        """Has the driver of a user reach it. This happens once, before there is a driver: what is in the directory then is root's."""
        pass_through(self.path.parent.parent, self.path.parent)
        make_private(self.path / "bundle")
        os.chown(self.path / "work", account.uid, account.gid, follow_symlinks=False)
        LocalStorage(self.path).write(ACCOUNT, json.dumps(asdict(account)).encode())
        for each in (make_private(self.path / TEMPORARY), self.path):
            share(each, account)

    @property
    def account(self) -> Account | None:
        """The user whose rights the driver has, as root wrote it; None for those of the manager."""
        if os.geteuid() != 0:
            return None
        found = read_regular(self.path / ACCOUNT, owner=0)
        return None if found is None else Account(**json.loads(found))

    def acting(self) -> AbstractContextManager[None]:
        """Reads and changes what the driver wrote with the driver's own rights."""
        return acting_as(self.account)

    def write_wanted(self, job: Job, epoch: int = 0) -> None:
        """Says what is wanted; returns when it is on disk. What managers wrote that led before counts no more."""
        self._storage.write(f"wanted-{epoch}.json", job.to_json())
        for older in self._epochs():
            if older < epoch:
                self._storage.delete(f"wanted-{older}.json")

    def wanted(self) -> Job | None:
        """What is wanted, if anything was said. A damaged file says nothing: the manager writes it anew."""
        return self.wanted_of()[1]

    def wanted_of(self) -> tuple[int, Job | None]:
        """Under which epoch something was said last, -1 if nothing was, and what is wanted."""
        for _ in range(_TRIES):
            epoch = max(self._epochs(), default=-1)
            found = read_if_present(self._storage, f"wanted-{epoch}.json") if epoch >= 0 else None
            if epoch < 0 or found is not None:
                break
        try:
            return epoch, None if found is None else Job.from_json(found[0])
        except (PenstockError, ValueError, TypeError, AttributeError):
            return epoch, None

    def _epochs(self) -> list[int]:
        try:
            names = [entry.name for entry in self.path.iterdir()]
        except FileNotFoundError:
            return []
        return [int(found[1]) for found in map(_WANTED.fullmatch, names) if found and self._is_own(found[0])]

    def _is_own(self, name: str) -> bool:
        """Whether a file is of who has the directory: a driver of another user can make files there, and wants nothing."""
        try:
            return os.lstat(self.path / name).st_uid == self.path.stat().st_uid
        except OSError:
            return False

    def put_aside(self, into: Path, epoch: int) -> bool:
        """Moves all that a job kept, for good; False when a process has it, or a manager that leads later than `epoch`.

        No supervisor can start meanwhile, and the move is one step: a manager that goes on after another one took over moves nothing of it.
        """
        if not self.path.exists():
            return True
        lock = self.lock(SUPERVISOR, 1.0)
        if lock is None:
            return False
        with lock:
            if max(self._epochs(), default=-1) > epoch:
                return False
            make_private(into.parent)
            self.path.rename(into)
        return True

    def write_course(self, course: Course) -> None:
        """Says where the job is."""
        self._storage.write(STATUS, json.dumps(asdict(course)).encode())

    def course(self) -> Course:
        """Where the job was said to be last; a damaged file says nothing."""
        found = read_if_present(self._storage, STATUS)
        try:
            return Course() if found is None else Course(**json.loads(found[0]))
        except (ValueError, TypeError):
            return Course()

    def write_progress(self, found: Mapping[str, object]) -> None:
        """Says how far the driver is."""
        self._storage.write(PROGRESS, json.dumps(found, default=str).encode())

    def progress(self) -> dict[str, object]:
        """How far the driver said it is last; empty before its first word, and where the file is damaged."""
        return heard(self._read(PROGRESS))

    def write_plan(self, plan: Mapping[str, object]) -> None:
        """Says what the flow will do, as `penstock describe --json` does."""
        self._storage.write(PLAN, json.dumps(plan, default=str).encode())

    def plan(self) -> dict[str, object]:
        """What the flow will do; empty before its driver has said it. It is read again when it has changed: many ask for it, and it changes seldom."""
        try:
            with self.acting():
                found = (self.path / PLAN).stat()
        except OSError:
            return {}
        return dict(_plan_at(self, found.st_mtime_ns, found.st_size, found.st_ino))

    def write_failure(self, failure: Mapping[str, object]) -> None:
        """Says what ended the driver."""
        self._storage.write(FAILURE, json.dumps(failure, default=str).encode())

    def failure(self) -> dict[str, object]:
        """What ended the last driver that failed; empty where none did."""
        return self._read(FAILURE)

    def write_watch(self, wishes: list[dict[str, object]], **more: object) -> None:
        """Says which streams somebody looks at, and until when; and until when messages are traced, and the driver is profiled."""
        self._storage.write(WATCH, json.dumps({"wishes": wishes, **more}).encode())

    def watch(self) -> dict[str, object]:
        """Which streams somebody looks at; empty where nobody ever did, which costs one look for a file."""
        return self._read(WATCH) if (self.path / WATCH).exists() else {}

    def write_shown(self, name: str, found: Mapping[str, object]) -> None:
        """Shows what was looked at: SAMPLES, TRACE or PROFILE; or says how much is to be logged: LOG_LEVELS."""
        self._storage.write(name, json.dumps(found, default=str).encode())

    def shown(self, name: str) -> dict[str, object]:
        """What was looked at last."""
        return self._read(name)

    def samples(self) -> dict[str, object]:
        """The records of streams that were looked at last."""
        return self.shown(SAMPLES)

    def log_levels(self) -> dict[str, object]:
        """How much is to be logged, by logger; empty where nobody ever asked, which costs one look for a file."""
        return self._read(LOG_LEVELS) if (self.path / LOG_LEVELS).exists() else {}

    def forget_progress(self) -> None:
        """Leaves nothing of the driver before."""
        self._storage.delete(PROGRESS)

    def lock(self, name: str, seconds: float = 0.0) -> IO[bytes] | None:
        """Takes a lock of the job, which holds while the file that is returned is open; None when another process has it for so many seconds.

        Whoever asks `is_held` has the lock for a moment, so the process that is to hold it waits a little.
        """
        deadline = time.monotonic() + seconds
        file = os.fdopen(os.open(self.path / name, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, FILE), "ab")
        while not _take(file):
            if time.monotonic() >= deadline:
                file.close()
                return None
            time.sleep(0.02)
        return file

    def is_held(self, name: str) -> bool:
        """Whether a process has a lock of the job. Those who only ask share it, and do not take each other for its holder."""
        try:
            with (self.path / name).open("rb") as file:
                return not _take(file, fcntl.LOCK_SH)
        except FileNotFoundError:
            return False

    def _read(self, name: str) -> dict[str, object]:
        """A file of the driver's, who is not trusted: what is no object, no file, or too large is nothing."""
        with self.acting():
            found = read_regular(self.path / name)
        return {} if found is None else read_object(found)

    @property
    def _storage(self) -> LocalStorage:
        return LocalStorage(self.path, is_private=self.account is None)


def read_regular(path: Path, *, owner: int | None = None) -> bytes | None:
    """The bytes of a file that is one: no link, no pipe, nothing that never ends; and of this owner, if one is named."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        found = os.fstat(handle)
        is_fine = stat.S_ISREG(found.st_mode) and found.st_size <= LARGEST and owner in (None, found.st_uid)
        return file.read(LARGEST) if is_fine else None


@lru_cache(maxsize=128)
def _plan_at(directory: JobDirectory, changed: int, size: int, inode: int) -> dict[str, object]:
    """A plan as it was when its file had this time, size and number."""
    return directory._read(PLAN)


def _take(file: IO[bytes], kind: int = fcntl.LOCK_EX) -> bool:
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
