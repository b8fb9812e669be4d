"""The manager's database: jobs, tokens, what happened and who did it. One SQLite file that only its owner reads, or the tables of a PostgreSQL.

Statements are written once, for both: `?` stands for a value, and layouts have SQLite's words for types, which `postgres_database` translates.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Protocol

from penstock.errors import PenstockError, SetupError
from penstock.jobs.manager.store.request_keys import mark

_FIRST = """
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
_SESSIONS = """
create table links (digest blob primary key, token text not null, expires real not null);
create table sessions (digest blob primary key, id text not null, token text not null, created real not null, expires real not null);
"""
_POOLS = """
create table pools (name text primary key, cores integer, memory integer, owner_cores integer, owner_memory integer)
"""
_ALERTS = "create table alerts (name text primary key, rule text not null)"
_LEAD = """
create table lead (epoch integer not null, holder text not null, until real not null);
insert into lead values (0, '', 0);
create table removals (name text primary key);
create table home (id text not null)
"""
_REPLAYS = """
create table replays (
    owner text not null, key text not null, digest blob not null, time real not null, answer blob, primary key (owner, key)
);
create index replays_by_time on replays (owner, time)
"""
_CHAIN = """
alter table audit add column mac blob;
create table audit_head (head text not null, seal blob not null)
"""
LAYOUTS = (_FIRST, _SESSIONS, _POOLS, _ALERTS, _LEAD, _REPLAYS, _CHAIN)
"""What each version of the tables adds to the one before."""
VERSION = len(LAYOUTS)


class LeadLost(PenstockError):
    """Another manager leads."""


class Rows(Protocol):
    """What a statement found."""

    @property
    def rowcount(self) -> int:
        """How many rows it changed."""

    def fetchone(self) -> Any:
        """The next row, None after the last."""

    def fetchall(self) -> list[Any]:
        """All rows."""

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A transaction at work."""

    def execute(self, sql: str, values: Sequence[Any] = (), /) -> Rows:
        """Runs one statement."""


class Database(ABC):
    """Where a manager keeps what it must not forget."""

    is_shared: ClassVar[bool]
    """Whether several managers can have it."""
    now: ClassVar[str]
    """The seconds since 1970 by the database's own clock, as SQL."""
    _held: ClassVar[str]
    """What keeps a row that was read from changing until the transaction ends, as SQL."""

    @abstractmethod
    def make(self) -> None:
        """Makes the tables, or adds what an older version of them lacks; refuses those of a newer one."""

    @abstractmethod
    @contextmanager
    def writes(self) -> Iterator[Connection]:
        """One transaction that writes, one at a time: all of it is kept, or nothing. Raises SetupError when the database cannot be used."""

    @abstractmethod
    @contextmanager
    def reads(self) -> Iterator[Connection]:
        """One transaction that reads, all of it at one moment. Raises SetupError when the database cannot be used."""

    @abstractmethod
    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """A transaction of one statement, which waits for no other that writes but those of the same row."""

    @abstractmethod
    def close(self) -> None:
        """Lets go of connections."""

    @contextmanager
    def changes(self, epoch: int | None = None) -> Iterator[Connection]:
        """One transaction that writes. With an epoch it is that of a manager that leads: raises LeadLost when another one does, and none takes over before it ends.

        The first one of a request with an idempotency key keeps that key, too.
        """
        with self.writes() as found:
            if (
                epoch is not None
                and not found.execute(f"select 1 from lead where epoch = ?{self._held}", (epoch,)).fetchone()  # noqa: S608 - words of ours
            ):
                raise LeadLost("another manager of jobs leads")
            key = mark(found)
            yield found
        if key is not None:
            key.is_marked = True


def check_version(version: int, what: str) -> None:
    """Refuses tables that a newer version of Penstock made."""
    if not 0 <= version <= VERSION:
        raise SetupError(
            f"{what} was made by a newer version of Penstock: expected layout {VERSION}, got {version}; use another"
        )


def statements(layouts: Sequence[str]) -> Iterator[str]:
    """The statements of some layouts, one by one."""
    for layout in layouts:
        yield from (statement for statement in layout.split(";") if statement.strip())


@dataclass(frozen=True)
class SqliteDatabase(Database):
    """Opens the file for each transaction: a process that is killed leaves a whole database and no lock."""

    path: Path
    is_shared: ClassVar[bool] = False
    now: ClassVar[str] = "((julianday('now') - 2440587.5) * 86400.0)"
    _held: ClassVar[str] = ""

    def make(self) -> None:
        """Makes the tables, or adds what an older version of them lacks; refuses those of a newer one."""
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        with self.writes() as found:
            (version,) = found.execute("pragma user_version").fetchone()
            check_version(version, str(self.path))
            for statement in statements(LAYOUTS[version:]):
                found.execute(statement)
            found.execute(f"pragma user_version = {VERSION}")

    @contextmanager
    def writes(self) -> Iterator[Connection]:
        """One transaction that writes; raises SetupError when the file is damaged, cannot be written, or the disk is full."""
        with self._explained(), self._opened() as found:
            found.execute("begin immediate")
            try:
                yield found
            except BaseException:
                with suppress(sqlite3.Error):  # what is not committed goes with the connection
                    found.execute("rollback")
                raise
            found.execute("commit")

    @contextmanager
    def reads(self) -> Iterator[Connection]:
        """One transaction that reads; raises SetupError when the file is damaged or cannot be read."""
        with self._explained(), self._opened() as found:
            found.execute("begin")
            yield found
            found.execute("commit")

    @contextmanager
    def alone(self) -> Iterator[Connection]:
        """As `writes`: one transaction at a time writes into a file."""
        with self.writes() as found:
            yield found

    def close(self) -> None:
        """There is nothing to let go of."""

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise SetupError(
                f"the database of jobs {self.path} cannot be used ({error}); make room if its disk is full, or put back a copy of it. "
                f"Jobs that run are not touched"
            ) from None

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with closing(sqlite3.connect(self.path, timeout=30.0, isolation_level=None)) as made:
            made.execute("pragma journal_mode = wal")
            made.execute("pragma synchronous = full")
            yield made


@dataclass(frozen=True)
class OpenSqlite(SqliteDatabase):
    """A file that stays open, for what may be lost: nothing is forced to disk, which closing it would do."""

    _turn: threading.Lock = field(default_factory=threading.Lock)
    _made: list[sqlite3.Connection] = field(default_factory=list)

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with self._turn:
            if not self._made:
                self.path.touch(mode=0o600)
                made = sqlite3.connect(self.path, 30.0, isolation_level=None, check_same_thread=False)
                self._made.append(made)
                made.execute("pragma journal_mode = wal")
                made.execute("pragma synchronous = normal")
            yield self._made[0]

    def close(self) -> None:
        """Closes the file."""
        with self._turn:
            while self._made:
                self._made.pop().close()
