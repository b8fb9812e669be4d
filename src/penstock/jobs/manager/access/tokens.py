"""Who may do what: tokens with an owner, a role and an end, kept as hashes."""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Literal, get_args

from penstock.errors import OptionError, SetupError, UnknownName
from penstock.jobs.manager.store.audit import AuditEntry, AuditTrail
from penstock.jobs.manager.store.database import Connection, Database

Role = Literal["viewer", "operator", "developer", "admin"]
"""A viewer looks; an operator also starts and stops jobs; a developer also submits and owns jobs; an admin may do everything."""
ROLES: tuple[Role, ...] = get_args(Role)
Right = Literal["look", "operate", "submit", "administer"]
_RIGHTS: dict[Role, frozenset[Right]] = {
    "viewer": frozenset({"look"}),
    "operator": frozenset({"look", "operate"}),
    "developer": frozenset({"look", "submit"}),
    "admin": frozenset({"look", "operate", "submit", "administer"}),
}
PREFIX = "pstk_"
"""How tokens begin, so that scanners of leaked secrets find them."""
NOTED = 60.0
"""The use of a token is noted again after so many seconds."""
OWNER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,62}")


@dataclass(frozen=True)
class Identity:
    """Who asks: the owner of a token, the role that it has, and its id."""

    owner: str
    role: Role
    token: str = ""

    def may(self, right: Right) -> bool:
        """Whether the role has a right."""
        return right in _RIGHTS[self.role]

    def may_change(self, owner: str) -> bool:
        """Whether it may change what `owner` submitted.

        >>> Identity("ada", "developer").may_change("bob"), Identity("ada", "developer").may_change("ada")
        (False, True)
        """
        return self.may("operate") or (self.may("submit") and self.owner == owner)


@dataclass(frozen=True)
class Token:
    """A token as it is listed; what it is itself nobody knows but who got it."""

    id: str
    owner: str
    role: Role
    created: float
    expires: float | None = None
    revoked: float | None = None
    used: float | None = None


@dataclass(frozen=True)
class Tokens:
    """The tokens of a manager."""

    database: Database
    trail: AuditTrail | None = None
    noted: dict[str, float] = field(default_factory=dict, compare=False)
    """When the use of a token was noted last by this process."""

    def make(self, owner: str, role: Role, seconds: float | None = None, actor: str = "") -> tuple[str, Token]:
        """A new token, which is shown once, and how it is listed; it ends after so many seconds, or never. Who asks for it stands in the audit."""
        if not OWNER.fullmatch(owner):
            raise OptionError(f"an owner has 1 to 63 characters, letters, digits, '.', '_', '@' and '-'; got {owner!r}")
        if role not in ROLES:
            raise OptionError(f"expected a role, {', '.join(ROLES)}, got {role!r}")
        text, now = PREFIX + secrets.token_urlsafe(32), time.time()
        made = Token(secrets.token_hex(6), owner, role, now, None if seconds is None else now + seconds)
        with self.database.changes() as found:
            found.execute(
                "insert into tokens (id, digest, owner, role, created, expires) values (?, ?, ?, ?, ?, ?)",
                (made.id, _digest(text), owner, role, made.created, made.expires),
            )
            self._note(found, actor, "token", made.id, f"{role} {owner}")
        return text, made

    def identity(self, text: str) -> Identity | None:
        """Who a token stands for; None for one that is unknown, has ended or was revoked."""
        now = time.time()
        with self.database.reads() as found:
            row = found.execute(
                "select owner, role, id from tokens where digest = ? and revoked is null and (expires is null or expires > ?)",
                (_digest(text), now),
            ).fetchone()
        if row is not None:
            self.use(row[2], now)
        return None if row is None else Identity(*row)

    def use(self, id: str, now: float) -> None:
        """Notes that a token is used, to the minute; what cannot be written is not noted."""
        if abs(now - self.noted.get(id, 0.0)) < NOTED:
            return
        self.noted[id] = now
        with suppress(SetupError), self.database.alone() as found:
            found.execute("update tokens set used = ? where id = ?", (now, id))

    def revoke(self, id: str, actor: str = "") -> None:
        """Ends a token at once. Who asks for it stands in the audit."""
        with self.database.changes() as found:
            done = found.execute("update tokens set revoked = ? where id = ? and revoked is null", (time.time(), id))
            if done.rowcount == 0:
                raise UnknownName(f"there is no token {id!r} that holds")
            self._note(found, actor, "revoke", id)

    def _note(self, found: Connection, actor: str, action: str, id: str, detail: str = "") -> None:
        if self.trail is not None and actor:
            self.trail.note(found, AuditEntry(time.time(), actor, action, id, detail))

    def all(self) -> list[Token]:
        """All tokens, the newest first."""
        with self.database.reads() as found:
            rows = found.execute(
                "select id, owner, role, created, expires, revoked, used from tokens order by created desc"
            )
            return [Token(*row) for row in rows]


def _digest(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()
