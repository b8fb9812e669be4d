"""The answers of the HTTP bridge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus


class Refusal(Exception):
    """Ends a request with a status; `close` ends the connection too."""

    def __init__(
        self, status: int, text: str, *, close: bool = False, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(text)
        self.status, self.text, self.close, self.headers = status, text, close, headers or {}


def answer(status: int, found: object, *, keep: bool, headers: Mapping[str, str] | None = None) -> bytes:
    r"""A whole answer with a JSON body.

    >>> answer(200, {"status": "ok"}, keep=True).split(b"\r\n")[0]
    b'HTTP/1.1 200 OK'
    """
    body = json.dumps(found, separators=(",", ":")).encode() + b"\n"
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "X-Content-Type-Options: nosniff",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
        *([] if keep else ["Connection: close"]),
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
