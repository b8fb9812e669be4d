"""The HTTP bridge: POST /topics/TOPIC puts records into the log, and is answered when they are on disk.

The protocol is asyncio's streams and a strict reader of heads; one call needs no framework, and what is not understood is refused.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

from penstock.bridge.answers import Refusal, answer
from penstock.bridge.guard import Guard
from penstock.bridge.intake import Closing
from penstock.bridge.limits import Limits
from penstock.bridge.records import BadInput, Keys, Submission, pieces
from penstock.bridge.request import Head, read_head
from penstock.bridge.server import Reader, Server, Writer, complain
from penstock.bridge.sorting import KeyReused, StoredRecords
from penstock.log import Log

_CHUNK = 64 << 10
_IDENT = re.compile(r"[\x21-\x7e]{1,255}")
_LATER = {"Retry-After": "1"}


@dataclass(frozen=True)
class RequestFormat:
    """How requests become records: where their keys are, and which of their headers are kept."""

    key_header: str = ""
    key_field: str = ""
    keep_headers: Sequence[str] = ()

    def given(self, head: Head, body: bytes) -> Submission:
        """The records of a request."""
        kind = head.headers.get("content-type", "").partition(";")[0].strip().lower()
        key = self._key(head)
        finder = Keys(self.key_field)
        pairs = [finder.pair(raw, parsed) for raw, parsed in pieces(kind, body)]
        if not pairs:
            raise BadInput("the body holds no record")
        keys = [k if key is None else key for k, _ in pairs] if self.key_header or self.key_field else None
        ident = _ident(head)
        digest = _digest(kind.encode(), key or b"", body) if ident else b""
        return Submission([value for _, value in pairs], keys, self._kept(head), ident, digest)

    def _key(self, head: Head) -> bytes | None:
        if not self.key_header:
            return None
        found = head.headers.get(self.key_header.lower())
        if found is None:
            raise BadInput(f"no header {self.key_header}, which is the key")
        return found.encode("latin-1")

    def _kept(self, head: Head) -> tuple[tuple[str, bytes], ...]:
        wanted = ((name, head.headers.get(name.lower())) for name in self.keep_headers)
        return tuple((name, value.encode("latin-1")) for name, value in wanted if value is not None)


def _digest(*parts: bytes) -> bytes:
    return hashlib.blake2b(b"\0".join(parts), digest_size=16).hexdigest().encode()


def _ident(head: Head) -> bytes:
    found = head.headers.get("idempotency-key")
    if found is not None and not _IDENT.fullmatch(found):
        raise BadInput("an Idempotency-Key has 1 to 255 characters of ASCII without blanks")
    return (found or "").encode()


class HttpBridge(Server):
    """Takes records by HTTP; made and used inside an event loop."""

    def __init__(
        self,
        log: Log,
        topic: str,
        *,
        taking: RequestFormat | None = None,
        guard: Guard | None = None,
        limits: Limits | None = None,
    ) -> None:
        super().__init__(log, topic, limits)
        self.taking, self.guard = taking or RequestFormat(), guard or Guard()
        self.path = f"/topics/{topic}"

    def refusal(self) -> bytes:
        """The answer to a connection too many."""
        return answer(503, {"error": "too many connections; try again"}, keep=False, headers=_LATER)

    async def talk(self, reader: Reader, writer: Writer) -> None:
        """Serve the requests of a connection, one after the other."""
        while first := await self.more(reader, writer, 1):
            try:
                keep = await self._exchange(first, reader, writer)
            except Refusal as error:
                keep = not error.close
                await self.send(writer, answer(error.status, {"error": error.text}, keep=keep, headers=error.headers))
            if not keep or self.stopping:
                await self._drain(reader, writer)
                return

    async def _exchange(self, first: bytes, reader: Reader, writer: Writer) -> bool:
        """One request and its answer; whether the connection goes on."""
        head = await self._head(first, reader)
        if head.path == "/health":
            self._only(head, "GET")
            status, found = self._health()
            await self.send(writer, answer(status, found, keep=head.keep))
            return head.keep
        try:
            self._admit(head)
        except Refusal as error:
            await self._pass_over(head, error, reader)
            raise
        body = await self._body(head, reader, writer)
        stored = await self._store(head, body)
        keep = head.keep and not self.stopping
        again = {"Idempotent-Replayed": "true"} if all(s.again for s in stored) else {}
        await self.send(writer, answer(200, positions_of(stored), keep=keep, headers=again))
        return keep

    async def _head(self, first: bytes, reader: Reader) -> Head:
        try:
            async with asyncio.timeout(self.limits.head_seconds):
                return read_head(first + await reader.readuntil(b"\r\n\r\n"))
        except TimeoutError:
            raise Refusal(408, "the head of the request did not come in time", close=True) from None
        except asyncio.LimitOverrunError:
            raise Refusal(431, f"the head of a request has at most {self.stream_limit} bytes", close=True) from None

    def _health(self) -> tuple[int, dict[str, str]]:
        if self.stopping:
            return 503, {"status": "stopping"}
        return (
            (200, {"status": "ok"}) if self.intake.failing is None else (503, {"status": "the log cannot be written"})
        )

    def _only(self, head: Head, method: str) -> None:
        if head.method != method:
            raise Refusal(405, f"{head.path} takes {method}", close=True, headers={"Allow": method})

    def _admit(self, head: Head) -> None:
        """Refuse, before its body is read, a request that will not be taken."""
        self._trust(head)
        if head.path != self.path:
            raise Refusal(404, f"records go to POST {self.path}")
        self._only(head, "POST")
        head.length(self.limits.body)
        if head.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refusal(415, "bodies are taken as they are, without Content-Encoding")
        if self.stopping:
            raise Refusal(503, "the bridge is stopping", close=True, headers=_LATER)
        if self.intake.room.full:
            raise _too_much()

    def _trust(self, head: Head) -> None:
        kind, _, token = head.headers.get("authorization", "").partition(" ")
        if self.guard.asks and not (kind.lower() == "bearer" and self.guard.knows(token.strip())):
            raise Refusal(401, "a token is needed: Authorization: Bearer TOKEN", headers={"WWW-Authenticate": "Bearer"})
        if "origin" in head.headers or not self.guard.trusts_host(head.headers.get("host", "localhost")):
            raise Refusal(403, "records are not taken from web pages", close=True)

    async def _pass_over(self, head: Head, error: Refusal, reader: Reader) -> None:
        """Read a short body that nobody wants, so that the connection can go on; a long one ends it."""
        text = head.headers.get("content-length", "0")
        small = "transfer-encoding" not in head.headers and len(text) < 9 and text.isdecimal() and int(text) <= _CHUNK
        if not small or "expect" in head.headers:
            error.close = True
        elif not error.close:
            async with asyncio.timeout(self.limits.head_seconds):
                await reader.readexactly(int(text))
            error.close = not head.keep

    async def _body(self, head: Head, reader: Reader, writer: Writer) -> bytes:
        """The body. What has come of it counts as held, so that many at once cannot fill the memory."""
        length, room, parts = head.length(self.limits.body), self.intake.room, list[bytes]()
        if head.headers.get("expect", "").lower() == "100-continue":
            await self.send(writer, b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            async with asyncio.timeout(self.limits.body_seconds(length)):
                while length:
                    parts.append(await reader.read(min(length, _CHUNK)))
                    if not parts[-1]:
                        raise ConnectionError
                    length -= len(parts[-1])
                    room.take(0, len(parts[-1]))
                    if room.full and length:
                        raise _too_much(close=True)
        except TimeoutError:
            raise Refusal(408, "the body did not come in time", close=True) from None
        finally:
            room.give(0, sum(map(len, parts)))
        return b"".join(parts)

    async def _store(self, head: Head, body: bytes) -> list[StoredRecords]:
        close = not head.keep
        try:
            given = self.taking.given(head, body)
            if self.intake.room.full:
                raise _too_much(close=close)
            return await self.intake.put(given)
        except BadInput as error:
            raise Refusal(400, str(error), close=close) from None
        except KeyReused as error:
            raise Refusal(422, str(error), close=close) from None
        except Closing:
            raise Refusal(503, "the bridge is stopping", close=True, headers=_LATER) from None
        except Refusal:
            raise
        except Exception as error:
            complain(f"{self.topic} cannot be written: {error}")
            raise Refusal(503, "the log cannot be written now", close=close, headers=_LATER) from None

    async def _drain(self, reader: Reader, writer: Writer) -> None:
        """Let the client read the answer: closing over what it still sends would take the answer away from it."""
        with suppress(OSError, TimeoutError):
            writer.write_eof()
            async with asyncio.timeout(1.0):
                while await reader.read(_CHUNK):
                    pass


def _too_much(*, close: bool = False) -> Refusal:
    return Refusal(429, "too much waits for the disk; try again", close=close, headers=_LATER)


def positions_of(stored: list[StoredRecords]) -> dict[str, object]:
    """The positions of the records of a request, for the client."""
    positions = [{"partition": s.partition, "offset": s.offset, "records": len(s.rows)} for s in stored]
    return {"records": sum(len(s.rows) for s in stored), "positions": positions}
