"""Jobs as the database keeps them, what happened to them, and who asked for it."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache

from penstock.errors import NameTaken, OptionError, PenstockError, SetupError, UnknownName, nearest
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.pools import Pool
from penstock.jobs.manager.store.audit import AuditEntry, AuditTrail, AuditVerification
from penstock.jobs.manager.store.conditions import check_expected
from penstock.jobs.manager.store.database import Connection, Database
from penstock.jobs.manager.store.request_keys import AGE, CURRENT

log = logging.getLogger("penstock")
MOST_JOBS, MOST_OF_ONE = 10_000, 1_000
"""How many jobs there are at most: in all, and of one owner. Each costs every look at all jobs a little, also one that only waits."""
KEPT_EVENTS = 1_000
"""How many events of a job are kept."""
_PUT_POOL = (
    "insert into pools values (?, ?, ?, ?, ?) on conflict (name) do update set "
    "cores = excluded.cores, memory = excluded.memory, owner_cores = excluded.owner_cores, owner_memory = excluded.owner_memory"
)


@dataclass(frozen=True)
class Event:
    """Something that happened to a job."""

    time: float
    what: str
    detail: str = ""


@dataclass(frozen=True)
class JobRecords:
    """The jobs of a manager. Each change is one transaction with its entry in the audit."""

    database: Database
    trail: AuditTrail
    unreadable: set[str] = field(default_factory=set, compare=False)
    """Jobs that were told to be so."""

    def add(self, job: Job, actor: str, key: str = "") -> None:
        """Keeps a new job, and the idempotency key of the request for it; raises NameTaken when there is one of that name."""
        with self.database.changes() as found:
            if found.execute("select 1 from jobs where name = ?", (job.name,)).fetchone():
                raise NameTaken(
                    f"there is a job {job.name!r} already; choose another name, or `penstock jobs upgrade {job.name}`"
                )
            if found.execute("select 1 from removals where name = ?", (job.name,)).fetchone():
                raise NameTaken(f"a job {job.name!r} is being removed; try again in a moment")
            self._check_room(found, job.owner)
            found.execute("insert into jobs (name, job) values (?, ?)", (job.name, job.to_json().decode()))
            self._note(found, actor, "submit", job.name, f"bundle {job.bundle[:12]}")
            if key:
                found.execute(
                    "insert into answers values (?, ?, ?, ?, ?)", (actor, key, _digest(job), job.name, time.time())
                )
                found.execute("delete from answers where time < ?", (time.time() - AGE,))

    def _check_room(self, found: Connection, owner: str) -> None:
        """Refuses one more job of an owner who has as many as anybody may have, or when there are too many in all."""
        jobs = [self._readable(*row) for row in found.execute("select name, job from jobs").fetchall()]
        own = sum(job is not None and job.owner == owner for job in jobs)
        if own >= MOST_OF_ONE:
            raise OptionError(
                f"{owner} has {own:,} jobs, as many as an owner may have; remove some: penstock jobs remove"
            )
        if len(jobs) >= MOST_JOBS:
            raise OptionError(
                f"there are {len(jobs):,} jobs, as many as there may be; remove some: penstock jobs remove"
            )

    def submitted(self, actor: str, key: str, job: Job) -> str | None:
        """The job that a request with this key made; None for a new key. Raises OptionError when the key was used for another request."""
        with self.database.reads() as found:
            row = found.execute("select digest, job from answers where owner = ? and key = ?", (actor, key)).fetchone()
        if row is not None and row[0] != _digest(job):
            raise OptionError("this Idempotency-Key was used for another request; use a new one")
        return None if row is None else str(row[1])

    def change(self, name: str, change: Callable[[Job], Job], actor: str, action: str, detail: str = "") -> Job:
        """Changes what is wanted of a job, and nobody changes it meanwhile; returns the job as it is wanted now. Raises UnknownName."""
        with self.database.changes() as found:
            before = _job(found, name)
            check_expected("jobs", name, before)
            job = replace(change(before), revision=before.revision + 1)
            found.execute("update jobs set job = ? where name = ?", (job.to_json().decode(), name))
            self._note(found, actor, action, name, detail)
            _happened(found, name, action, f"{detail} by {actor}".strip())
        return job

    def remove(self, name: str, actor: str) -> None:
        """Forgets a job that is not to run, and what happened to it; the audit stays. Its name is free when `cleared` says so."""
        with self.database.changes() as found:
            job = _job(found, name)
            check_expected("jobs", name, job)
            if job.wish == "running":
                raise OptionError(f"job {name!r} is to run; stop it first: penstock jobs stop {name}")
            found.execute("delete from jobs where name = ?", (name,))
            found.execute("delete from events where job = ?", (name,))
            found.execute("insert into removals values (?)", (name,))
            self._note(found, actor, "remove", name, "")

    def removals(self) -> list[str]:
        """The names of jobs that were removed and have left something behind."""
        with self.database.reads() as found:
            return [name for (name,) in found.execute("select name from removals order by name")]

    def cleared(self, name: str, epoch: int) -> None:
        """Says that a job which was removed has left nothing."""
        with self.database.changes(epoch) as found:
            found.execute("delete from removals where name = ?", (name,))

    def all(self) -> list[Job]:
        """All jobs, by name, but those that cannot be read: they hinder no other. `get` says why."""
        with self.database.reads() as found:
            rows = found.execute("select name, job from jobs order by name").fetchall()
        read = [self._readable(*row) for row in rows]
        return [job for job in read if job is not None]

    def _readable(self, name: str, text: str) -> Job | None:
        try:
            return _read(name, text)
        except SetupError as error:
            if name not in self.unreadable:
                self.unreadable.add(name)
                log.warning("%s", error)
            return None

    def bundles(self) -> set[str] | None:
        """The bundles that jobs have, those to go back to included; None where a job cannot be read."""
        with self.database.reads() as found:
            (many,) = found.execute("select count(*) from jobs").fetchone()
        jobs = self.all()
        versions = [job.version for job in jobs] + [job.previous for job in jobs if job.previous is not None]
        return {version.bundle for version in versions} if len(jobs) == many else None

    def get(self, name: str) -> Job:
        """One job; raises UnknownName with the nearest names."""
        with self.database.reads() as found:
            return _job(found, name)

    def pools(self) -> dict[str, Pool]:
        """The pools, by name."""
        with self.database.reads() as found:
            return _pools(found)

    def put_pool(self, pool: Pool, actor: str) -> None:
        """Keeps a pool, in place of one of the same name."""
        limits = (pool.cores, pool.memory, pool.owner_cores, pool.owner_memory)
        with self.database.changes() as found:
            _check_pool(found, pool.name)
            found.execute(_PUT_POOL, (pool.name, *limits))
            self._note(
                found,
                actor,
                "pool",
                pool.name,
                f"cores {limits[0]}, MiB {limits[1]}, of an owner {limits[2]}, {limits[3]}",
            )

    def remove_pool(self, name: str, actor: str) -> None:
        """Forgets a pool that no job is in; raises UnknownName, and OptionError for one with jobs."""
        jobs = [job.name for job in self.all() if job.pool == name]
        if jobs:
            raise OptionError(f"pool {name!r} has jobs: {', '.join(jobs[:5])}; remove them first")
        with self.database.changes() as found:
            _check_pool(found, name)
            if found.execute("delete from pools where name = ?", (name,)).rowcount == 0:
                raise UnknownName(f"there is no pool {name!r}")
            self._note(found, actor, "remove pool", name, "")

    def happened(self, name: str, what: str, detail: str = "", epoch: int | None = None) -> None:
        """Notes an event of a job; the oldest beyond `KEPT_EVENTS` go. With an epoch it is what a manager saw that leads."""
        with self.database.changes(epoch) as found:
            _happened(found, name, what, detail)

    def events(self, name: str, most: int = 100) -> list[Event]:
        """The newest events of a job, the newest first."""
        with self.database.reads() as found:
            rows = found.execute(
                "select time, what, detail from events where job = ? order by id desc limit ?", (name, most)
            )
            return [Event(*row) for row in rows]

    def begin(self) -> None:
        """Keeps the idempotency key of the request at work before it does what the database has no part in: it is then not done again."""
        if CURRENT.get() is not None:
            with self.database.changes():
                pass

    def note(self, actor: str, action: str, object: str, detail: str = "") -> None:
        """Puts an entry into the audit."""
        with self.noted(actor, action, object, detail):
            pass

    @contextmanager
    def noted(self, actor: str, action: str, object: str, detail: str = "") -> Iterator[Connection]:
        """A transaction for a change of something else than jobs and pools, with its entry in the audit: both are kept, or neither."""
        with self.database.changes() as found:
            yield found
            self._note(found, actor, action, object, detail)

    def _note(self, found: Connection, actor: str, action: str, object: str, detail: str) -> None:
        self.trail.note(found, AuditEntry(time.time(), actor, action, object, detail))

    def verify_audit(self, noted: str = "") -> AuditVerification:
        """Whether the audit is what was written; `noted` is a head of before that was kept elsewhere."""
        return self.trail.verify(self.database, noted)

    def audit(self, most: int = 100, before: float | None = None) -> list[AuditEntry]:
        """The newest entries of the audit before a moment, the newest first."""
        with self.database.reads() as found:
            rows = found.execute(
                "select time, actor, action, object, detail from audit where time < ? order by id desc limit ?",
                (float("inf") if before is None else before, most),
            )
            return [AuditEntry(*row) for row in rows]


def _pools(found: Connection) -> dict[str, Pool]:
    rows = found.execute("select name, cores, memory, owner_cores, owner_memory from pools order by name")
    return {row[0]: Pool(*row) for row in rows}


def _check_pool(found: Connection, name: str) -> None:
    """Whether a pool is as the request at work has seen it."""
    pool = _pools(found).get(name)
    check_expected("pools", name, None if pool is None else vars(pool))


def _job(found: Connection, name: str) -> Job:
    row = found.execute("select job from jobs where name = ?", (name,)).fetchone()
    if row is None:
        names = [n for (n,) in found.execute("select name from jobs")]
        raise UnknownName(f"there is no job {name!r}; {nearest(name, names)}" if names else f"there is no job {name!r}")
    return _read(name, row[0])


@lru_cache(maxsize=10_000)
def _read(name: str, text: str) -> Job:
    """A job as its text says; every look at all jobs reads the same texts again."""
    try:
        return Job.from_json(text)
    except (PenstockError, ValueError, TypeError, AttributeError) as error:
        raise SetupError(
            f"job {name!r} cannot be read ({error}): another version of Penstock wrote it, or the database is damaged; jobs beside it are not touched"
        ) from None


def _happened(found: Connection, name: str, what: str, detail: str) -> None:
    found.execute("insert into events (time, job, what, detail) values (?, ?, ?, ?)", (time.time(), name, what, detail))
    found.execute(
        "delete from events where job = ? and id <= (select id from events where job = ? order by id desc limit 1 offset ?)",
        (name, name, KEPT_EVENTS),
    )


def _digest(job: Job) -> str:
    return hashlib.sha256(replace(job, created=0.0).to_json()).hexdigest()
