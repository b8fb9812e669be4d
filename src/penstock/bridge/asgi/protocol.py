"""Connections of uvicorn with bounds: how many, how long one may rest, take for a head, or leave an answer unread.

What can be bounded in a request that has begun is bounded by the application; this is about what no application sees.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.bridge.answers import LATER, last_answer
from penstock.bridge.limits import Limits

HEAD = 32 << 10
"""The longest head of a request."""
_LINGER, _CLOSE = 1.0, 2.0
"""How long a client may still send when it is answered for the last time, and when the connection is cut at the latest."""


@dataclass
class Connections:
    """What the connections of a server share; `resting` has those without a request, the longest first, `opened` also those that are refused."""

    limits: Limits
    resting: dict[BoundedProtocol, float] = field(default_factory=dict)
    opened: set[BoundedProtocol] = field(default_factory=set)
    refused: int = 0

    async def abort(self) -> None:
        """Cuts all connections that are left."""
        for connection in self.opened:
            connection.transport.abort()
        while self.opened:
            await asyncio.sleep(0)

    def make_room(self) -> bool:
        """Closes the connection that has rested longest; false when none has rested long enough."""
        for connection, since in self.resting.items():
            if monotonic() - since < self.limits.crowded_seconds:
                return False
            del self.resting[connection]
            connection.transport.close()
            return True
        return False


class BoundedProtocol(H11Protocol):
    """One connection."""

    def __init__(self, shared: Connections, **given: Any) -> None:
        super().__init__(**given)
        self.shared, self.limits = shared, shared.limits
        self._patience: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._has_begun = self._is_refused = False

    @property
    def is_busy(self) -> bool:
        """Whether a request is under way."""
        return self.cycle is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Takes a connection in, or refuses it where there are too many."""
        super().connection_made(transport)
        self.shared.opened.add(self)
        _bound(transport, self.limits.piece(len(self.connections)))
        if len(self.connections) > self.limits.connections and not self.shared.make_room():
            self._refuse_connection()
        else:
            self._rest()

    def data_received(self, data: bytes) -> None:
        """What comes: of a head, which must end soon; of a body, which the application waits for; after the last answer, of nothing."""
        if self._is_refused:
            return
        is_left_over = self.conn.their_state is h11.SEND_BODY
        if not self.is_busy:
            self._begin()
        super().data_received(data)
        if self.is_busy:
            self._wait(None)
        elif is_left_over and self.conn.their_state is h11.IDLE:
            self._rest()

    def eof_received(self) -> bool:  # type: ignore[override]  # uvicorn never keeps a connection open
        """A client that sends nothing more still gets the answer to a request that is complete."""
        if not self.is_busy or self.cycle.more_body:
            return False
        self.cycle.keep_alive = False
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Forgets the connection."""
        self._wait(None)
        self.resume_writing()
        self.shared.resting.pop(self, None)
        self.shared.opened.discard(self)
        self.shared.refused -= self._is_refused
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """After an answer: the connection rests, unless the next request is here already."""
        super().on_response_complete()
        self._unset_keepalive_if_required()
        if self.transport.is_closing():
            self.loop.call_later(_CLOSE, self.transport.abort)
        elif not self.is_busy:
            self._rest()
            if self.conn.trailing_data[0]:
                self._begin()

    def send_400_response(self, msg: str) -> None:
        """The answer to what is not HTTP."""
        error = sys.exception()
        if getattr(error, "error_status_hint", 400) == 431:
            self._end(431, f"the head of a request has at most {HEAD} bytes")
        else:
            self._end(400, "the request is not HTTP as it should be")

    def pause_writing(self) -> None:
        """A client that leaves an answer unread is waited for, but not for ever."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.limits.write_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """It reads again."""
        super().resume_writing()
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _rest(self) -> None:
        self._has_begun = False
        self.shared.resting.pop(self, None)
        self.shared.resting[self] = monotonic()
        idle = self.limits.idle_seconds
        self._wait(self.loop.call_later(idle, self._give_up) if idle else None)

    def _begin(self) -> None:
        self.shared.resting.pop(self, None)
        if not self._has_begun:
            self._has_begun = True
            late = "the head of the request did not come in time"
            self._wait(self.loop.call_later(self.limits.head_seconds, self._end, 408, late))

    def _wait(self, timer: asyncio.TimerHandle | None) -> None:
        if self._patience is not None:
            self._patience.cancel()
        self._patience = timer
        self._has_begun = self._has_begun and timer is not None

    def _give_up(self) -> None:
        self.transport.close()
        self.loop.call_later(_CLOSE, self.transport.abort)

    def _refuse_connection(self) -> None:
        self.connections.discard(self)
        if self.shared.refused >= self.limits.connections:
            self.transport.abort()
        else:
            self._end(503, "too many connections; try again", LATER)

    def _end(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        """The last answer. What the client still sends is read for a moment: closing over it would take the answer away from it."""
        self._wait(None)
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE) and not self.is_busy:
            self.transport.write(last_answer(status, text, headers))
            self._is_refused = True
            self.shared.refused += 1
            with suppress(OSError):  # the client has gone
                if self.transport.can_write_eof():
                    self.transport.write_eof()
            self.loop.call_later(_LINGER, self._give_up)
        else:
            self._give_up()


def _bound(transport: asyncio.Transport, size: int) -> None:
    """Bounds what is read of a connection at once, and has the kernel find out when the other machine has gone."""
    if hasattr(transport, "max_size"):
        cast(Any, transport).max_size = size
    found = transport.get_extra_info("socket")
    if found is not None:
        with suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
