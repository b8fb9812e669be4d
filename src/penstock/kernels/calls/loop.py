"""An event loop in a thread of its own: calls go on while the pass reads, computes and writes."""

from __future__ import annotations

import asyncio
import inspect
import sys
import threading
import traceback
from collections import deque
from collections.abc import Awaitable, Callable
from concurrent.futures import TimeoutError as Overdue
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from penstock.graph.duration import shown
from penstock.graph.logic.calls import AsyncFunction
from penstock.kernels.calls.attempts import Attempts
from penstock.kernels.records.chunk import Chunk

_OTHERS = (str(Path(__file__).resolve().parents[2]), str(Path(asyncio.__file__).parent), threading.__file__)
"""Where the frames are that are not the user's."""
GRACE = 5.0
"""Seconds that closing may take beyond the timeout of a call."""


class LoopBlocked(Exception):
    """The event loop does not answer: a call blocks it. The message has where it stands."""


@dataclass(slots=True, eq=False)
class Call:
    """A record that a call is made for: the one at `at` of a chunk, and its result."""

    row: object
    chunk: Chunk
    at: int
    is_done: bool = False
    result: object = None
    error: Exception | None = None


class CallLoop:
    """Makes calls, at most `concurrency` at a time. `submit`, `wait` and `stop` are for the thread of the pass."""

    def __init__(
        self, attempts: Callable[[], Attempts], concurrency: int, new_loop: Callable[[], asyncio.AbstractEventLoop]
    ) -> None:
        self.make_attempts, self.concurrency, self.loop = attempts, concurrency, new_loop()
        self.waiting: deque[Call] = deque()
        self.tasks: set[asyncio.Task[None]] = set()
        self.open = 0
        self.finished: list[Call] = []
        self.changed = threading.Condition()
        self.is_awaited: Callable[[], bool] = _never
        self.is_open = self.is_blocked = False
        self.thread = threading.Thread(target=self._run, name="penstock-calls", daemon=True)

    def start(self, shared: object) -> None:
        """Starts the thread and opens what the calls share.

        Raises:
            Exception: whatever `on_open` raises.
        """
        self.shared = shared
        self.thread.start()
        self._on_loop(self._open())

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self.loop.run_until_complete(self._cancelled())
        finally:
            self.loop.close()

    async def _open(self) -> None:
        self.attempts = self.make_attempts()
        if isinstance(self.shared, AsyncFunction):
            await _awaited(self.shared.on_open())
        self.is_open = True

    def submit(self, calls: list[Call]) -> None:
        """Has calls made as soon as there is room for them."""
        with self.changed:
            self.open += len(calls)
        self.loop.call_soon_threadsafe(self._take, calls)

    def wait(self, condition: Callable[[], bool]) -> list[Call]:
        """Waits until a condition holds, and returns the calls that have finished since the last time.

        Raises:
            LoopBlocked: a call keeps the loop from all others.
        """
        with self.changed:
            self.is_awaited = condition
            while not condition():
                if not self.changed.wait(self.attempts.timeout):
                    self._check_alive()
            self.is_awaited = _never
            made, self.finished = self.finished, []
        return made

    def _take(self, calls: list[Call]) -> None:
        self.waiting.extend(calls)
        self._fill()

    def _fill(self) -> None:
        while self.waiting and len(self.tasks) < self.concurrency:
            task = self.loop.create_task(self._make(self.waiting.popleft()))
            self.tasks.add(task)
            task.add_done_callback(self._done)

    async def _make(self, call: Call) -> None:
        try:
            call.result = await self.attempts.result_of(call.row)
        except Exception as error:
            call.error = error
        call.is_done = True
        with self.changed:
            self.open -= 1
            self.finished.append(call)
            if self.is_awaited():
                self.changed.notify()

    def _done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self._fill()

    def _check_alive(self) -> None:
        """Asks the loop for a sign; the lock is let go meanwhile, since a call that ends needs it."""
        sign = threading.Event()
        self.loop.call_soon_threadsafe(sign.set)
        self.changed.release()
        try:
            answered = sign.wait(self.attempts.timeout)
        finally:
            self.changed.acquire()
        if not answered:
            self.is_blocked = True
            raise LoopBlocked(self._where())

    def _where(self) -> str:
        frame = sys._current_frames().get(self.thread.ident or 0)
        stack = [f for f in traceback.extract_stack(frame) if not f.filename.startswith(_OTHERS)] if frame else []
        return (
            f"{self.attempts.label} blocks the event loop: nothing moved for {shown(round(self.attempts.timeout * 1_000_000))}. Await what takes "
            f"time, or write a plain def, which gets a thread. It stands at\n{''.join(traceback.format_list(stack))}"
        )

    def _on_loop(self, work: Awaitable[None], seconds: float | None = None) -> None:
        asyncio.run_coroutine_threadsafe(_awaited(work), self.loop).result(seconds)

    def stop(self) -> None:
        """Cancels calls that are under way, closes what they share, and ends the thread; one that hangs is left behind.

        Raises:
            Exception: whatever `on_close` raises.
        """
        try:
            if not self.is_blocked:
                self._on_loop(self._close(), self.attempts.timeout + GRACE)
        except Overdue:
            self.is_blocked = True
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            if not self.is_blocked:
                self.thread.join(GRACE)

    async def _cancelled(self) -> None:
        """Cancels all calls, and waits a little for them to end."""
        self.waiting.clear()
        left = asyncio.all_tasks() - {cast("asyncio.Task[object]", asyncio.current_task())}
        for task in left:
            task.cancel()
        if left:
            await asyncio.wait(left, timeout=GRACE)

    async def _close(self) -> None:
        await self._cancelled()
        if self.is_open and isinstance(self.shared, AsyncFunction):
            await asyncio.wait_for(_awaited(self.shared.on_close()), self.attempts.timeout)


def _never() -> bool:
    return False


async def _awaited(work: object) -> None:
    if inspect.isawaitable(work):
        await cast("Awaitable[object]", work)
