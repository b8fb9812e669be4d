"""Who may send requests, before their bodies are read."""

from __future__ import annotations

from collections.abc import Mapping

from penstock.bridge.answers import Refusal
from penstock.bridge.guard import Guard


def check_sender(guard: Guard, headers: Mapping[str, str], what: str) -> None:
    """Refuses a request that shows no token where one is asked for, or that a web page has sent.

    >>> check_sender(Guard(), {"host": "localhost:8900"}, "records")
    """
    kind, _, token = headers.get("authorization", "").partition(" ")
    if guard.asks and not (kind.lower() == "bearer" and guard.knows(token.strip())):
        raise Refusal(401, "a token is needed: Authorization: Bearer TOKEN", headers={"WWW-Authenticate": "Bearer"})
    if "origin" in headers or not guard.trusts_host(headers.get("host", "localhost")):
        raise Refusal(403, f"{what} are not taken from web pages", close=True)
