"""Answers that are kept are sealed with what the request showed: only who asked can have them read, not who has the database.

The key is made of the token or the session of the request, of which the database has hashes alone, and of its idempotency key.
"""

from __future__ import annotations

import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

_NONCE = 12
"""Bytes, as AES-GCM has it."""


def seal(plain: bytes, shown: str, key: str, digest: bytes) -> bytes:
    """What is kept; `digest` is that of the request, which the seal is bound to."""
    nonce = secrets.token_bytes(_NONCE)
    return nonce + _cipher(shown, key).encrypt(nonce, plain, digest)


def unseal(sealed: bytes, shown: str, key: str, digest: bytes) -> bytes | None:
    """What was sealed; None when it was for another token or session.

    >>> sealed = seal(b"an answer", "pstk_a", "k1", b"request")
    >>> unseal(sealed, "pstk_a", "k1", b"request"), unseal(sealed, "pstk_b", "k1", b"request")
    (b'an answer', None)
    """
    try:
        return _cipher(shown, key).decrypt(sealed[:_NONCE], sealed[_NONCE:], digest)
    except (InvalidTag, ValueError):
        return None


def _cipher(shown: str, key: str) -> AESGCM:
    made = HKDF(SHA256(), 32, salt=None, info=b"penstock answer " + key.encode())
    return AESGCM(made.derive(shown.encode(errors="replace")))
