"""One record's calls: with a timeout, tried again after pauses that grow, until there is a result or no try is left."""

from __future__ import annotations

import asyncio
import inspect
import random
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import cast

from penstock.graph.duration import shown

LONGEST_PAUSE = 60.0
"""Pauses do not grow beyond this, in seconds."""
Function = Callable[[object], object]


class CallFailed(Exception):
    """A record's calls have all failed; the message has the function, how many there were, and the last error."""


class NoAnswer(TimeoutError):
    """A call took longer than its timeout."""


@dataclass
class Attempts:
    """How the function of a step is called for a record.

    A call that goes on after its timeout, because it ignores that it was cancelled or is a thread that hangs, is left behind. `most`
    bounds the calls that are under way or left behind; one more waits for one of them, within its own timeout.
    """

    function: Function
    label: str
    threaded: bool
    tries: int
    timeout: float
    pause: float
    most: int
    roll: Callable[[], float] = random.random
    under_way: set[asyncio.Future[object]] = field(default_factory=set)
    room: asyncio.Event = field(default_factory=asyncio.Event)

    async def result_of(self, row: object) -> object:
        """What the function returns for a record.

        Raises:
            CallFailed: no try is left.
        """
        for nth in range(self.tries):
            if nth:
                await asyncio.sleep(self.pause_before(nth))
            try:
                return await self._once(row)
            except Exception as error:
                last = error
        many = "1 attempt" if self.tries == 1 else f"{self.tries} attempts"
        text = f"{type(last).__name__}: {last}" if str(last) else type(last).__name__
        raise CallFailed(f"{self.label} failed after {many}: {text}").with_traceback(last.__traceback__) from last

    def pause_before(self, nth: int) -> float:
        """The pause before the retry number `nth`: it doubles, and a random half of it keeps retries apart from each other."""
        return min(self.pause * 2.0 ** (nth - 1), LONGEST_PAUSE) * (0.5 + self.roll() / 2)

    async def _once(self, row: object) -> object:
        """One call. Whatever it does, this returns or raises within the timeout."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self.timeout
        while len(self.under_way) >= self.most:
            await self._room(until - loop.time())
        call = loop.create_task(self._called(row))
        self.under_way.add(call)
        call.add_done_callback(self._ended)
        await asyncio.wait((call,), timeout=until - loop.time())
        if call.cancelled():
            raise RuntimeError("the call cancelled itself")
        if call.done():
            return call.result()
        call.cancel()
        raise NoAnswer(f"no answer within {shown(round(self.timeout * 1_000_000))}")

    async def _room(self, seconds: float) -> None:
        self.room.clear()
        try:
            await asyncio.wait_for(self.room.wait(), seconds)
        except TimeoutError:
            raise NoAnswer(
                f"{self.most} calls hang although their timeout has passed, so this one was not made"
            ) from None

    def _ended(self, call: asyncio.Future[object]) -> None:
        self.under_way.discard(call)
        self.room.set()
        if not call.cancelled():
            call.exception()  # one that was left behind may fail without a word

    async def _called(self, row: object) -> object:
        try:
            made = await _in_thread(self.function, row) if self.threaded else self.function(row)
            return await cast("Awaitable[object]", made) if inspect.isawaitable(made) else made
        except (KeyboardInterrupt, SystemExit) as error:  # would end the loop, and every other call with it
            raise RuntimeError(f"the function raised {type(error).__name__}") from error


async def _in_thread(function: Function, row: object) -> object:
    """Calls a plain function in a thread of its own, which does not hold up the end of the process should it hang."""
    answer: Future[object] = Future()
    answer.set_running_or_notify_cancel()
    threading.Thread(target=_answer, args=(answer, function, row), name="penstock-call", daemon=True).start()
    waiting = asyncio.wrap_future(answer)
    try:
        return await asyncio.shield(waiting)
    except asyncio.CancelledError:
        await asyncio.wait((waiting,))  # a thread cannot be cancelled: the call counts until it returns
        raise


def _answer(answer: Future[object], function: Function, row: object) -> None:
    try:
        made = function(row)
    except Exception as error:
        stopped = isinstance(error, StopIteration)  # which no future may hold
        answer.set_exception(RuntimeError("the function raised StopIteration") if stopped else error)
    except BaseException as error:
        answer.set_exception(RuntimeError(f"the function raised {type(error).__name__}"))
    else:
        answer.set_result(made)
