"""Who may ask, before any route is reached: the host that was meant, the page that asks, the token that is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.bridge.guard import loopback
from penstock.errors import SetupError
from penstock.jobs.manager.access.sessions import Sessions
from penstock.jobs.manager.access.tokens import Identity, Right, Tokens
from penstock.server.problems import problem

LARGEST_BODY = 65 << 20
LARGEST_JSON = 8 << 20
"""Of what is no bundle and no records: it is read into objects before it is known what may be done with it."""
LARGEST_PUBLIC_BODY = 4 << 10
"""Who shows no token may not send more."""
COOKIE = "penstock_session"
CONSOLE_HEADER = "x-penstock-console"
"""Changes that a session makes bear this header: no form and no page of another origin can send it."""
_SAFE = ("GET", "HEAD")
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
    b"cross-origin-opener-policy": b"same-origin",
    b"cross-origin-resource-policy": b"same-origin",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}
Public = Callable[[str, str], bool]
"""Whether a method and a path are answered without a token."""


@dataclass(frozen=True)
class Credential:
    """What a request shows: a token, or the session of a browser."""

    text: str
    is_session: bool

    @classmethod
    def of(cls, headers: Mapping[str, str]) -> Credential | None:
        """What stands in the headers of a request; a token goes before a session."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer":
            return cls(token.strip(), False)
        session = cookies_of(headers.get("cookie", "")).get(COOKIE)
        return cls(session, True) if session else None

    def identity(self, tokens: Tokens, sessions: Sessions) -> Identity | None:
        """Who it stands for; None when it does not hold."""
        return sessions.identity(self.text) if self.is_session else tokens.identity(self.text)


def cookies_of(header: str) -> dict[str, str]:
    """The cookies in a header.

    >>> cookies_of("a=1; b=2")
    {'a': '1', 'b': '2'}
    """
    return {name.strip(): value for name, _, value in (part.partition("=") for part in header.split(";")) if value}


class Gate:
    """Refuses requests, before their bodies are read, that were meant for another host (a page that has its own name point here), that pages
    send, that are too large, or that show no token and no session that holds. Only what `is_public` needs none.
    """

    def __init__(
        self, app: ASGIApp, tokens: Tokens, sessions: Sessions, hosts: tuple[str, ...], is_public: Public
    ) -> None:
        self.app, self.tokens, self.sessions, self.hosts, self.is_public = app, tokens, sessions, hosts, is_public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request pass, or answers it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        is_public = self.is_public(scope["method"], scope["path"])
        answer = self._refusal(headers, LARGEST_PUBLIC_BODY if is_public else largest_body(scope["path"]))
        if answer is None and not is_public:
            answer = await self._identified(scope, headers)
        if answer is not None:
            await answer(scope, receive, _with_headers(send))
            return
        await self.app(scope, receive, _with_headers(send))

    async def _identified(self, scope: Scope, headers: dict[str, str]) -> JSONResponse | None:
        try:
            return await self._identify(scope, headers)
        except SetupError:  # who asks is not known yet, so what is wrong stands in the log alone
            return problem(503, "the database of jobs does not answer; jobs that run are not touched")

    async def _identify(self, scope: Scope, headers: dict[str, str]) -> JSONResponse | None:
        """Puts who asks into the scope of the request; the answer for one who is nobody."""
        shown = Credential.of(headers)
        found = await run_in_threadpool(shown.identity, self.tokens, self.sessions) if shown is not None else None
        if shown is None or found is None:
            text = "this token or session is unknown, has ended or was revoked"
            needed = "a token is needed: Authorization: Bearer TOKEN" if shown is None else text
            return problem(401, needed, {"WWW-Authenticate": "Bearer"})
        if shown.is_session and not _is_of_console(scope["method"], headers):
            return problem(403, "a session takes requests of the console alone")
        scope["identity"], scope["credential"] = found, shown
        return None

    def _refusal(self, headers: dict[str, str], largest: int) -> JSONResponse | None:
        host = headers.get("host", "")
        name = _name_of(host)
        if not (loopback(name) or name in self.hosts):
            return problem(421, f"this server does not answer for {name[:80]!r}; start it with --name to have it do so")
        if "origin" in headers and headers["origin"].partition("://")[2] != host:
            return problem(403, "requests of other web pages are not taken")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > largest:
            return problem(413, f"a request has at most {largest:,} bytes")
        if "transfer-encoding" in headers:
            return problem(411, "say how long the body is with Content-Length")
        return None


def largest_body(path: str) -> int:
    """How many bytes a request to a path may have.

    >>> largest_body("/api/v1/bundles") > largest_body("/api/v1/jobs")
    True
    """
    is_large = path.endswith("/bundles") or path.startswith("/api/v1/topics/")
    return LARGEST_BODY if is_large else LARGEST_JSON


def _is_of_console(method: str, headers: dict[str, str]) -> bool:
    """Whether a request with a session was sent by our own page: by the word of the browser, and for a change by a header that others cannot send."""
    is_same = headers.get("sec-fetch-site", "same-origin") == "same-origin"
    return is_same and (method in _SAFE or headers.get(CONSOLE_HEADER) == "1")


def _with_headers(send: Send) -> Send:
    async def sent(message: object) -> None:
        found: dict[str, object] = message  # type: ignore[assignment]  # as ASGI has it
        if found["type"] == "http.response.start":
            own: list[tuple[bytes, bytes]] = list(found.get("headers", []))  # type: ignore[call-overload]
            taken = {name.lower() for name, _ in own}
            found["headers"] = [*own, *((n, v) for n, v in _HEADERS.items() if n not in taken)]
        await send(found)

    return sent


def _name_of(host: str) -> str:
    """The name in a Host header, without the port.

    >>> _name_of("localhost:8880"), _name_of("[::1]:80"), _name_of("example.org")
    ('localhost', '[::1]', 'example.org')
    """
    name, _, port = host.rpartition(":")
    return name if name and port.isdecimal() else host


def asker_of(request: Request) -> Identity:
    """Who asks, as the gate has found out."""
    found: Identity = request.scope["identity"]
    return found


async def identity(request: Request) -> Identity:
    """Who asks, for routes; it takes no thread."""
    return asker_of(request)


def with_right(right: Right) -> Callable[[Identity], Awaitable[Identity]]:
    """Who asks, if the role has a right; 403 otherwise."""

    async def check(found: Annotated[Identity, Depends(identity)]) -> Identity:
        if not found.may(right):
            raise HTTPException(403, f"the role {found.role} may not {right}")
        return found

    return check


Viewer = Annotated[Identity, Depends(with_right("look"))]
Operator = Annotated[Identity, Depends(with_right("operate"))]
Submitter = Annotated[Identity, Depends(with_right("submit"))]
Administrator = Annotated[Identity, Depends(with_right("administer"))]
Known = Annotated[Identity, Depends(identity)]
