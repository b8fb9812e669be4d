"""One request with records: its head is checked, its body read within bounds, its records stored, and only then it is answered."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from penstock.bridge.answers import LATER, Refusal
from penstock.bridge.intake import Closing, Intake
from penstock.bridge.limits import Limits, Room
from penstock.bridge.records import BadInput
from penstock.bridge.request_format import RequestFormat
from penstock.bridge.server import complain
from penstock.bridge.sorting import KeyReused, StoredRecords

SHORT = 64 << 10
"""A body that nobody wants is read if it is no longer, so that the connection can go on."""


@dataclass(frozen=True)
class RecordTaker:
    """Takes the records of requests into topics; `is_stopping` says that no more are taken."""

    limits: Limits
    format: RequestFormat
    is_stopping: Callable[[], bool]

    async def take(self, request: Request, intake: Intake) -> Response:
        """Stores the records of a request and says where they are.

        Raises:
            Refusal: they were not stored, or nobody knows.
        """
        length = self._length(request, intake.room)
        try:
            stored = await self._store(request, await self._body(request, length, intake.room), intake)
        except (Closing, asyncio.CancelledError):
            raise _stopping() from None
        headers = {"Idempotent-Replayed": "true"} if all(s.again for s in stored) else {}
        return answer(200, positions_of(stored), headers, close=self.is_stopping())

    def _length(self, request: Request, room: Room) -> int:
        """How long the body is; refuses, before it is read, a request that will not be taken."""
        length = length_of(request, self.limits.body)
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refusal(415, "bodies are taken as they are, without Content-Encoding")
        if self.is_stopping():
            raise _stopping()
        if room.full:
            raise _too_much()
        return length

    async def _body(self, request: Request, length: int, room: Room) -> bytes:
        """The body. What has come of it counts as held, so that many at once cannot fill the memory."""
        parts, held = list[bytes](), 0
        try:
            async for part in request.stream():
                parts.append(part)
                held += len(part)
                room.take(0, len(part))
                if room.full and held < length:
                    raise _too_much(close=True)
        finally:
            room.give(0, held)
        return b"".join(parts)

    async def _store(self, request: Request, body: bytes, intake: Intake) -> list[StoredRecords]:
        try:
            given = self.format.given(request.headers, body)
            if intake.room.full:
                raise _too_much()
            return await intake.put(given)
        except BadInput as error:
            raise Refusal(400, str(error)) from None
        except KeyReused as error:
            raise Refusal(422, str(error)) from None
        except (Closing, Refusal):
            raise
        except Exception as error:
            complain(f"{intake.topic} cannot be written: {error}")
            raise Refusal(503, "the log cannot be written now", headers=LATER) from None


def length_of(request: Request, most: int) -> int:
    """The length of a body, which must be said and not be too large."""
    if "transfer-encoding" in request.headers:
        raise Refusal(411, "say how long the body is with Content-Length; chunks are not taken", close=True)
    text = request.headers.get("content-length")
    if text is None:
        raise Refusal(411, "say how long the body is with Content-Length", close=True)
    if not re.fullmatch(r"[0-9]{1,18}", text):
        raise Refusal(400, "Content-Length is no number", close=True)
    if int(text) > most:
        raise Refusal(413, f"a body has at most {most} bytes; this one has {int(text)}", close=True)
    return int(text)


async def refused(request: Request, error: Refusal) -> Response:
    """The answer to a request that is not taken. A short body is read, so that the connection can go on; a long one ends it."""
    text = request.headers.get("content-length", "0")
    is_short = "transfer-encoding" not in request.headers and len(text) < 9 and text.isdecimal() and int(text) <= SHORT
    close = error.close or not is_short or "expect" in request.headers or not await _is_passed_over(request)
    return answer(error.status_code, {"error": error.detail}, error.headers, close=close)


async def _is_passed_over(request: Request) -> bool:
    """Reads what is left of a body; false when that takes too long."""
    try:
        async for _ in request.stream():
            pass
    except (Refusal, ClientDisconnect):
        return False
    except RuntimeError:  # it has been read
        return True
    return True


def answer(status: int, found: object, headers: Mapping[str, str] | None = None, *, close: bool = False) -> Response:
    """An answer of the bridge."""
    own = {"X-Content-Type-Options": "nosniff", **(headers or {})}
    return JSONResponse(found, status, headers={**own, "Connection": "close"} if close else own)


def positions_of(stored: list[StoredRecords]) -> dict[str, object]:
    """The positions of the records of a request, for the client."""
    positions = [{"partition": s.partition, "offset": s.offset, "records": len(s.rows)} for s in stored]
    return {"records": sum(len(s.rows) for s in stored), "positions": positions}


def _stopping() -> Refusal:
    return Refusal(503, "the bridge is stopping", close=True, headers=LATER)


def _too_much(*, close: bool = False) -> Refusal:
    return Refusal(429, "too much waits for the disk; try again", close=close, headers=LATER)
