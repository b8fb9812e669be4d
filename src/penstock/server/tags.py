"""ETags: what was read and has not changed is not sent again, and what has changed since it was read is not overwritten."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import asdict

from fastapi import Request
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.errors import UnknownName
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.store.conditions import EXPECTED, Expected, Kind, tag_of
from penstock.server.views import etag_of

Tag = Callable[[Request, str], str]


def _of_job(request: Request, name: str) -> str:
    manager: Manager = request.app.state.manager
    return etag_of(manager.state(name))


def _of_pool(request: Request, name: str) -> str:
    manager: Manager = request.app.state.manager
    found = manager.records.pools().get(name)
    return "" if found is None else tag_of(vars(found))


def _of_alert(request: Request, name: str) -> str:
    found = [rule for rule in request.app.state.alerts.rules() if rule.name == name]
    return tag_of(asdict(found[0])) if found else ""


JOB = "/api/v1/jobs/{name}"
TAGGED: dict[Kind, Tag] = {"jobs": _of_job, "pools": _of_pool, "alerts": _of_alert}
"""The objects that have a name and can be changed."""


def current_tag(request: Request, kind: Kind, name: str) -> str:
    """The tag of an object as it is now; empty where there is none."""
    try:
        return TAGGED[kind](request, name)
    except UnknownName:
        return ""


async def check_unchanged(request: Request) -> None:
    """Refuses a change with an If-Match of an object that has changed since, and has the transaction of the change look once more: 412.

    What has none takes no thread, which may all wait for the database.
    """
    asked, name = request.headers.get("if-match"), request.path_params.get("name")
    kind = next((kind for kind in TAGGED if request.url.path.split("/")[3:4] == [kind]), None)
    if asked is None or name is None or kind is None or request.method in ("GET", "HEAD"):
        return
    expected = Expected.of(kind, name, asked)
    expected.check(await run_in_threadpool(current_tag, request, kind, name))
    EXPECTED.set(expected)


class AnswerTags:
    """Gives every JSON answer to a GET a tag of its content, and answers 304 to who has it already."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request."""
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith("/api/"):
            await self.app(scope, receive, send)
            return
        asked = dict(scope["headers"]).get(b"if-none-match", b"")
        answer = _TaggedAnswer(send, b"" if _is_job(scope["path"]) else asked)
        await self.app(scope, receive, answer.send)


class _TaggedAnswer:
    def __init__(self, send: Send, known: bytes) -> None:
        self._send, self._known = send, known
        self._start: Message | None = None
        self._body = b""

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start" and _wants_tag(message):
            self._start = message
        elif self._start is None:
            await self._send(message)
        else:
            self._body += message.get("body", b"")
            if not message.get("more_body"):
                await self._finish(self._start)

    async def _finish(self, start: Message) -> None:
        own = dict(start["headers"]).get(b"etag")
        tag = own or f'"{hashlib.sha256(self._body).hexdigest()[:16]}"'.encode()
        headers = [*start["headers"], *([] if own else [(b"etag", tag)])]
        if {tag, b"*"} & {part.strip().removeprefix(b"W/") for part in self._known.split(b",")}:
            left = [(name, value) for name, value in headers if name not in (b"content-length", b"content-type")]
            await self._send({**start, "status": 304, "headers": left})
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self._send({**start, "headers": headers})
            await self._send({"type": "http.response.body", "body": self._body})


def _wants_tag(start: Message) -> bool:
    return start["status"] == 200 and dict(start["headers"]).get(b"content-type") == b"application/json"


def _is_job(path: str) -> bool:
    """Whether an answer is a job, whose tag is that of what is wanted: its figures change without it."""
    return path.count("/") == JOB.count("/") and path.startswith(JOB.partition("{")[0])
