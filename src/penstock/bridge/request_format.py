"""How requests become records: where their keys are, and which of their headers are kept."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from penstock.bridge.records import BadInput, Keys, Submission, pieces
from penstock.errors import OptionError

_IDENT = re.compile(r"[\x21-\x7e]{1,255}")
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}")
Headers = Mapping[str, str]
"""The headers of a request, found by names in lower case."""


@dataclass(frozen=True)
class RequestFormat:
    """How requests become records: where their keys are, and which of their headers are kept."""

    key_header: str = ""
    key_field: str = ""
    keep_headers: Sequence[str] = ()

    def __post_init__(self) -> None:
        for name in (self.key_header, *self.keep_headers):
            if name and not _HEADER.fullmatch(name):
                raise OptionError(f"expected the name of a header, such as X-Device, got {name[:100]!r}")

    def given(self, headers: Headers, body: bytes) -> Submission:
        """The records of a request."""
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        key = self._key(headers)
        finder = Keys(self.key_field)
        pairs = [finder.pair(raw, parsed) for raw, parsed in pieces(kind, body)]
        if not pairs:
            raise BadInput("the body holds no record")
        keys = [k if key is None else key for k, _ in pairs] if self.key_header or self.key_field else None
        ident = _ident(headers)
        digest = _digest(kind.encode(), key or b"", body) if ident else b""
        return Submission([value for _, value in pairs], keys, self._kept(headers), ident, digest)

    def _key(self, headers: Headers) -> bytes | None:
        if not self.key_header:
            return None
        found = headers.get(self.key_header.lower())
        if found is None:
            raise BadInput(f"no header {self.key_header}, which is the key")
        return found.encode("latin-1")

    def _kept(self, headers: Headers) -> tuple[tuple[str, bytes], ...]:
        wanted = ((name, headers.get(name.lower())) for name in self.keep_headers)
        return tuple((name, value.encode("latin-1")) for name, value in wanted if value is not None)


def _digest(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).hexdigest().encode()


def _ident(headers: Headers) -> bytes:
    found = headers.get("idempotency-key")
    if found is not None and not _IDENT.fullmatch(found):
        raise BadInput("an Idempotency-Key has 1 to 255 characters of ASCII without blanks")
    return (found or "").encode()
