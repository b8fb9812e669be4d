"""ETags: what was read and has not changed is not sent again, and what has changed since it was read is not overwritten."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict

from fastapi import HTTPException, Request
from starlette.concurrency import run_in_threadpool
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.errors import UnknownName
from penstock.jobs.manager.manager import Manager
from penstock.server.views import etag_of

Tag = Callable[[Request, str], str]


def tag_of(found: object) -> str:
    """The tag of something that JSON can say.

    >>> tag_of({"a": 1}) == tag_of({"a": 1}), tag_of({"a": 1}) == tag_of({"a": 2})
    (True, False)
    """
    return hashlib.sha256(json.dumps(found, sort_keys=True, default=str).encode()).hexdigest()[:16]


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


TAGGED: dict[str, Tag] = {"jobs": _of_job, "pools": _of_pool, "alerts": _of_alert}
"""The objects that have a name and can be changed."""


def current_tag(request: Request, kind: str, name: str) -> str:
    """The tag of an object as it is now; empty where there is none."""
    try:
        return TAGGED[kind](request, name)
    except UnknownName:
        return ""


async def check_unchanged(request: Request) -> None:
    """Refuses a change with an If-Match of an object that has changed since: 412. What has none takes no thread, which may all wait for the database."""
    asked, name = request.headers.get("if-match"), request.path_params.get("name")
    kind = request.url.path.split("/")[3:4]
    if asked is None or name is None or not kind or kind[0] not in TAGGED or request.method in ("GET", "HEAD"):
        return
    found = await run_in_threadpool(current_tag, request, kind[0], name)
    if not found or asked.strip('"') not in (found, "*"):
        raise HTTPException(412, f"{kind[0].removesuffix('s')} {name!r} has changed since; look at it again")


class AnswerTags:
    """Gives every JSON answer to a GET a tag of its content, and answers 304 to who has it already."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request."""
        if scope["type"] != "http" or scope["method"] != "GET" or not scope["path"].startswith("/api/"):
            await self.app(scope, receive, send)
            return
        answer = _TaggedAnswer(send, dict(scope["headers"]).get(b"if-none-match", b""))
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
        tag = f'"{hashlib.sha256(self._body).hexdigest()[:16]}"'.encode()
        headers = [*start["headers"], (b"etag", tag)]
        if tag in [part.strip() for part in self._known.split(b",")]:
            left = [(name, value) for name, value in headers if name not in (b"content-length", b"content-type")]
            await self._send({**start, "status": 304, "headers": left})
            await self._send({"type": "http.response.body", "body": b""})
        else:
            await self._send({**start, "headers": headers})
            await self._send({"type": "http.response.body", "body": self._body})


def _wants_tag(start: Message) -> bool:
    headers = dict(start["headers"])
    return start["status"] == 200 and headers.get(b"content-type") == b"application/json" and b"etag" not in headers
