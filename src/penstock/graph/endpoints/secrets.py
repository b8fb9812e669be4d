"""Addresses with a password in them, taken apart: the address may be shown, the password never."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import parse_qsl, unquote, urlencode, urlsplit, urlunsplit

from penstock.errors import FlowError

_SECRET_PARAMETERS = ("password", "sslpassword")


class Secret(str):
    """A text that does not show itself.

    >>> Secret("hush"), [Secret("hush")] == ["hush"]
    (***, True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "***"


def without_password(url: str, schemes: Iterable[str], what: str) -> tuple[str, Secret | None]:
    """The address without its password, and the password.

    >>> without_password("postgresql://ada:s%40cret@db:5432/shop?sslmode=require", ["postgresql"], "postgres")
    ('postgresql://ada@db:5432/shop?sslmode=require', ***)
    """
    parts = urlsplit(str(url))
    if parts.scheme not in tuple(schemes):
        wanted = " or ".join(f"{s}://user:password@host:port/name" for s in schemes)
        raise FlowError(
            f"{what}: its address is a URL such as {wanted}, got one that begins with {parts.scheme or '?'!r}"
        )
    user, at, host = parts.netloc.rpartition("@")
    name, colon, word = user.partition(":")
    query = parse_qsl(parts.query, keep_blank_values=True)
    hidden = [unquote(word)] if colon else []
    hidden += [value for key, value in query if key.lower() in _SECRET_PARAMETERS]
    shown = urlencode([(k, v) for k, v in query if k.lower() not in _SECRET_PARAMETERS], safe="/:,")
    clean = urlunsplit((parts.scheme, f"{name}{at}{host}" if name else host, parts.path, shown, ""))
    return clean, Secret(hidden[0]) if hidden else None
