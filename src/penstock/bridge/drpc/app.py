"""The server of calls: GET /drpc/FUNCTION/ARGS, or POST /drpc/FUNCTION with the arguments as its body."""

from __future__ import annotations

import asyncio
import socket

import uvicorn
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from penstock.bridge.answers import Refusal
from penstock.bridge.asgi.bodies import TimelyBody
from penstock.bridge.asgi.lingering import LingeringClose
from penstock.bridge.asgi.protocol import Connections
from penstock.bridge.asgi.server import bounded_config
from penstock.bridge.asgi.trust import check_sender
from penstock.bridge.drpc.calls import Calls, Refused, late
from penstock.bridge.guard import Guard
from penstock.bridge.limits import Limits
from penstock.errors import CallError, FlowError

LIMITS = Limits()


def serve_calls(calls: Calls, guard: Guard, listening: socket.socket) -> None:
    """Serves calls at a socket until SIGTERM or Ctrl-C."""
    config = bounded_config(application(calls, guard), Connections(LIMITS), log_level="warning")
    uvicorn.Server(config).run(sockets=[listening])


def application(calls: Calls, guard: Guard) -> Starlette:
    """The server as an ASGI application."""
    door = _Door(calls, guard)
    paths = ("/drpc/{function}", "/drpc/{function}/", "/drpc/{function}/{args:path}")
    routes = [Route(path, door.call, methods=["GET", "POST"]) for path in paths]
    bounds = [Middleware(LingeringClose), Middleware(TimelyBody, limits=LIMITS)]
    return Starlette(routes=[Route("/health", door.health), *routes], middleware=bounds)


class _Door:
    """Takes calls by HTTP."""

    def __init__(self, calls: Calls, guard: Guard) -> None:
        self.calls, self.guard = calls, guard

    async def health(self, request: Request) -> Response:
        """Whether the server takes calls."""
        return PlainTextResponse("ok")

    async def call(self, request: Request) -> Response:
        """One call and its answer."""
        try:
            check_sender(self.guard, request.headers, "calls")
            args = await self._args(request)
            return PlainTextResponse(await self._result(request.path_params["function"], args))
        except Refusal as error:
            return PlainTextResponse(error.detail, error.status_code, error.headers)
        except ClientDisconnect:
            return PlainTextResponse("", 400)  # nobody reads it
        except Refused as error:
            return PlainTextResponse(str(error), error.status, {"Connection": "close"} if error.status == 413 else {})
        except FlowError as error:
            return PlainTextResponse(str(error), 404)
        except CallError as error:
            return PlainTextResponse(str(error), 500)

    async def _args(self, request: Request) -> str:
        """The arguments: of a POST its body, else the rest of the path."""
        if request.method != "POST":
            return str(request.path_params.get("args", ""))
        most, body = self.calls.limits.args, bytearray()
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
