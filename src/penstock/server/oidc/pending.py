"""Those who are on their way to the provider and back."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import threading
import time
from dataclasses import dataclass, field

HOLDS = 600.0
"""For how many seconds somebody may be away."""
MOST = 1_000
"""How many may be away at once; the first of them is forgotten for a new one."""


class SignInRefused(Exception):
    """Why somebody is not signed in."""


@dataclass(frozen=True)
class SignIn:
    """One who was sent to the provider: what is expected back, and from which browser."""

    state: str
    nonce: str
    verifier: str = field(repr=False)
    browser: str = field(repr=False)
    redirect: str
    until: float

    @property
    def challenge(self) -> str:
        """What the provider gets instead of the verifier (PKCE, S256)."""
        digest = hashlib.sha256(self.verifier.encode()).digest()
        return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


@dataclass
class PendingSignIns:
    """They are kept in memory: a server that is started again has people sign in once more."""

    _found: dict[str, SignIn] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def begin(self, redirect: str) -> SignIn:
        """Sends one more on the way."""
        state, nonce, verifier, browser = (secrets.token_urlsafe(32) for _ in range(4))
        made = SignIn(state, nonce, verifier, browser, redirect, time.monotonic() + HOLDS)
        with self._lock:
            while len(self._found) >= MOST:
                del self._found[next(iter(self._found))]
            self._found[made.state] = made
        return made

    def end(self, state: str, browser: str) -> SignIn | None:
        """Who comes back with a state, once, in the browser that was sent away; None for all others."""
        with self._lock:
            found = self._found.pop(state, None)
        if found is None or found.until < time.monotonic():
            return None
        return found if hmac.compare_digest(found.browser.encode(), browser.encode(errors="replace")) else None
