"""The head of an HTTP request, read strictly: what can be understood in two ways is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from penstock.bridge.answers import Refusal

_TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_LINE = re.compile(rb"([A-Z]{1,20}) ([\x21-\x7e]{1,8000}) HTTP/(\d)\.(\d)")
_BAD = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_MOST = 100
_ONCE = frozenset({"content-length", "host", "authorization", "idempotency-key", "content-type", "transfer-encoding"})


@dataclass(frozen=True)
class Head:
    """Method, path and headers (names in lower case) of a request."""

    method: str
    path: str
    headers: dict[str, str]
    keep: bool

    def length(self, most: int) -> int:
        """The length of the body, which must be said and not be too large."""
        if "transfer-encoding" in self.headers:
            raise Refusal(411, "say how long the body is with Content-Length; chunks are not taken", close=True)
        text = self.headers.get("content-length")
        if text is None:
            raise Refusal(411, "say how long the body is with Content-Length", close=True)
        if not re.fullmatch(r"[0-9]{1,18}", text):
            raise Refusal(400, "Content-Length is no number", close=True)
        if int(text) > most:
            raise Refusal(413, f"a body has at most {most} bytes; this one has {int(text)}", close=True)
        return int(text)


def read_head(raw: bytes) -> Head:
    r"""The head from its bytes, up to the empty line.

    >>> read_head(b"GET /health?full HTTP/1.1\r\nHost: x\r\n\r\n")
    Head(method='GET', path='/health', headers={'host': 'x'}, keep=True)
    """
    first, *lines = raw.removesuffix(b"\r\n\r\n").split(b"\r\n")
    match = _LINE.fullmatch(first)
    if match is None:
        raise Refusal(400, "the first line is not METHOD PATH HTTP/1.1", close=True)
    if match[3] != b"1":
        raise Refusal(505, "HTTP/1.1 is spoken here", close=True)
    headers = _headers(lines)
    modern = match[4] != b"0"
    if modern and "host" not in headers:
        raise Refusal(400, "a request has a Host header", close=True)
    wishes = {word.strip().lower() for word in headers.get("connection", "").split(",")}
    keep = "close" not in wishes and (modern or "keep-alive" in wishes)
    return Head(match[1].decode(), match[2].decode().partition("?")[0], headers, keep)


def _headers(lines: list[bytes]) -> dict[str, str]:
    if len(lines) > _MOST:
        raise Refusal(431, f"a request has at most {_MOST} headers", close=True)
    found: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(b":")
        if not colon or not _TOKEN.fullmatch(name) or _BAD.search(value):
            raise Refusal(400, "a header is NAME: VALUE on one line", close=True)
        key = name.decode().lower()
        if key in found and key in _ONCE:
            raise Refusal(400, f"got the header {key} twice", close=True)
        text = value.strip(b" \t").decode("latin-1")
        found[key] = f"{found[key]}, {text}" if key in found else text
    return found
