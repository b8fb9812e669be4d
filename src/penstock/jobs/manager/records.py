"""Jobs as the database keeps them, what happened to them, and who asked for it."""

from __future__ import annotations

import hashlib
import sqlite3
import time
from dataclasses import dataclass, replace

from penstock.errors import NameTaken, OptionError, UnknownName, nearest
from penstock.jobs.manager.database import Database
from penstock.jobs.manager.job import Job

KEPT_KEYS = 86_400.0
"""For how many seconds the idempotency key of a request is known."""
KEPT_EVENTS = 1_000
"""How many events of a job are kept."""


@dataclass(frozen=True)
class Event:
    """Something that happened to a job."""

    time: float
    what: str
    detail: str = ""


@dataclass(frozen=True)
class AuditEntry:
    """A change that somebody made."""

    time: float
    actor: str
    action: str
    object: str
    detail: str = ""


@dataclass(frozen=True)
class JobRecords:
    """The jobs of a manager. Each change is one transaction with its entry in the audit."""

    database: Database

    def add(self, job: Job, actor: str, key: str = "") -> None:
        """Keeps a new job, and the idempotency key of the request for it; raises NameTaken when there is one of that name."""
        with self.database.changes() as found:
            if found.execute("select 1 from jobs where name = ?", (job.name,)).fetchone():
                raise NameTaken(
                    f"there is a job {job.name!r} already; choose another name, or `penstock jobs upgrade {job.name}`"
                )
            found.execute("insert into jobs (name, job) values (?, ?)", (job.name, job.to_json().decode()))
            _note(found, actor, "submit", job.name, f"bundle {job.bundle[:12]}")
            if key:
                found.execute(
                    "insert into answers values (?, ?, ?, ?, ?)", (actor, key, _digest(job), job.name, time.time())
                )
                found.execute("delete from answers where time < ?", (time.time() - KEPT_KEYS,))

    def submitted(self, actor: str, key: str, job: Job) -> str | None:
        """The job that a request with this key made; None for a new key. Raises OptionError when the key was used for another request."""
        with self.database.reads() as found:
            row = found.execute("select digest, job from answers where owner = ? and key = ?", (actor, key)).fetchone()
        if row is not None and row[0] != _digest(job):
            raise OptionError("this Idempotency-Key was used for another request; use a new one")
        return None if row is None else str(row[1])

    def change(self, job: Job, actor: str, action: str, detail: str = "") -> None:
        """Keeps a job as it is wanted now."""
        with self.database.changes() as found:
            found.execute("update jobs set job = ? where name = ?", (job.to_json().decode(), job.name))
            _note(found, actor, action, job.name, detail)
            _happened(found, job.name, action, f"{detail} by {actor}".strip())

    def remove(self, name: str, actor: str) -> None:
        """Forgets a job and what happened to it; the audit stays."""
        with self.database.changes() as found:
            found.execute("delete from jobs where name = ?", (name,))
            found.execute("delete from events where job = ?", (name,))
            _note(found, actor, "remove", name, "")

    def all(self) -> list[Job]:
        """All jobs, by name."""
        with self.database.reads() as found:
            return [Job.from_json(text) for (text,) in found.execute("select job from jobs order by name")]

    def get(self, name: str) -> Job:
        """One job; raises UnknownName with the nearest names."""
        with self.database.reads() as found:
            row = found.execute("select job from jobs where name = ?", (name,)).fetchone()
            names = [n for (n,) in found.execute("select name from jobs")] if row is None else []
        if row is None:
            raise UnknownName(
                f"there is no job {name!r}; {nearest(name, names)}" if names else f"there is no job {name!r}"
            )
        return Job.from_json(row[0])

    def happened(self, name: str, what: str, detail: str = "") -> None:
        """Notes an event of a job; the oldest beyond `KEPT_EVENTS` go."""
        with self.database.changes() as found:
            _happened(found, name, what, detail)

    def events(self, name: str, most: int = 100) -> list[Event]:
        """The newest events of a job, the newest first."""
        with self.database.reads() as found:
            rows = found.execute(
                "select time, what, detail from events where job = ? order by id desc limit ?", (name, most)
            )
            return [Event(*row) for row in rows]

    def note(self, actor: str, action: str, object: str, detail: str = "") -> None:
        """Puts an entry into the audit."""
        with self.database.changes() as found:
            _note(found, actor, action, object, detail)

    def audit(self, most: int = 100, before: float | None = None) -> list[AuditEntry]:
        """The newest entries of the audit before a moment, the newest first."""
        with self.database.reads() as found:
            rows = found.execute(
                "select time, actor, action, object, detail from audit where ? is null or time < ? order by id desc limit ?",
                (before, before, most),
            )
            return [AuditEntry(*row) for row in rows]


def _note(found: sqlite3.Connection, actor: str, action: str, object: str, detail: str) -> None:
    found.execute(
        "insert into audit (time, actor, action, object, detail) values (?, ?, ?, ?, ?)",
        (time.time(), actor, action, object, detail),
    )


def _happened(found: sqlite3.Connection, name: str, what: str, detail: str) -> None:
    found.execute("insert into events (time, job, what, detail) values (?, ?, ?, ?)", (time.time(), name, what, detail))
    found.execute(
        "delete from events where job = ? and id <= (select id from events where job = ? order by id desc limit 1 offset ?)",
        (name, name, KEPT_EVENTS),
    )


def _digest(job: Job) -> str:
    return hashlib.sha256(replace(job, created=0.0).to_json()).hexdigest()
