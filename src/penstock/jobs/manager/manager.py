"""The manager of jobs: keeps what is wanted, and sees to it that every job which is to run has a supervisor.

It may die at any moment. What it answered is in the database; supervisors go on, and the next manager finds them by the locks that they hold. Of two managers one leads, and sees to
the jobs; the other answers too, keeps what is wanted in the database, and takes over when the first does not renew its lease.
"""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, get_args

from penstock.errors import OptionError, PenstockError, SetupError
from penstock.jobs.manager.access.accounts import Accounts
from penstock.jobs.manager.access.sessions import Sessions
from penstock.jobs.manager.access.tokens import Tokens
from penstock.jobs.manager.bundle import BundleStore
from penstock.jobs.manager.insight.health import HealthReport, Signs, judged
from penstock.jobs.manager.job import TRIAL, Job, Wish
from penstock.jobs.manager.pools import pool_of, waiting
from penstock.jobs.manager.processes.course import Course
from penstock.jobs.manager.processes.directory import SUPERVISOR, JobDirectory
from penstock.jobs.manager.processes.environment import job_environment
from penstock.jobs.manager.store.audit import AuditTrail
from penstock.jobs.manager.store.database import Database, LeadLost, OpenSqlite, SqliteDatabase
from penstock.jobs.manager.store.history import History
from penstock.jobs.manager.store.home import SQLITE, bind, check_unbound
from penstock.jobs.manager.store.lease import Lease
from penstock.jobs.manager.store.postgres_database import PostgresDatabase
from penstock.jobs.manager.store.records import JobRecords
from penstock.storage.private import make_private

log = logging.getLogger("penstock")
LOOK = 1.0
"""Seconds between two looks at all jobs."""
SWEPT = 3_600.0
"""Seconds between two looks for bundles that no job has."""


@dataclass(frozen=True)
class Upgrade:
    """Another version of a job. Without a target it is the same as before; options that are given replace those of the same name."""

    bundle: str
    target: str = ""
    options: dict[str, object] = field(default_factory=dict)
    trial: float = TRIAL


JobPhase = Literal["queued", "starting", "running", "stopping", "waiting", "held", "finished", "paused", "stopped"]
PHASES: tuple[JobPhase, ...] = get_args(JobPhase)


@dataclass(frozen=True)
class JobState:
    """A job, where it is, and how far its driver is."""

    job: Job
    course: Course
    progress: dict[str, object]
    is_supervised: bool
    waits: str = ""
    """Why there is no place for it in its pool."""

    @property
    def is_through(self) -> bool:
        """Whether it ended by itself or is held, and nobody has asked for more."""
        return self.course.phase in ("finished", "held") and self.course.generation == self.job.generation

    @property
    def phase(self) -> JobPhase:
        """Where it is, in one word."""
        phase = self.course.phase
        if self.job.wish == "running" and not self.is_supervised and not self.is_through:
            return "queued"
        if phase == "running":
            return "running" if self.progress.get("phase") == "running" else "starting"
        return "queued" if phase == "new" else phase


@dataclass
class Manager:
    """The jobs under a directory. One process at a time has it, unless its database is one that managers share: `opened` says so."""

    root: Path
    driver: tuple[str, ...] = ()
    """The command that starts a driver; that of Penstock, if empty."""
    shared: PostgresDatabase | None = None
    """The database, if it is not a file in the directory."""
    accounts: Accounts = field(default_factory=Accounts)
    """The users of the machine whose rights jobs have."""
    supervisors: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    phases: dict[str, str] = field(default_factory=dict)
    seen: dict[str, JobState] = field(default_factory=dict)
    """Every job as it was at the last look, for those who follow it."""
    waits: dict[str, str] = field(default_factory=dict)
    _turn: threading.Lock = field(default_factory=threading.Lock)
    _swept: float = 0.0

    def __post_init__(self) -> None:
        self.database: Database = self.shared or SqliteDatabase(self.root / SQLITE)
        self.records = JobRecords(self.database, AuditTrail(self.root))
        self.tokens = Tokens(self.database, self.records.trail)
        self.sessions = Sessions(self.database, self.tokens)
        self.history = History(self.shared or OpenSqlite(self.root / "history.db"))
        self.bundles = BundleStore(self.root / "bundles")
        self.lease = Lease(self.database, self.root)

    @property
    def leads(self) -> bool:
        """Whether this manager sees to the jobs; one that does not still answers."""
        return self.lease.is_held

    @contextmanager
    def opened(self) -> Iterator[Manager]:
        """Takes the directory for this process; raises SetupError when another manager has it, or it cannot be written."""
        try:
            make_private(self.root)
            lock = None if self.shared else JobDirectory(self.root).lock("manager.lock", 1.0)
        except OSError as error:
            raise SetupError(
                f"{self.root} cannot be the directory of a manager ({error.strerror}); use another --data"
            ) from None
        if lock is None and not self.shared:
            raise SetupError(f"another manager has {self.root}; stop it, or use another --data")
        with lock if lock is not None else nullcontext():
            try:
                self._open()
                yield self
            finally:
                self.lease.release()
                self.history.close()
                self.database.close()

    def _open(self) -> None:
        if self.shared is None:
            check_unbound(self.root)
        self.database.make()
        if self.shared is not None:
            bind(self.shared, self.root)
        self.records.trail.begin(self.database)
        self.history.make()
        self.lease.start() if self.shared else self.lease.seize()

    def directory(self, name: str) -> JobDirectory:
        """The directory of a job."""
        return JobDirectory(self.root / "jobs" / name)

    def submit(self, job: Job, actor: str, key: str = "") -> JobState:
        """Takes a new job in and starts it; `key` is the idempotency key of the request."""
        if not self.bundles.has(job.bundle):
            raise OptionError(f"there is no bundle {job.bundle[:12]}...; send it first")
        self.accounts.of_owner(job.owner)
        pool_of(job, self.records.pools()).check(job)
        self.records.add(job, actor, key)
        return self._follow(job)

    def wish(self, name: str, wish: Wish, actor: str, *, is_forced: bool = False, why: str = "") -> JobState:
        """Has a job run, pause or stop; `why` is the reason of a manager that has it stopped."""
        is_new = wish == "running" and self.state(name).phase in ("held", "finished")

        def wished(job: Job) -> Job:
            made = job.wished(wish, is_forced=is_forced, why=why)
            return made.renewed() if is_new else made

        return self._change(name, wished, actor, "kill" if is_forced else wish, why)

    def restart(self, name: str, actor: str) -> JobState:
        """Ends the driver of a job after its batch and starts another; starts a job that is stopped or held."""
        return self._change(name, lambda job: job.wished("running").renewed(), actor, "restart")

    def rescale(self, name: str, tasks: int, actor: str) -> JobState:
        """Gives the keyed steps of a job another number of tasks; its state moves along."""

        def rescaled(job: Job) -> Job:
            return job.renewed(options={**job.options, "parallelism": tasks})

        return self._change(name, rescaled, actor, "rescale", str(tasks))

    def upgrade(self, name: str, version: Upgrade, actor: str) -> JobState:
        """Has a job run another version, from a savepoint of this one; if it does not come up, this one goes on."""
        if not self.bundles.has(version.bundle):
            raise OptionError(f"there is no bundle {version.bundle[:12]}...; send it first")
        course = self.directory(name).course()

        def upgraded(job: Job) -> Job:
            if course.trial_of(job):
                raise OptionError(
                    f"job {name!r} is being upgraded; wait until the new version has come up, or has gone back"
                )
            return job.upgraded(version.bundle, version.target, version.options, version.trial)

        return self._change(name, upgraded, actor, "upgrade", f"to bundle {version.bundle[:12]}")

    def _change(self, name: str, change: Callable[[Job], Job], actor: str, action: str, detail: str = "") -> JobState:
        """Changes what is wanted of a job, in the database, and has it followed if this manager leads."""
        self._settle(self.records.get(name))
        return self._follow(self.records.change(name, change, actor, action, detail))

    def remove(self, name: str, actor: str) -> None:
        """Forgets a job that has stopped, and deletes what it kept."""
        with self._turn:
            state = self.state(name)
            if state.is_supervised or state.job.wish == "running":
                raise OptionError(f"job {name!r} is {state.phase}; stop it first: penstock jobs stop {name}")
            self.records.remove(name, actor)
        if self.leads:
            with self._leading():
                self._clear(name)

    def _clear(self, name: str) -> None:
        """Deletes what a job kept that was removed; if something of it runs still, at a later look."""
        with self._turn:
            self.phases.pop(name, None)
            self.seen.pop(name, None)
            aside = self.root / "removed" / f"{name}.{uuid.uuid4().hex}"
            if self.directory(name).put_aside(aside, self.lease.epoch):
                self.history.forget(name, self.lease.epoch)
                self.records.cleared(name, self.lease.epoch)
                _delete_beside(aside)

    def states(self) -> list[JobState]:
        """All jobs, by name."""
        return [self._state(job) for job in self.records.all()]

    def last_states(self) -> list[JobState]:
        """All jobs, by name, as they were at the last look: that of every second, or of a change."""
        return [self._last(job) for job in self.records.all()]

    def state(self, name: str) -> JobState:
        """One job; raises UnknownName."""
        return self._state(self.records.get(name))

    def last_state(self, name: str) -> JobState:
        """One job as it was at the last look, for who only looks; raises UnknownName."""
        return self._last(self.records.get(name))

    def _last(self, job: Job) -> JobState:
        seen = self.seen.get(job.name)
        return seen if seen is not None and seen.job == job else self._state(job)

    def _state(self, job: Job) -> JobState:
        directory = self.directory(job.name)
        waits = self.waits.get(job.name, "")
        return JobState(job, directory.course(), directory.progress(), directory.is_held(SUPERVISOR), waits)

    def watch(self, stopping: threading.Event) -> None:
        """Looks at all jobs again and again, until it is told to stop."""
        self._sweep_removed()
        while not stopping.wait(LOOK):
            try:
                self.reconcile()
                self._sweep_bundles(time.time())
            except Exception:  # whatever it is, the next look must come: without it no job would be started again
                log.exception("jobs were not looked at")

    def _sweep_removed(self) -> None:
        """Deletes what a manager that was killed had put aside."""
        for left in (self.root / "removed").glob("*"):
            _delete_beside(left)

    def _sweep_bundles(self, now: float) -> None:
        """Deletes bundles that no job has, once an hour."""
        if not self.leads or abs(now - self._swept) < SWEPT:
            return
        self._swept = now
        used = self.records.bundles()
        if used is not None:
            self.bundles.sweep(used, now)

    def reconcile(self) -> None:
        """Has every job followed, and notes what has changed since the last look. What goes wrong with one job, or with the disk, ends no other."""
        now = time.time()
        try:
            with self._leading():
                for name in self.records.removals() if self.leads else ():
                    self._clear(name)
            self._reap_all()
            for job in self.records.all():
                self._followed(job, now)
            with self._leading():
                self.history.flush(now, self.lease.epoch) if self.leads else self.history.skip()
        except (PenstockError, OSError) as error:
            log.warning("%s", error)

    @contextmanager
    def _leading(self) -> Iterator[None]:
        """Leaves to another manager what only the one that leads may do, once it does."""
        epoch = self.lease.epoch
        try:
            yield
        except LeadLost:
            self.lease.lose(epoch)

    def _followed(self, job: Job, now: float) -> None:
        try:
            state = self._follow(self._settle(job))
            if state.is_supervised:
                self.history.observe(job.name, state.progress, now)
        except (PenstockError, OSError, ValueError, TypeError) as error:
            log.warning("job %s cannot be followed: %s", job.name, error)

    def health(self, state: JobState) -> HealthReport:
        """How well a job is."""
        if state.job.why:
            return HealthReport("bad", state.job.why)
        now, course = time.time(), state.course
        minute = self.history.summary(state.job.name, 60.0, now)
        spoke = max(float(str(state.progress.get("time", 0.0))), course.since)
        return judged(Signs(state.phase, course.reason, course.failures, spoke, now, minute))

    def _settle(self, job: Job) -> Job:
        """Keeps in the database that a job has gone back to the version before."""
        course = self.directory(job.name).course()
        if course.followed(job) == job:
            return job
        return self.records.change(job.name, course.followed, "manager", "went back", course.why_back)

    def _follow(self, job: Job) -> JobState:
        """Says what is wanted where the supervisor looks, and starts a supervisor where one is missing, if this manager leads."""
        with self._turn:
            self._reap(job.name)
            if self.leads and not self._announce(job):
                return self._state(job)
            state = self._state(job)
            is_missing = _needs_supervisor(state) and job.name not in self.supervisors
            if not is_missing:
                self.waits.pop(job.name, None)
            elif self._has_place(state) and self.leads:
                self.supervisors[job.name] = self._start(self.directory(job.name))
            with self._leading():
                self._note(state)
            self.seen[job.name] = state = replace(state, waits=self.waits.get(job.name, ""))
            return state

    def _announce(self, job: Job) -> bool:
        """Says what is wanted, unless something newer was said; False for a job that was removed meanwhile."""
        directory, mine = self.directory(job.name), self.lease.epoch
        epoch, known = directory.wanted_of()
        if epoch < 0 or known is None:
            if job.name not in {found.name for found in self.records.all()}:
                return False
            directory.make(self.accounts.of_owner(job.owner))
        if epoch < mine or known is None or known.revision < job.revision:
            directory.write_wanted(job, mine)
        return True

    def _has_place(self, state: JobState) -> bool:
        """Whether a job may start beside the others of its pool; it keeps its place until it is paused, stopped, held or finished."""
        self.waits.pop(state.job.name, None)
        pools = self.records.pools()
        if state.job.wish == "running" and state.job.pool in pools:
            jobs = [job for job in self.records.all() if job.pool == state.job.pool and job.wish == "running"]
            states = [self._last(job) for job in jobs]
            placed = {s.job.name for s in states if s.is_supervised or s.job.name in self.supervisors}
            wanted = [s.job for s in states if s.job.name not in placed and not s.is_through]
            found = waiting([job for job in jobs if job.name in placed], wanted, pools)
            self.waits |= {state.job.name: found[state.job.name]} if state.job.name in found else {}
        return state.job.name not in self.waits

    def _reap(self, name: str) -> None:
        """Lets go of a supervisor that has ended."""
        process = self.supervisors.get(name)
        if process is not None and process.poll() is not None:
            del self.supervisors[name]

    def _reap_all(self) -> None:
        """Lets go of all that have ended, those of jobs that were removed too."""
        with self._turn:
            for name in list(self.supervisors):
                self._reap(name)

    def _start(self, directory: JobDirectory) -> subprocess.Popen[bytes]:
        with (directory.path / "log" / "supervisor.log").open("ab") as log:
            return subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "penstock.jobs.manager.processes.supervisor",
                    str(self.root),
                    directory.path.name,
                    str(self.lease.epoch),
                    *self.driver,
                ],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=directory.path / "work",
                start_new_session=True,
                env=job_environment(),
            )

    def _note(self, state: JobState) -> None:
        name, phase = state.job.name, state.phase
        if self.leads and self.phases.get(name) not in (None, phase):
            reason = state.course.reason if not state.course.has_driver else ""
            self.records.happened(name, phase, reason, self.lease.epoch)
        self.phases[name] = phase


def _delete_beside(directory: Path) -> None:
    """Deletes a directory, of perhaps a million files, in a thread: no job waits for it, and what a process that ends leaves is deleted by the next one."""
    threading.Thread(target=shutil.rmtree, args=(directory, True), name="penstock-removed", daemon=True).start()


def _needs_supervisor(state: JobState) -> bool:
    """Whether there is something to look after: a job that is to run, or one whose course does not say yet what is wanted."""
    if state.is_supervised:
        return False
    if state.job.wish == "running":
        return not state.is_through
    return state.course.phase != state.job.wish


def default_root() -> Path:
    """Where the jobs of this user are, if nothing else is said."""
    base = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(base) / "penstock" / "jobs"
