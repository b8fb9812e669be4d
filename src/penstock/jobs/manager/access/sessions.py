"""Sessions of browsers: a link that signs in once, and the session that follows. Both stand for a token and end with it."""

from __future__ import annotations

import hashlib
import secrets
import time
from dataclasses import dataclass

from penstock.jobs.manager.access.tokens import Identity, Role, Tokens
from penstock.jobs.manager.store.database import Connection, Database

LINK, SESSION = 600.0, 12 * 3_600.0
"""For how many seconds a link and a session hold."""
MOST_SESSIONS = 1_000
"""How many sessions there are; the oldest goes for a new one."""
_HOLDS = "t.revoked is null and (t.expires is null or t.expires > ?)"
_LINK = f"select t.id from links l join tokens t on t.id = l.token where l.digest = ? and l.expires > ? and {_HOLDS}"  # noqa: S608 - a condition of ours
_TOKEN = f"select t.id from tokens t where t.digest = ? and {_HOLDS}"  # noqa: S608 - a condition of ours


@dataclass(frozen=True)
class Sessions:
    """The links and sessions of a manager, kept as hashes."""

    database: Database
    tokens: Tokens

    def make_link(self, token: str) -> str:
        """The code of a new link, which signs in once as the owner of a token; `token` is its id."""
        code, now = secrets.token_urlsafe(32), time.time()
        with self.database.changes() as found:
            found.execute("delete from links where expires < ?", (now,))
            found.execute("insert into links values (?, ?, ?)", (_digest(code), token, now + LINK))
        return code

    def open_link(self, code: str) -> str | None:
        """The session that a link opens; None for a link that is unknown, used or too old."""
        now = time.time()
        with self.database.changes() as found:
            row = found.execute(_LINK, (_digest(code), now, now)).fetchone()
            found.execute("delete from links where digest = ?", (_digest(code),))
            return None if row is None else _opened(found, row[0], now)

    def open_token(self, text: str) -> str | None:
        """The session that a token opens; None for one that does not hold."""
        now = time.time()
        with self.database.changes() as found:
            row = found.execute(_TOKEN, (_digest(text), now)).fetchone()
            return None if row is None else _opened(found, row[0], now)

    def open_as(self, owner: str, role: Role) -> str:
        """The session of somebody whom a provider has signed in: a token stands for it that nobody knows and that ends with it."""
        _, token = self.tokens.make(owner, role, SESSION)
        with self.database.changes() as found:
            return _opened(found, token.id, time.time())

    def identity(self, session: str) -> Identity | None:
        """Who a session stands for; None for one that is unknown or has ended, itself or its token."""
        now = time.time()
        with self.database.reads() as found:
            row = found.execute(
                "select t.owner, t.role, t.id from sessions s join tokens t on t.id = s.token "  # noqa: S608 - a condition of ours
                f"where s.digest = ? and s.expires > ? and {_HOLDS}",
                (_digest(session), now, now),
            ).fetchone()
        if row is not None:
            self.tokens.use(row[2], now)
        return None if row is None else Identity(*row)

    def close(self, session: str) -> None:
        """Ends a session."""
        with self.database.changes() as found:
            found.execute("delete from sessions where digest = ?", (_digest(session),))


def _opened(found: Connection, token: str, now: float) -> str:
    text = secrets.token_urlsafe(32)
    found.execute("delete from sessions where expires < ?", (now,))
    found.execute(
        "delete from sessions where digest not in (select digest from sessions order by created desc limit ?)",
        (MOST_SESSIONS - 1,),
    )
    found.execute(
        "insert into sessions values (?, ?, ?, ?, ?)", (_digest(text), secrets.token_hex(6), token, now, now + SESSION)
    )
    return text


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
