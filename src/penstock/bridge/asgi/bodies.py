"""Bodies that come too slowly."""

from __future__ import annotations

import asyncio

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from penstock.bridge.answers import Refusal
from penstock.bridge.limits import Limits


class TimelyBody:
    """Refuses a request whose body does not come in time: 408, and the end of its connection."""

    def __init__(self, app: ASGIApp, limits: Limits) -> None:
        self.app, self.limits = app, limits

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request."""
        if scope["type"] == "http":
            receive = _timely(receive, self.limits.body_seconds(_length(scope)))
        await self.app(scope, receive, send)


def _timely(receive: Receive, seconds: float) -> Receive:
    deadline, is_read = asyncio.get_running_loop().time() + seconds, False

    async def timely() -> Message:
        nonlocal is_read
        if is_read:  # what is waited for now is the end of the connection
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            raise Refusal(408, "the body did not come in time", close=True) from None
        is_read = not message.get("more_body")
        return message

    return timely


def _length(scope: Scope) -> int:
    text = dict(scope["headers"]).get(b"content-length", b"0")
    return int(text) if len(text) < 12 and text.isdigit() else 0
