"""Who may ask, before any route is reached: the host that was meant, the page that asks, the token that is shown."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.bridge.guard import loopback
from penstock.jobs.manager.access import Identity, Right, Tokens
from penstock.server.problems import problem

LARGEST_BODY = 65 << 20
_HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"x-frame-options": b"DENY",
    b"referrer-policy": b"no-referrer",
    b"cache-control": b"no-store",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",
}


class Gate:
    """Refuses requests, before their bodies are read, that were meant for another host (a page that has its own name point here), that pages
    send, that are too large, or that show no token that holds. Only the paths in `public` need none.
    """

    def __init__(self, app: ASGIApp, tokens: Tokens, hosts: tuple[str, ...], public: frozenset[str]) -> None:
        self.app, self.tokens, self.hosts, self.public = app, tokens, hosts, public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request pass, or answers it."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        answer = self._refusal(headers) or await self._identify(scope, headers)
        if answer is not None:
            await answer(scope, receive, _with_headers(send))
            return
        await self.app(scope, receive, _with_headers(send))

    async def _identify(self, scope: Scope, headers: dict[str, str]) -> JSONResponse | None:
        """Puts who asks into the scope of the request; the answer for one who is nobody."""
        if scope["path"] in self.public:
            return None
        kind, _, token = headers.get("authorization", "").partition(" ")
        found = await run_in_threadpool(self.tokens.identity, token.strip()) if kind.lower() == "bearer" else None
        if found is None:
            return problem(401, "a token is needed: Authorization: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        scope["identity"] = found
        return None

    def _refusal(self, headers: dict[str, str]) -> JSONResponse | None:
        name = _name_of(headers.get("host", ""))
        if not (loopback(name) or name in self.hosts):
            return problem(421, f"this server does not answer for {name[:80]!r}; start it with --name to have it do so")
        if "origin" in headers and _name_of(headers["origin"].partition("://")[2]) != name:
            return problem(403, "requests of other web pages are not taken")
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST_BODY:
            return problem(413, f"a request has at most {LARGEST_BODY:,} bytes")
        if "transfer-encoding" in headers:
            return problem(411, "say how long the body is with Content-Length")
        return None


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


def identity(request: Request) -> Identity:
    """Who asks, as the gate has found out."""
    found: Identity = request.scope["identity"]
    return found


def with_right(right: Right) -> Callable[[Identity], Identity]:
    """Who asks, if the role has a right; 403 otherwise."""

    def check(found: Annotated[Identity, Depends(identity)]) -> Identity:
        if not found.may(right):
            raise HTTPException(403, f"the role {found.role} may not {right}")
        return found

    return check


Viewer = Annotated[Identity, Depends(with_right("look"))]
Submitter = Annotated[Identity, Depends(with_right("submit"))]
Administrator = Annotated[Identity, Depends(with_right("administer"))]
Known = Annotated[Identity, Depends(identity)]
