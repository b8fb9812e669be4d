"""Who may hand in records: those who know the token, or who are on this machine and not a web page."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from dataclasses import dataclass

from penstock.errors import SetupError


def loopback(host: str) -> bool:
    """Whether only this machine can reach an address.

    >>> loopback("127.0.0.1"), loopback("localhost"), loopback("::1"), loopback("0.0.0.0")
    (True, True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _sum(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


@dataclass(frozen=True)
class Guard:
    """What a client must show. The token itself is not kept, only its hash."""

    digest: bytes = b""
    local: bool = True

    @classmethod
    def of(cls, host: str, token: str = "", *, anyone: bool = False) -> Guard:
        """The guard of an address; one that others can reach needs a token, unless anyone may come."""
        if not token and not anyone and not loopback(host):
            raise SetupError(
                f"others can reach {host}, so a token is needed (--token-env NAME or --token-file FILE); or listen on "
                f"127.0.0.1, or say --open if anyone who can reach it may hand in records"
            )
        return cls(_sum(token.encode()) if token else b"", not anyone)

    @property
    def asks(self) -> bool:
        """Whether a token is needed."""
        return bool(self.digest)

    def knows(self, token: str) -> bool:
        """Whether this is the token; takes as long for a wrong one.

        >>> Guard.of("0.0.0.0", "secret").knows("secret"), Guard.of("0.0.0.0", "secret").knows("")
        (True, False)
        """
        return not self.digest or hmac.compare_digest(self.digest, _sum(token.encode(errors="replace")))

    def trusts_host(self, host: str) -> bool:
        """Whether a request was meant for this machine; a web page that has its own name point here was not.

        >>> Guard.of("127.0.0.1").trusts_host("localhost:8900"), Guard.of("127.0.0.1").trusts_host("evil.example:8900")
        (True, False)
        """
        if self.asks or not self.local:
            return True
        name = host.rpartition(":")[0] if host.rpartition(":")[2].isdecimal() else host
        return loopback(name)
