"""The log that a server serves: any of its topics takes records, as the HTTP bridge does, and gives them out again."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response

from penstock.bridge.intake import Intake
from penstock.bridge.limits import Limits, Room
from penstock.bridge.request_format import RequestFormat
from penstock.bridge.taking import RecordTaker
from penstock.errors import PenstockError
from penstock.jobs.manager.insight.topics import check_topic
from penstock.jobs.manager.store.records import JobRecords
from penstock.log import Log

log = logging.getLogger("penstock")
NOTED = 60.0
"""Records are put in more often than an audit can bear: who puts them into which topic is noted once in so many seconds, with how many they were."""


@dataclass
class ProducerAudit:
    """Who has put how many records into which topic since it was noted last."""

    records: JobRecords
    many: Counter[tuple[str, str]] = field(default_factory=Counter)
    noted: dict[tuple[str, str], float] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, owner: str, topic: str, many: int) -> None:
        """Counts records in; requests do so at the same time."""
        with self._lock:
            self.many[owner, topic] += many
            is_due = time.monotonic() - self.noted.get((owner, topic), -NOTED) >= NOTED
        if is_due:
            self.note(owner, topic)

    def note(self, owner: str, topic: str) -> None:
        """Writes down what was counted. Where that cannot be done it still counts, and the request, whose records are stored, does not fail for it."""
        with self._lock:
            many = self.many.pop((owner, topic), 0)
            self.noted[owner, topic] = time.monotonic()
        if not many:
            return
        try:
            self.records.note(owner, "produce", topic, f"{many} records" if many != 1 else "1 record")
        except PenstockError as error:
            log.warning("who put records into %s is not in the audit yet: %s", topic, error)
            with self._lock:
                self.many[owner, topic] += many

    def close(self) -> None:
        """Writes down all that is left."""
        for owner, topic in list(self.many):
            self.note(owner, topic)


class ServedLog:
    """A log, and what takes records into its topics."""

    def __init__(self, path: Path, records: JobRecords, limits: Limits | None = None) -> None:
        self.path, self.limits = path, limits or Limits()
        self.audit = ProducerAudit(records)
        self.is_ending = False
        self._log = Log(path)
        self._room = Room(self.limits)
        self._intakes: dict[str, Intake] = {}
        self._making = asyncio.Lock()

    async def take(self, request: Request, topic: str, format: RequestFormat) -> Response:
        """Stores the records of a request in a topic; answers when they are on disk."""
        intake = await self._intake(topic)
        return await RecordTaker(self.limits, format, lambda: self.is_ending).take(request, intake)

    async def _intake(self, topic: str) -> Intake:
        async with self._making:
            if topic not in self._intakes:
                loop = asyncio.get_running_loop()
                self._intakes[topic] = await run_in_threadpool(self._make, topic, loop)
            return self._intakes[topic]

    def _make(self, topic: str, loop: asyncio.AbstractEventLoop) -> Intake:
        check_topic(self._log, topic)
        return Intake(self._log, topic, self.limits, self._room, loop)

    async def close(self, seconds: float = 5.0) -> None:
        """Takes nothing more, stores what waits, and closes the log."""
        self.is_ending = True
        for intake in self._intakes.values():
            await intake.close(seconds)
        await run_in_threadpool(self.audit.close)
        self._log.close()
