"""The HTTP bridge: POST /topics/TOPIC puts records into the log, and is answered when they are on disk."""

from __future__ import annotations

from collections import Counter
from time import monotonic

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from penstock.bridge.answers import Refusal
from penstock.bridge.asgi.bodies import TimelyBody
from penstock.bridge.asgi.lingering import LingeringClose
from penstock.bridge.asgi.protocol import HEAD
from penstock.bridge.asgi.server import LoopServer
from penstock.bridge.asgi.trust import check_sender
from penstock.bridge.guard import Guard
from penstock.bridge.intake import Intake
from penstock.bridge.limits import Limits
from penstock.bridge.listening import listening_socket
from penstock.bridge.request_format import RequestFormat
from penstock.bridge.taking import RecordTaker, answer, refused
from penstock.log import Log

_CLOSE = 2.0
_MOST_HEADERS = 100
_ONCE = frozenset(
    {b"content-length", b"host", b"authorization", b"idempotency-key", b"content-type", b"transfer-encoding"}
)


class HttpBridge:
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
        self.limits = limits or Limits()
        self.topic, self.path, self.guard = topic, f"/topics/{topic}", guard or Guard()
        self.intake = Intake(log, topic, self.limits)
        self.stopping = False
        self.address: tuple[str, int] = ("", 0)
        self._taker = RecordTaker(self.limits, taking or RequestFormat(), lambda: self.stopping)
        self._server = LoopServer(self._application(), self.limits)

    @property
    def connections(self) -> int:
        """How many connections are open."""
        return self._server.connections

    async def start(self, host: str, port: int) -> None:
        """Begin to listen; `address` then says where."""
        listening = listening_socket(host, port)
        self.address = listening.getsockname()[:2]
        await self._server.start(listening)

    async def stop(self, seconds: float = 9.0) -> bool:
        """Take nothing new, finish and answer what was taken, and close; whether that was done in time."""
        deadline = monotonic() + seconds
        self.stopping = True
        await self._server.stop(max(seconds - _CLOSE, 0.0))
        return await self.intake.close(max(deadline - monotonic(), 0.0))

    def _application(self) -> Starlette:
        return Starlette(
            routes=[
                Route("/health", self._health, methods=["GET"]),
                Route(self.path, self._take, methods=["POST"]),
            ],
            middleware=[
                Middleware(LingeringClose),
                Middleware(TimelyBody, limits=self.limits),
                Middleware(_Admission, guard=self.guard),
            ],
            exception_handlers={HTTPException: self._refused, ClientDisconnect: _gone},
        )

    async def _take(self, request: Request) -> Response:
        return await self._taker.take(request, self.intake)

    async def _health(self, request: Request) -> Response:
        if self.stopping:
            return answer(503, {"status": "stopping"}, close=True)
        if self.intake.failing is not None:
            return answer(503, {"status": "the log cannot be written"})
        return answer(200, {"status": "ok"})

    async def _refused(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        if isinstance(error, Refusal):
            return await refused(request, error)
        if error.status_code == 404:
            return await refused(request, Refusal(404, f"records go to POST {self.path}"))
        allowed = "GET" if request.url.path == "/health" else "POST"
        text = f"{request.url.path} takes {allowed}"
        return await refused(request, Refusal(error.status_code, text, close=True, headers={"Allow": allowed}))


async def _gone(request: Request, error: Exception) -> Response:
    return Response(status_code=400)  # nobody reads it


class _Admission:
    """Refuses, before any body is read, requests that can be understood in two ways, and those of who may not hand in records."""

    def __init__(self, app: ASGIApp, guard: Guard) -> None:
        self.app, self.guard = app, guard

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Lets a request pass, or answers it."""
        try:
            check_head(scope)
            if scope["path"] != "/health":
                check_sender(self.guard, Request(scope).headers, "records")
        except Refusal as error:
            await (await refused(Request(scope, receive), error))(scope, receive, send)
        else:
            await self.app(scope, receive, send)


def check_head(scope: Scope) -> None:
    """Refuses a head that is too large, of another version of HTTP, or has a header twice that stands for one thing.

    >>> check_head({"http_version": "1.1", "raw_path": b"/", "headers": [(b"host", b"x")]})
    """
    headers = scope["headers"]
    if not scope["http_version"].startswith("1."):
        raise Refusal(505, "HTTP/1.1 is spoken here", close=True)
    if len(headers) > _MOST_HEADERS:
        raise Refusal(431, f"a request has at most {_MOST_HEADERS} headers", close=True)
    if len(scope["raw_path"]) + sum(len(name) + len(value) + 4 for name, value in headers) > HEAD:
        raise Refusal(431, f"the head of a request has at most {HEAD} bytes", close=True)
    for name, many in Counter(name for name, _ in headers).items():
        if many > 1 and name in _ONCE:
            raise Refusal(400, f"got the header {name.decode()} twice", close=True)
