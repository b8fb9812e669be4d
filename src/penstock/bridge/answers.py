"""The answers of the HTTP bridge."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from starlette.exceptions import HTTPException

LATER = {"Retry-After": "1"}
"""The header of an answer that says to try again."""


class Refusal(HTTPException):
    """Ends a request with a status; `close` ends the connection too."""

    def __init__(
        self, status: int, text: str, *, close: bool = False, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, text, {**(headers or {}), **({"Connection": "close"} if close else {})})
        self.close = close


def last_answer(status: int, text: str, headers: Mapping[str, str] | None = None) -> bytes:
    r"""The bytes of an answer to what is not a request (yet); the connection ends with it.

    >>> last_answer(408, "too late").split(b"\r\n")[0]
    b'HTTP/1.1 408 Request Timeout'
    """
    body = json.dumps({"error": text}).encode() + b"\n"
    lines = [
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}",
        "Content-Type: application/json",
        f"Content-Length: {len(body)}",
        "X-Content-Type-Options: nosniff",
        *(f"{name}: {value}" for name, value in (headers or {}).items()),
        "Connection: close",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body
