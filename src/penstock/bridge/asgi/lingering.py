"""The last answer on a connection reaches a client that is still sending."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from starlette.types import ASGIApp, Message, Receive, Scope, Send

_SECONDS = 1.0


class LingeringClose:
    """Reads for a moment what a client still sends of a body that nobody wants, before the connection ends: closing over it would take the answer
    away from the client.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        answer = _Answer(scope, receive, send)
        await self.app(scope, answer.receive, answer.send)


class _Answer:
    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._receive, self._send = receive, send
        self._waits_for_word = any(name == b"expect" for name, _ in scope["headers"])
        self._is_read = self._is_last = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._is_read = message["type"] != "http.request" or not message.get("more_body")
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._is_last = (b"connection", b"close") in [(n.lower(), v.lower()) for n, v in message["headers"]]
        is_end = message["type"] == "http.response.body" and not message.get("more_body")
        if not is_end or not self._is_last or self._is_read or self._waits_for_word:
            await self._send(message)
            return
        await self._send({**message, "more_body": True})
        await self._drain()
        await self._send({"type": "http.response.body", "body": b""})

    async def _drain(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_SECONDS):
                while not self._is_read:
                    await self.receive()
