"""From the event loop to the log: what waits is appended together, one write and one fsync for each partition."""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count

from penstock.bridge.limits import Limits, Room
from penstock.bridge.records import BadInput, Submission
from penstock.bridge.seen import Known, KnownKeys
from penstock.bridge.sorting import PendingBatch, RequestSorter, StoredRecords, WaitingRequest
from penstock.log import Log

_GROUP_BYTES = 8 << 20


class Closing(Exception):
    """The bridge takes nothing more."""


class Intake:
    """Stores requests in a topic. `put` is for the event loop; a thread of its own does the appends. What finds the keys of the newest records may
    be another thread, which then names the loop; `room` is shared with other topics.
    """

    def __init__(
        self,
        log: Log,
        topic: str,
        limits: Limits,
        room: Room | None = None,
        loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        self.topic, self.limits, self.room = topic, limits, room or Room(limits)
        self.compacted = log.describe(topic).config.cleanup == "compact"
        self.count = 0
        self.failing: Exception | None = None
        self._partitions = len(log.offsets(topic))
        self._seen = KnownKeys(self._partitions, limits.remember)
        self._seen.load(log, topic)
        self._producer = log.producer()
        self._turn = count()
        self._queue: deque[WaitingRequest] = deque()
        self._change = threading.Condition()
        self._closing = False
        self._loop = loop or asyncio.get_running_loop()
        self._ended = asyncio.Event()
        threading.Thread(target=self._run, name="penstock-bridge", daemon=True).start()

    async def put(self, given: Submission) -> list[StoredRecords]:
        """Store a request; on disk on return."""
        if self._closing:
            raise Closing
        if self.compacted and (given.keys is None or None in given.keys):
            raise BadInput(f"topic {self.topic!r} is compacted, so every record needs a key")
        waiting = WaitingRequest(given, self._loop.create_future())
        self.room.take(1, given.size)
        with self._change:
            self._queue.append(waiting)
            self._change.notify()
        return await waiting.answer

    async def close(self, seconds: float) -> bool:
        """Store what waits and end; whether that was done in time."""
        with self._change:
            self._closing = True
            self._change.notify()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._ended.wait(), seconds)
        return self._ended.is_set()

    def _run(self) -> None:
        while group := self._next():
            self._commit(group)
            self._tell(partial(self._settle, group))
        self._tell(self._ended.set)

    def _tell(self, what: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop has gone, and with it everybody who waits
            self._loop.call_soon_threadsafe(what)

    def _next(self) -> list[WaitingRequest]:
        """What waits, up to a fair amount; nothing when all is done and the bridge ends."""
        with self._change:
            self._change.wait_for(lambda: self._queue or self._closing)
            group: list[WaitingRequest] = []
            size = 0
            while self._queue and size < _GROUP_BYTES:
                group.append(self._queue.popleft())
                size += group[-1].given.size
            return group

    def _settle(self, group: list[WaitingRequest]) -> None:
        for waiting in group:
            self.room.give(1, waiting.given.size)
            waiting.settle()

    def _commit(self, group: list[WaitingRequest]) -> None:
        """Append what the requests of a group brought; each partition is one batch, of which all is there or nothing."""
        try:
            sorting = RequestSorter(self._seen, self._partitions, next(self._turn) % self._partitions)
            for waiting in group:
                sorting.add(waiting)
            for partition, batch in sorted(sorting.pending.items()):
                self._append(partition, batch)
        except Exception as error:
            self.failing = error
            for waiting in group:
                waiting.error = waiting.error or error

    def _append(self, partition: int, batch: PendingBatch) -> None:
        headers = batch.headers if any(batch.headers) else None
        try:
            done = self._producer.send_many(self.topic, batch.values, batch.keys, headers, partition=partition)[0]
        except Exception as error:
            self.failing = error
            for share, _, _ in batch.shares:
                share.error = error
            return
        self.failing = None
        self.count += done.records
        for share, at, given in batch.shares:
            share.offset = done.offset + at
            if given.ident:
                self._seen.put(given.ident, partition, Known(share.offset, given.digest))
