"""The server of calls: GET /drpc/FUNCTION/ARGS, or POST /drpc/FUNCTION with the arguments as its body."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from penstock.bridge.drpc.calls import Calls, Refused, late
from penstock.bridge.guard import Guard
from penstock.errors import CallError, FlowError, SetupError

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response


def application(calls: Calls, guard: Guard) -> Starlette:
    """The server as an ASGI application.

    Raises:
        SetupError: Starlette is not installed.
    """
    try:
        from starlette.applications import Starlette
        from starlette.routing import Route
    except ImportError:
        raise SetupError("the server of calls needs Starlette and uvicorn: pip install 'penstock[server]'") from None
    door = _Door(calls, guard)
    paths = ("/drpc/{function}", "/drpc/{function}/", "/drpc/{function}/{args:path}")
    routes = [Route(path, door.call, methods=["GET", "POST"]) for path in paths]
    return Starlette(routes=[Route("/health", door.health), *routes])


class _Door:
    """Takes calls by HTTP."""

    def __init__(self, calls: Calls, guard: Guard) -> None:
        self.calls, self.guard = calls, guard

    async def health(self, request: Request) -> Response:
        """Whether the server takes calls."""
        return _answer(200, "ok")

    async def call(self, request: Request) -> Response:
        """One call and its answer."""
        try:
            self._trust(request)
            args = await self._args(request)
            return _answer(200, await self._result(request.path_params["function"], args))
        except Refused as error:
            return _answer(error.status, str(error))
        except FlowError as error:
            return _answer(404, str(error))
        except CallError as error:
            return _answer(500, str(error))

    def _trust(self, request: Request) -> None:
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        if self.guard.asks and not (kind.lower() == "bearer" and self.guard.knows(token.strip())):
            raise Refused(401, "a token is needed: Authorization: Bearer TOKEN")
        if "origin" in request.headers or not self.guard.trusts_host(request.headers.get("host", "localhost")):
            raise Refused(403, "calls are not taken from web pages")

    async def _args(self, request: Request) -> str:
        """The arguments: of a POST its body, else the rest of the path."""
        if request.method != "POST":
            return str(request.path_params.get("args", ""))
        most, body = self.calls.limits.args, b""
        async for piece in request.stream():
            body += piece
            if len(body) > most:
                raise Refused(413, f"expected arguments of at most {most} bytes, got more")
        try:
            return body.decode()
        except UnicodeDecodeError:
            raise Refused(400, "expected arguments as UTF-8 text, got other bytes") from None

    async def _result(self, function: str, args: str) -> str:
        loop = asyncio.get_running_loop()
        request, answer = await loop.run_in_executor(None, self.calls.start, function, args)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(answer), self.calls.limits.timeout)
        except TimeoutError:
            raise Refused(504, late(function, self.calls.limits.timeout)) from None
        finally:
            self.calls.forget(function, request)


def _answer(status: int, text: str) -> Response:
    from starlette.responses import PlainTextResponse

    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return PlainTextResponse(text, status, headers)
