"""Idempotency keys: a change that is sent again with its key is answered as before, and not made again, also by a server that was started since."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.errors import SetupError
from penstock.jobs.manager.store.answers import Answers
from penstock.jobs.manager.store.request_keys import CURRENT, UNANSWERED, RequestKey
from penstock.server.problems import problem
from penstock.server.sealing import seal, unseal

log = logging.getLogger("penstock")
LARGEST = 64 << 10
"""How many bytes an answer has that is kept."""
CHANGES = ("POST", "PUT", "PATCH", "DELETE")
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


@dataclass(frozen=True)
class Asked:
    """A request with a key: the connection, its body, and what it showed."""

    scope: Scope
    receive: Receive
    send: Send
    key: RequestKey
    body: bytes

    @property
    def shown(self) -> str:
        """The token or the session of the request."""
        return str(self.scope["credential"].text)

    async def refuse(self, status: int, text: str) -> None:
        """Answers with a problem."""
        await problem(status, text)(self.scope, self.receive, self.send)


class Replays:
    """Answers changes that carry an Idempotency-Key, by who asks, as they were answered before. Behind the gate.

    A key is kept with the first change that its request makes, and the answer when it is there. `keeps_own` says which changes look after their keys themselves.
    """

    def __init__(self, app: ASGIApp, answers: Answers, keeps_own: Callable[[str, str], bool]) -> None:
        self.app, self.answers, self.keeps_own = app, answers, keeps_own
        self.under_way: dict[tuple[str, str], asyncio.Event] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request."""
        key = _key_of(scope)
        if key is None or self.keeps_own(scope["method"], scope["path"]):
            await self.app(scope, receive, send)
        elif not _KEY.fullmatch(key):
            text = "an Idempotency-Key has 1 to 255 characters of ASCII without blanks"
            await problem(422, text)(scope, receive, send)
        elif (body := await _body(receive)) is not None:
            digest = hashlib.sha256(b"\0".join((*_line(scope), body))).digest()
            await self._in_turn(Asked(scope, receive, send, RequestKey(scope["identity"].owner, key, digest), body))

    async def _in_turn(self, asked: Asked) -> None:
        """One request of a key at a time."""
        name = (asked.key.owner, asked.key.key)
        while (before := self.under_way.get(name)) is not None:
            await before.wait()
        done = self.under_way[name] = asyncio.Event()
        try:
            await self._answer(asked)
        except SetupError as error:
            await asked.refuse(503, str(error))
        finally:
            del self.under_way[name]
            done.set()

    async def _answer(self, asked: Asked) -> None:
        key = asked.key
        kept = await run_in_threadpool(self.answers.find, key.owner, key.key)
        if kept is None:
            await self._first(asked)
        elif kept.digest != key.digest:
            await asked.refuse(422, "this Idempotency-Key was used for another request")
        elif kept.answer is None:
            await asked.refuse(409, UNANSWERED)
        elif (plain := unseal(kept.answer, asked.shown, key.key, key.digest)) is None:
            text = "this request was done; its answer is for the token that sent it first"
            await asked.refuse(409, text)
        else:
            await _replay(plain, asked.send)

    async def _first(self, asked: Asked) -> None:
        """Has the change made. Its answer is kept before it is sent: who has it can rely on it, whichever server is asked then."""
        sent: list[Message] = []

        async def recorded(message: Message) -> None:
            sent.append(dict(message))

        before = CURRENT.set(asked.key)
        try:
            await self.app(asked.scope, _given(asked.body, asked.receive), recorded)
        finally:
            CURRENT.reset(before)
            await run_in_threadpool(self._settle, asked, sent)
            for message in sent:
                await asked.send(message)

    def _settle(self, asked: Asked, sent: list[Message]) -> None:
        """Keeps the answer; that of a request which failed is forgotten, so that it may be sent again."""
        try:
            if _is_done(sent):
                plain = _written(sent)
                self.answers.keep(asked.key, seal(plain, asked.shown, asked.key.key, asked.key.digest))
            elif asked.key.is_marked:
                self.answers.drop(asked.key)
        except SetupError as error:  # what was changed is changed
            log.warning("the answer to a request could not be kept: %s", error)


def _key_of(scope: Scope) -> str | None:
    if scope["type"] != "http" or scope["method"] not in CHANGES or "identity" not in scope:
        return None
    found = dict(scope["headers"]).get(b"idempotency-key")
    return None if found is None else str(found.decode("latin-1"))


def _line(scope: Scope) -> tuple[bytes, ...]:
    """What a request is beside its body."""
    return scope["method"].encode(), scope["path"].encode(errors="surrogatepass"), scope["query_string"]


async def _body(receive: Receive) -> bytes | None:
    """The body of a request; None when its client went before it was there."""
    parts: list[bytes] = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        parts.append(message.get("body", b""))
        if not message.get("more_body"):
            return b"".join(parts)


def _given(body: bytes, receive: Receive) -> Receive:
    """The body that was read, once; then what comes."""
    given = [{"type": "http.request", "body": body, "more_body": False}]

    async def receiving() -> Message:
        return given.pop() if given else await receive()

    return receiving


def _is_done(sent: list[Message]) -> bool:
    """Whether an answer is complete, says that the change was made, and is small enough to keep."""
    size = sum(len(message.get("body", b"")) for message in sent)
    return bool(sent) and not sent[-1].get("more_body") and sent[0].get("status", 500) < 400 and size <= LARGEST


def _written(sent: list[Message]) -> bytes:
    """An answer as bytes: a line with its status and headers, then its body."""
    headers = [[name.decode("latin-1"), value.decode("latin-1")] for name, value in sent[0]["headers"]]
    head = json.dumps({"status": sent[0]["status"], "headers": headers}).encode()
    return b"\n".join((head, b"".join(message.get("body", b"") for message in sent[1:])))


async def _replay(plain: bytes, send: Send) -> None:
    head, _, body = plain.partition(b"\n")
    found = json.loads(head)
    headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in found["headers"]]
    headers.append((b"idempotent-replayed", b"true"))
    await send({"type": "http.response.start", "status": found["status"], "headers": headers})
    await send({"type": "http.response.body", "body": body})
