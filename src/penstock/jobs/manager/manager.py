"""The manager of jobs: keeps what is wanted, and sees to it that every job which is to run has a supervisor.

It may die at any moment. What it answered is in the database; supervisors go on, and the next manager finds them by the locks that they hold.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import OptionError, SetupError
from penstock.jobs.manager.access import Tokens
from penstock.jobs.manager.bundle import BundleStore
from penstock.jobs.manager.course import Course
from penstock.jobs.manager.database import Database
from penstock.jobs.manager.directory import SUPERVISOR, JobDirectory
from penstock.jobs.manager.job import Job, Wish
from penstock.jobs.manager.records import JobRecords
from penstock.storage.private import make_private

LOOK = 1.0
"""Seconds between two looks at all jobs."""


@dataclass(frozen=True)
class JobState:
    """A job, where it is, and how far its driver is."""

    job: Job
    course: Course
    progress: dict[str, object]
    is_supervised: bool

    @property
    def phase(self) -> str:
        """One word: queued, starting, running, stopping, waiting, held, finished, paused or stopped."""
        phase = self.course.phase
        if self.job.wish == "running" and not self.is_supervised and phase != "finished":
            return "queued"
        if phase == "running":
            return "running" if self.progress.get("phase") == "running" else "starting"
        return "queued" if phase == "new" else phase


@dataclass
class Manager:
    """The jobs under a directory. One process at a time has it: `opened` says so."""

    root: Path
    driver: tuple[str, ...] = ()
    """The command that starts a driver; that of Penstock, if empty."""
    supervisors: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        database = Database(self.root / "manager.db")
        self.records, self.tokens = JobRecords(database), Tokens(database)
        self.bundles = BundleStore(self.root / "bundles")

    @contextmanager
    def opened(self) -> Iterator[Manager]:
        """Takes the directory for this process; raises SetupError when another manager has it."""
        make_private(self.root)
        lock = JobDirectory(self.root).lock("manager.lock", 1.0)
        if lock is None:
            raise SetupError(f"another manager has {self.root}; stop it, or use another --data")
        with lock:
            self.records.database.make()
            yield self

    def directory(self, name: str) -> JobDirectory:
        """The directory of a job."""
        return JobDirectory(self.root / "jobs" / name)

    def submit(self, job: Job, actor: str, key: str = "") -> JobState:
        """Takes a new job in and starts it; `key` is the idempotency key of the request."""
        if not self.bundles.has(job.bundle):
            raise OptionError(f"there is no bundle {job.bundle[:12]}...; send it first")
        self.records.add(job, actor, key)
        return self._follow(job)

    def wish(self, name: str, wish: Wish, actor: str, *, is_forced: bool = False) -> JobState:
        """Has a job run, pause or stop."""
        job = self.records.get(name).wished(wish, is_forced=is_forced)
        if wish == "running":
            job = job.renewed() if self.state(name).phase in ("held", "finished") else job
        self.records.change(job, actor, "kill" if is_forced else wish)
        return self._follow(job)

    def restart(self, name: str, actor: str) -> JobState:
        """Ends the driver of a job after its batch and starts another; starts a job that is stopped or held."""
        job = self.records.get(name).wished("running").renewed()
        self.records.change(job, actor, "restart")
        return self._follow(job)

    def rescale(self, name: str, tasks: int, actor: str) -> JobState:
        """Gives the keyed steps of a job another number of tasks; its state moves along."""
        job = self.records.get(name)
        job = job.renewed(options={**job.options, "parallelism": tasks})
        self.records.change(job, actor, "rescale", str(tasks))
        return self._follow(job)

    def remove(self, name: str, actor: str) -> None:
        """Forgets a job that has stopped, and deletes what it kept."""
        state = self.state(name)
        if state.is_supervised or state.job.wish == "running":
            raise OptionError(f"job {name!r} is {state.phase}; stop it first: penstock jobs stop {name}")
        self.records.remove(name, actor)
        with self._turn:
            self.phases.pop(name, None)
        shutil.rmtree(self.directory(name).path, ignore_errors=True)

    def states(self) -> list[JobState]:
        """All jobs, by name."""
        return [self._state(job) for job in self.records.all()]

    def state(self, name: str) -> JobState:
        """One job; raises UnknownName."""
        return self._state(self.records.get(name))

    def _state(self, job: Job) -> JobState:
        directory = self.directory(job.name)
        return JobState(job, directory.course(), directory.progress(), directory.is_held(SUPERVISOR))

    def watch(self, stopping: threading.Event) -> None:
        """Looks at all jobs again and again, until it is told to stop."""
        while not stopping.wait(LOOK):
            self.reconcile()

    def reconcile(self) -> None:
        """Has every job followed, and notes what has changed since the last look."""
        for job in self.records.all():
            self._follow(job)

    def _follow(self, job: Job) -> JobState:
        """Says what is wanted where the supervisor looks, and starts a supervisor where one is missing."""
        with self._turn:
            directory = self.directory(job.name)
            if directory.wanted() != job:
                directory.make()
                directory.write_wanted(job)
            self._reap(job.name)
            state = self._state(job)
            if _needs_supervisor(state) and job.name not in self.supervisors:
                self.supervisors[job.name] = self._start(directory)
            self._note(state)
            return state

    def _reap(self, name: str) -> None:
        """Lets go of a supervisor that has ended."""
        process = self.supervisors.get(name)
        if process is not None and process.poll() is not None:
            del self.supervisors[name]

    def _start(self, directory: JobDirectory) -> subprocess.Popen[bytes]:
        with (directory.path / "log" / "supervisor.log").open("ab") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "penstock.jobs.manager.supervisor",
                    str(self.root),
                    directory.path.name,
                    *self.driver,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory.path / "work",
                start_new_session=True,
                env={**os.environ, "PYTHONSAFEPATH": "1"},
            )

    def _note(self, state: JobState) -> None:
        name, phase = state.job.name, state.phase
        if self.phases.get(name) not in (None, phase):
            self.records.happened(name, phase, state.course.reason if not state.course.has_driver else "")
        self.phases[name] = phase


def _needs_supervisor(state: JobState) -> bool:
    """Whether there is something to look after: a job that is to run, or one whose course does not say yet what is wanted."""
    if state.is_supervised:
        return False
    is_through = state.course.generation == state.job.generation
    if state.job.wish == "running":
        return not (state.course.phase == "finished" and is_through)
    return state.course.phase != state.job.wish


def default_root() -> Path:
    """Where the jobs of this user are, if nothing else is said."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "penstock" / "jobs"


def uptime(course: Course, now: float | None = None) -> float:
    """For how many seconds a job is where it is."""
    return max((time.time() if now is None else now) - course.since, 0.0) if course.since else 0.0
