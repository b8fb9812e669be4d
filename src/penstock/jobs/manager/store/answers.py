"""The answers to changes that carry an idempotency key, as the database keeps them: for a day, and so many of each owner."""

from __future__ import annotations

import time
from dataclasses import dataclass

from penstock.jobs.manager.store.database import Database
from penstock.jobs.manager.store.request_keys import AGE, RequestKey

MOST = 1_000
"""How many answers of an owner are kept; one who sends many loses none of another's."""
_KEEP = (
    "insert into replays (owner, key, digest, time, answer) values (?, ?, ?, ?, ?) "
    "on conflict (owner, key) do update set digest = excluded.digest, time = excluded.time, answer = excluded.answer"
)
_OLDEST = (
    "delete from replays where owner = ? and answer is not null and time <= "
    "(select time from replays where owner = ? and answer is not null order by time desc limit 1 offset ?)"
)


@dataclass(frozen=True)
class StoredAnswer:
    """What a request was, and its answer; None while it has none, or when the server ended before it gave one."""

    digest: bytes
    answer: bytes | None


@dataclass(frozen=True)
class Answers:
    """The answers of a manager. What they say is sealed by who asks: the database cannot read it."""

    database: Database

    def find(self, owner: str, key: str) -> StoredAnswer | None:
        """What is known of a key; None for a new one and for one that is too old."""
        with self.database.reads() as found:
            row = found.execute(
                "select digest, answer from replays where owner = ? and key = ? and time > ?",
                (owner, key, time.time() - AGE),
            ).fetchone()
        return None if row is None else StoredAnswer(bytes(row[0]), None if row[1] is None else bytes(row[1]))

    def keep(self, request: RequestKey, answer: bytes) -> None:
        """Keeps the answer to a request, and makes room: what is too old goes, and the oldest of its owner."""
        now = time.time()
        with self.database.writes() as found:
            found.execute(_KEEP, (request.owner, request.key, request.digest, now, answer))
            found.execute("delete from replays where time <= ?", (now - AGE,))
            found.execute(_OLDEST, (request.owner, request.owner, MOST))

    def drop(self, request: RequestKey) -> None:
        """Forgets a request that failed, which may be sent again."""
        with self.database.writes() as found:
            found.execute(
                "delete from replays where owner = ? and key = ? and answer is null", (request.owner, request.key)
            )
