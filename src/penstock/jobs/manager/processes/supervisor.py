"""The supervisor of a job: `python -m penstock.jobs.manager.processes.supervisor ROOT NAME EPOCH [DRIVER ...]` keeps its driver as the job wants it.

It asks nobody: what is wanted is a file, and so is what it says. Its driver ends with it, by the kernel's word, so a job never has two.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from penstock.errors import SetupError
from penstock.jobs.exit_codes import FAILED
from penstock.jobs.manager.access.accounts import Account, give_to, limit_process
from penstock.jobs.manager.bundle import BundleStore
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.course import Command, Course, ended, look
from penstock.jobs.manager.processes.directory import SUPERVISOR, JobDirectory
from penstock.jobs.manager.processes.trial import has_come_up
from penstock.jobs.manager.store.lease import highest_epoch
from penstock.storage import StorageError
from penstock.storage.private import open_private

DRIVER = (sys.executable, "-m", "penstock.jobs.manager.processes.driver")
LOOK = 0.2
"""Seconds between two looks."""
LARGEST_LOG = 16 << 20
"""Of a log that has grown so large the end is put aside, and it begins anew; what was put aside before goes."""
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass
class Supervisor:
    """One job, its driver, and where it is. `command` starts a driver, with the directory and the bundle as further arguments."""

    directory: JobDirectory
    bundles: BundleStore
    command: tuple[str, ...] = DRIVER
    course: Course = field(default_factory=Course)
    said: Course | None = None
    """What was written last; on a full disk that is not where the job is."""
    driver: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Looks after the job until there is nothing to look after; the driver of a supervisor that was killed is no failure of the job."""
        found = self.directory.course()
        lost = replace(found, phase="new", failures=0, since=0.0, until=0.0, reason="")
        if found.has_driver:
            self.directory.forget_progress()
            self.directory.write_course(lost)
        self.course = lost if found.has_driver else found
        while self.step(time.time()):
            time.sleep(LOOK)

    def step(self, now: float) -> bool:
        """Looks once; whether there is more to look after."""
        job = self.directory.wanted()
        if job is None:
            self._do("kill", None, now)
            return False
        self._reap(job, now)
        is_up = self._is_up(job, now)
        self.course, command = look(self.course, job, now, is_up=is_up)
        self._do(command, self.course.followed(job), now)
        if self.course != self.said:
            with suppress(
                OSError, StorageError
            ):  # a full disk must not end a driver that runs; the next look tries again
                self._say()
        self._rotate()
        return command != "end"

    def _say(self) -> None:
        self.directory.write_course(self.course)
        self.said = self.course

    def _reap(self, job: Job, now: float) -> None:
        code = self.driver.poll() if self.driver is not None else None
        if code is not None:
            self.driver = None
            is_its = self.course.generation == job.generation
            trial = self.course.trial_of(job) if is_its and not self._is_up(job, now) else ""
            self.course = ended(self.course, code, now, trial)

    def _is_up(self, job: Job, now: float) -> bool:
        """Whether a version is on trial and has come up."""
        return bool(self.course.trial_of(job)) and has_come_up(self.directory, job, now)

    def _do(self, command: Command | None, job: Job | None, now: float) -> None:
        if command == "start" and job is not None:
            try:
                self._start(job)
            except (OSError, StorageError, SetupError) as error:
                self.course = replace(ended(self.course, FAILED, now), reason=f"its driver cannot be started: {error}")
        elif command == "stop" and self.driver is not None:
            self.driver.send_signal(signal.SIGTERM)
        elif command == "kill" and self.driver is not None:
            self.driver.kill()

    def _start(self, job: Job) -> None:
        self.directory.forget_progress()
        self._say()
        account = self.directory.account
        bundle = self._bundle(job, account)
        work = self.directory.path / "work"
        self._rotate()
        with self.directory.log.open("ab") as log:
            self.driver = subprocess.Popen(
                [*self.command, str(self.directory.path), str(bundle)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_ends_with(os.getpid(), account is not None),  # noqa: PLW1509 - this process has one thread
                **({} if account is None else account.process(work, os.environ)),
            )

    def _bundle(self, job: Job, account: Account | None) -> Path:
        """The code of a job; with a user of its own a copy that only this user can read, and only root can change."""
        if account is None:
            return self.bundles.unpacked(job.bundle)
        made = BundleStore(self.directory.path / "bundle")
        for old in made.path.glob("*") if made.path.is_dir() else ():
            if old.name != job.bundle:
                shutil.rmtree(old, ignore_errors=True)
        found = self.bundles.unpacked(job.bundle, made.path)
        give_to(account, made.path)
        return found

    def _rotate(self) -> None:
        """Puts a large log aside. The driver goes on writing to the same file, at its end, which is its beginning then."""
        log = self.directory.log
        if log.exists() and log.stat().st_size > LARGEST_LOG:
            with suppress(OSError), log.open("rb") as file:  # where there is no room for the copy, what is old goes
                file.seek(max(0, log.stat().st_size - LARGEST_LOG))
                with open_private(log.with_suffix(".log.1")) as aside:
                    aside.write(file.read(LARGEST_LOG))
            os.truncate(log, 0)


class _ends_with:  # noqa: N801 - reads as a function
    """Has the kernel kill the new process when the one that started it ends; it may have ended already."""

    def __init__(self, parent: int, has_account: bool) -> None:
        self.parent, self.has_account = parent, has_account

    def __call__(self) -> None:
        limit_process(has_account=self.has_account)
        _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != self.parent:
            os._exit(1)


def main() -> None:
    """What the manager starts."""
    root, name, epoch, command = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), tuple(sys.argv[4:])
    directory = JobDirectory(root / "jobs" / name)
    lock = directory.lock(SUPERVISOR, 2.0)
    if lock is not None:
        with lock:
            if highest_epoch(root) <= epoch:  # else a manager leads that did not start this process
                Supervisor(directory, BundleStore(root / "bundles"), command or DRIVER).run()


if __name__ == "__main__":
    main()
