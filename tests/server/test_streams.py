"""Streams are counted while they are open, and no longer, however they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from fastapi import HTTPException
from starlette.types import Message

from penstock.server.routes.live import MOST_OF_ONE, EventStream, Streams

SCOPE = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}}


async def events() -> AsyncIterator[str]:
    yield "event: job\n\n"
    await asyncio.sleep(600)


async def opened_and_left(opened: Streams) -> None:
    """As by a browser that goes before the first event."""

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        await asyncio.sleep(0)

    opened.enter("ada")
    await EventStream(events(), lambda: opened.leave("ada"))(SCOPE, receive, send)


def test_a_browser_that_goes_at_once_leaves_no_stream_open() -> None:
    opened = Streams()
    for _ in range(MOST_OF_ONE + 1):
        asyncio.run(opened_and_left(opened))
    assert opened.by_owner.total() == 0


def test_one_more_than_there_may_be_is_refused() -> None:
    opened = Streams()
    for _ in range(MOST_OF_ONE):
        opened.enter("ada")
    with pytest.raises(HTTPException, match="too many streams"):
        opened.enter("ada")
    opened.leave("ada")
    opened.enter("ada")
