"""The supervisor of a job: `python -m penstock.jobs.manager.supervisor ROOT NAME [DRIVER ...]` keeps its driver as the job wants it.

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
from dataclasses import dataclass, field
from pathlib import Path

from penstock.jobs.manager.bundle import BundleStore
from penstock.jobs.manager.course import Command, Course, ended, look
from penstock.jobs.manager.directory import SUPERVISOR, JobDirectory
from penstock.jobs.manager.job import Job

DRIVER = (sys.executable, "-m", "penstock.jobs.manager.driver")
LOOK = 0.2
"""Seconds between two looks."""
LARGEST_LOG = 16 << 20
"""A log that has grown so large is put aside, and begins anew; the one put aside before goes."""
_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass
class Supervisor:
    """One job, its driver, and where it is. `command` starts a driver, with the directory and the bundle as further arguments."""

    directory: JobDirectory
    bundles: BundleStore
    command: tuple[str, ...] = DRIVER
    course: Course = field(default_factory=Course)
    driver: subprocess.Popen[bytes] | None = None

    def run(self) -> None:
        """Looks after the job until there is nothing to look after; the driver of a supervisor that was killed is no failure of the job."""
        found = self.directory.course()
        self.course = Course(generation=found.generation, restarts=found.restarts) if found.has_driver else found
        while self.step(time.time()):
            time.sleep(LOOK)

    def step(self, now: float) -> bool:
        """Looks once; whether there is more to look after."""
        job = self.directory.wanted()
        if job is None:
            self._do("kill", None)
            return False
        before = self.course
        self._reap(now)
        self.course, command = look(self.course, job, now)
        self._do(command, job)
        if self.course != before:
            self.directory.write_course(self.course)
        self._rotate()
        return command != "end"

    def _reap(self, now: float) -> None:
        code = self.driver.poll() if self.driver is not None else None
        if code is not None:
            self.driver = None
            self.course = ended(self.course, code, now)

    def _do(self, command: Command | None, job: Job | None) -> None:
        if command == "start" and job is not None:
            self._start(job)
        elif command == "stop" and self.driver is not None:
            self.driver.send_signal(signal.SIGTERM)
        elif command == "kill" and self.driver is not None:
            self.driver.kill()

    def _start(self, job: Job) -> None:
        self.directory.forget_progress()
        self.directory.write_course(self.course)
        bundle = self.bundles.unpacked(job.bundle)
        self._rotate()
        with self.directory.log.open("ab") as log:
            self.driver = subprocess.Popen(
                [*self.command, str(self.directory.path), str(bundle)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=_ends_with(os.getpid()),  # noqa: PLW1509 - this process has one thread
            )

    def _rotate(self) -> None:
        """Puts a large log aside. The driver goes on writing to the same file, at its end, which is its beginning then."""
        log = self.directory.log
        if log.exists() and log.stat().st_size > LARGEST_LOG:
            shutil.copyfile(log, log.with_suffix(".log.1"))
            os.truncate(log, 0)


class _ends_with:  # noqa: N801 - reads as a function
    """Has the kernel kill the new process when the one that started it ends; it may have ended already."""

    def __init__(self, parent: int) -> None:
        self.parent = parent

    def __call__(self) -> None:
        _LIBC.prctl(_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != self.parent:
            os._exit(1)


def main() -> None:
    """What the manager starts."""
    root, name, command = Path(sys.argv[1]), sys.argv[2], tuple(sys.argv[3:])
    directory = JobDirectory(root / "jobs" / name)
    lock = directory.lock(SUPERVISOR, 2.0)
    if lock is not None:
        Supervisor(directory, BundleStore(root / "bundles"), command or DRIVER).run()
        lock.close()


if __name__ == "__main__":
    main()
