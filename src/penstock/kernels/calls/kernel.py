"""The kernel of `map_async`: calls of several chunks are under way at once, and what they return comes out when it is there."""

from __future__ import annotations

import asyncio
import contextlib
import copy
from collections import deque
from collections.abc import Callable, Iterator
from typing import ClassVar, cast

from penstock.graph.logic.calls import called_by, is_async
from penstock.graph.nodes import MapAsync, Node
from penstock.graph.nodes.base import label
from penstock.graph.times import Times
from penstock.kernels.base import Context, Kernel, Out, RecordFailed
from penstock.kernels.calls.attempts import Attempts, Function
from penstock.kernels.calls.loop import Call, CallLoop, LoopBlocked
from penstock.kernels.calls.reuse import LoopPool
from penstock.kernels.errors.guard import piece
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.records.records import BadRecord
from penstock.kernels.stateless import NO_RECORD, returns_none, shaped

PIECE = 1_000
"""Results that go on to the next step at a time."""
AHEAD = 16
"""Where order is kept: for each call that may be under way, so many results wait for a slow one before them."""
POOL = LoopPool()


class MapAsyncKernel(Kernel):
    """One record for each, by calls. They go on between two chunks; what is left is waited for when time moves."""

    node: MapAsync
    handles_errors = True
    loop_class: ClassVar[type[asyncio.AbstractEventLoop]] = asyncio.SelectorEventLoop
    """Timeouts and pauses are measured by the clock of this loop; tests put in one that need not wait."""

    def __init__(self, node: Node) -> None:
        super().__init__(node)
        one = len(node.output().schema.fields) == 1
        self.refuses_none = one and not returns_none(cast("Callable[..., object]", called_by(self.node.function)))
        self.calls: CallLoop | None = None
        self.waiting: deque[Call] = deque()
        """Where order is kept: calls whose results have not been emitted, in the order of their records."""
        self.held = 0
        """How many results have not been emitted, whether they are there or not."""

    def open(self, context: Context) -> None:
        """What the calls share is opened with the first record: many tasks of a live run have none."""
        self.reuses = context.reuses

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Starts a call for each record, and emits what is there when the last one has been started."""
        calls = self._started()
        made = [Call(row, chunk, at) for at, row in enumerate(chunk.walk())]
        if self.node.ordered_output:
            self.waiting.extend(made)
        calls.submit(made)
        self.held += len(made)
        yield from self._emitted(calls, self.node.concurrency)

    def advance(self, times: Times) -> Out:
        """Waits for all calls, and emits their results."""
        super().advance(times)
        if self.calls is not None:
            yield from self._emitted(self.calls, 0)

    def _emitted(self, calls: CallLoop, most: int) -> Iterator[tuple[str, Chunk]]:
        """What comes out until at most so many calls are open and no more results than that need are held back."""
        limit = AHEAD * most

        def is_wanted() -> bool:
            few = calls.open <= most and (self.held <= limit or self._is_next_done(calls))
            return few or len(calls.finished) >= PIECE

        while calls.open > most or self.held > limit:
            for some in self._pieces(self._wait(calls, is_wanted)):
                self.held -= len(some)
                yield from self._shaped(some)

    def _is_next_done(self, calls: CallLoop) -> bool:
        return self.waiting[0].is_done if self.node.ordered_output else bool(calls.finished)

    def _wait(self, calls: CallLoop, condition: Callable[[], bool]) -> list[Call]:
        try:
            return calls.wait(condition)
        except LoopBlocked as error:
            raise RecordFailed(self.node, f"one of {calls.open} whose calls are open", None, error) from error

    def _pieces(self, finished: list[Call]) -> Iterator[list[Call]]:
        if self.node.ordered_output:
            finished = []
            while self.waiting and self.waiting[0].is_done:
                finished.append(self.waiting.popleft())
        for at in range(0, len(finished), PIECE):
            yield finished[at : at + PIECE]

    def _shaped(self, calls: list[Call]) -> Iterator[tuple[str, Chunk]]:
        """The results as records; one that does not fit the schema is put aside as one whose call failed."""
        good = [call for call in calls if self._is_good(call)]
        while good:
            try:
                yield "out", shaped(self, "out", [call.result for call in good])
                return
            except RecordFailed as failed:
                self._give_up(good.pop(failed.at or 0), failed.error)

    def _is_good(self, call: Call) -> bool:
        error: Exception | None = call.error
        if error is None and call.result is None and self.refuses_none:
            error = BadRecord(NO_RECORD, 0)
        if error is not None:
            self._give_up(call, error)
        return error is None

    def _give_up(self, call: Call, error: BaseException) -> None:
        failed = RecordFailed(self.node, call.row, None, error)
        if self.guard is None:
            raise failed from error
        self.guard.give_up(self, piece(call.chunk, call.at, call.at + 1), 0, failed)

    def _started(self) -> CallLoop:
        if self.calls is None:
            self.calls = POOL.take(self.node) if self.reuses else None
        if self.calls is None:
            self.calls = self._opened()
        return self.calls

    def _opened(self) -> CallLoop:
        shared = copy.copy(self.node.function)
        made = CallLoop(lambda: self._attempts(shared), self.node.concurrency, self.loop_class)
        try:
            made.start(shared)
        except Exception as error:
            with contextlib.suppress(Exception):
                made.stop()
            raise RecordFailed(self.node, "none: it was on_open that failed", None, error) from error
        return made

    def _attempts(self, shared: object) -> Attempts:
        node = self.node
        return Attempts(
            cast("Function", called_by(shared)),
            label(node.function),
            not is_async(shared),
            node.tries,
            node.timeout / 1_000_000,
            node.pause / 1_000_000,
            2 * node.concurrency,
        )

    def close(self) -> None:
        """Closes what the calls share, or keeps it for the next task of this process."""
        calls, self.calls = self.calls, None
        if calls is None:
            return
        if self.reuses:
            POOL.put(self.node, calls)
            return
        try:
            calls.stop()
        except Exception as error:
            raise RecordFailed(self.node, "none: it was on_close that failed", None, error) from error

    def abandon(self) -> None:
        """Cancels what is under way."""
        calls, self.calls = self.calls, None
        if calls is not None:
            with contextlib.suppress(Exception):
                calls.stop()
