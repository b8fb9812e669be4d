"""The idempotency key of the request at work: it is kept in the same transaction as the first thing that the request changes."""

from __future__ import annotations

import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from penstock.errors import NameTaken

AGE = 86_400.0
"""For how many seconds a key is known."""
UNANSWERED = (
    "this Idempotency-Key was sent before and has no answer: its request is under way, or the server ended in the middle of it; "
    "look at what it was to change, then use a new key"
)

_MARK = (
    "insert into replays (owner, key, digest, time) values (?, ?, ?, ?) on conflict (owner, key) do update "
    "set digest = excluded.digest, time = excluded.time, answer = null where replays.time <= ?"
)


class KeyUsed(NameTaken):
    """Another request with the same key was first."""


@dataclass
class RequestKey:
    """Who sent a request, by which key it is known, and what it was. It stands in the database once `is_marked`."""

    owner: str
    key: str
    digest: bytes
    is_marked: bool = False


class _Transaction(Protocol):
    def execute(self, sql: str, values: tuple[Any, ...] = (), /) -> Any: ...


CURRENT: ContextVar[RequestKey | None] = ContextVar("penstock_request_key", default=None)
"""The key of the request that this thread works on."""


def mark(found: _Transaction) -> RequestKey | None:
    """Writes the key of the request at work into its first transaction, and returns it; raises KeyUsed when the key is there already."""
    key = CURRENT.get()
    if key is None or key.is_marked:
        return None
    now = time.time()
    if found.execute(_MARK, (key.owner, key.key, key.digest, now, now - AGE)).rowcount == 0:
        raise KeyUsed(UNANSWERED)
    return key
