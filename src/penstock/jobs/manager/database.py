"""The manager's database: jobs, tokens, what happened and who did it, in one SQLite file that only its owner reads."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import SetupError

VERSION = 1
_SCHEMA = """
create table jobs (name text primary key, job text not null);
create table events (id integer primary key, time real not null, job text not null, what text not null, detail text not null);
create index events_of_job on events (job, id);
create table audit (id integer primary key, time real not null, actor text not null, action text not null, object text not null, detail text not null);
create table tokens (
    id text primary key, digest blob not null unique, owner text not null, role text not null,
    created real not null, expires real, revoked real, used real
);
create table answers (owner text not null, key text not null, digest text not null, job text not null, time real not null, primary key (owner, key));
"""


@dataclass(frozen=True)
class Database:
    """Opens the file for each transaction: a process that is killed leaves a whole database and no lock."""

    path: Path

    def make(self) -> None:
        """Makes the tables, if they are not there; refuses those of another version."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with self.changes() as found:
            (version,) = found.execute("pragma user_version").fetchone()
            if version not in (0, VERSION):
                raise SetupError(
                    f"{self.path} was made by another version of Penstock: expected layout {VERSION}, got {version}; use another --data"
                )
            if version == 0:
                for statement in _SCHEMA.split(";"):
                    found.execute(statement)
                found.execute(f"pragma user_version = {VERSION}")

    @contextmanager
    def changes(self) -> Iterator[sqlite3.Connection]:
        """One transaction that writes: all of it is kept, or nothing."""
        with closing(self._opened()) as found:
            found.execute("begin immediate")
            try:
                yield found
            except BaseException:
                found.execute("rollback")
                raise
            found.execute("commit")

    @contextmanager
    def reads(self) -> Iterator[sqlite3.Connection]:
        """One transaction that reads, all of it at one moment."""
        with closing(self._opened()) as found:
            found.execute("begin")
            yield found
            found.execute("commit")

    def _opened(self) -> sqlite3.Connection:
        made = sqlite3.connect(self.path, timeout=30.0, isolation_level=None)
        made.execute("pragma journal_mode = wal")
        made.execute("pragma synchronous = full")
        return made
