"""HTTP as a sink: records as JSON, each request with a key by which the server can tell a repeated one."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import http.client
import random
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import unquote, urlsplit

from penstock.connectors.base import Batch, Refusal, RowSink, SinkContext, StagedBatch, rows_of
from penstock.connectors.delivery import Entry
from penstock.connectors.texts import json_text
from penstock.errors import RunError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

AGAIN = (408, 425, 429)
OF_THE_RECORD = (400, 413, 422)
"""Answers that say something of what was sent; others are about the address, the rights, the server, or earlier requests."""
LONGEST_PAUSE, LONGEST_WISH = 30.0, 900.0
T = TypeVar("T")
Numbered = Sequence[tuple[int, Any]]
"""Rows, each with its index in the batch."""


class RequestRefused(RunError):
    """The server does not take what a request holds."""


class HttpSink(RowSink):
    """Sends the rows of a batch, some requests at a time; done when every one is answered."""

    def __init__(self) -> None:
        self.is_closed = False
        self.posting: RequestSender | None = None

    def open(self, context: SinkContext) -> Entry | None:
        """Nothing to prepare."""
        return None

    def interrupt(self) -> bool:
        """Ends the requests that are under way, and those that wait for their next try."""
        if self.posting is None:
            return False
        self.posting.interrupt()
        return True

    def close(self) -> None:
        """Ends requests that wait for their next try: a run that ends does not wait for them."""
        self.is_closed = True
        if self.posting is not None:
            self.posting.ended.set()

    def _posting(self, batch: Batch) -> RequestSender:
        self.posting = RequestSender(batch)
        if self.is_closed:
            self.posting.ended.set()
        return self.posting

    def write(self, rows: list[Any], batch: Batch) -> None:
        """All requests of a batch; the first failure that lasts ends it."""
        posting = self._posting(batch)
        for _ in _in_threads(posting.send, _bundles(rows, batch), batch):
            pass

    def stage_rows(self, frame: DataFrame, batch: Batch) -> tuple[StagedBatch, list[Refusal]]:
        """Sends the rows while they are staged, so that those which the server refuses are known in time."""
        rows = rows_of(frame)
        posting, staged = self._posting(batch), StagedBatch()
        refused = [one for some in _in_threads(posting.stage_rows, _bundles(rows, batch), batch) for one in some]
        staged.rows = len(rows) - len(refused)
        return staged, refused


def _bundles(rows: Iterable[Any], batch: Batch) -> Iterator[Numbered]:
    """The rows that go together in a request."""
    numbered = enumerate(rows)
    while some := list(islice(numbered, batch.options["per_request"])):
        yield some


def _in_threads(act: Callable[[Numbered], T], bundles: Iterator[Numbered], batch: Batch) -> Iterator[T]:
    """What a function returns for each bundle, in order, some at a time."""
    many = batch.options["concurrency"]
    with ThreadPoolExecutor(many, thread_name_prefix="http") as pool:
        while some := list(islice(bundles, 8 * many)):
            yield from pool.map(act, some)


@dataclass(frozen=True)
class Request:
    """A body and its key."""

    key: str
    body: bytes


class RequestSender:
    """Sends the requests of a batch, with one connection for each thread that is kept open."""

    def __init__(self, batch: Batch, ended: threading.Event | None = None) -> None:
        self.batch, self.options = batch, batch.options
        self.ended = ended or threading.Event()
        self.parts = urlsplit(str(self.options["secret_url"]))
        self.local = threading.local()
        self.connections: list[http.client.HTTPConnection] = []
        self._seen: Counter[str] = Counter()
        self._counting = threading.Lock()

    def stage_rows(self, rows: Numbered) -> list[Refusal]:
        """Sends rows together; when they are refused, in halves, down to the rows that are to blame."""
        try:
            self.send(rows)
            return []
        except RequestRefused as error:
            if len(rows) == 1:
                return [Refusal(*rows[0], str(error))]
        half = len(rows) // 2
        return [*self.stage_rows(rows[:half]), *self.stage_rows(rows[half:])]

    def send(self, rows: Numbered) -> None:
        """Sends rows in one request, again and again with growing pauses while the server is busy or out of reach."""
        pause, request = 0.2, self._request(rows)
        for left in range(self.options["retries"], -1, -1):
            status, wait, said = self._try(request)
            if not said:
                return
            if wait is None or left == 0 or self._paused(wait, pause):
                kind = RequestRefused if status in OF_THE_RECORD else RunError
                raise kind(
                    f"sink {self.batch.sink!r}: {self.options['host']} {said} (batch {self.batch.id}, Idempotency-Key {request.key})"
                )
            pause *= 2

    def _paused(self, wish: float, pause: float) -> bool:
        """Waits before the next try, as long as the server wishes; whether the run has ended meanwhile."""
        return self.ended.wait(max(wish, min(pause * random.uniform(0.5, 1.5), LONGEST_PAUSE)))

    def _request(self, rows: Numbered) -> Request:
        """Rows as a request. Its key is made of what is sent, so it is the same when the rows come in another order."""
        texts = [json_text(row.asdict()) for _, row in rows]
        body = (texts[0] if self.options["per_request"] == 1 else f"[{','.join(texts)}]").encode()
        digest = hashlib.sha256(body).hexdigest()[:24]
        with self._counting:
            self._seen[digest] += 1
            number = self._seen[digest]
        return Request(f"{self.batch.lineage}/{self.batch.sink}/{self.batch.id}/{digest}-{number}", body)

    def _try(self, request: Request) -> tuple[int, float | None, str]:
        """The answer, 0 without one; how long to wait before the next try (None: never); what went wrong, empty when nothing did."""
        try:
            connection = self._connection()
            if self.ended.is_set():  # asked when there is a socket: before that `interrupt` finds nothing to shut down
                return 0, None, "was not asked: the requests of the batch were ended"
            connection.request(self.options["method"], self._path(), request.body, self._headers(request))
            answer = connection.getresponse()
            text = answer.read(500)
            if answer.length:
                self._drop()
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            return 0, 0.0, f"cannot be reached: {type(error).__name__}: {error}"
        if 200 <= answer.status < 300:
            return answer.status, None, ""
        wait = _retry_after(answer.getheader("Retry-After")) if answer.status in AGAIN or answer.status >= 500 else None
        said = f"answered {answer.status} {answer.reason}: {text.decode(errors='replace').strip()[:200]}"
        return answer.status, wait, said

    def _connection(self) -> http.client.HTTPConnection:
        if getattr(self.local, "made", None) is None:
            kind = http.client.HTTPSConnection if self.parts.scheme == "https" else http.client.HTTPConnection
            self.local.made = kind(self.parts.hostname or "", self.parts.port, timeout=self.options["timeout"])
            self.connections.append(self.local.made)
        made: http.client.HTTPConnection = self.local.made
        if made.sock is None and not self.ended.is_set():
            made.connect()
        return made

    def interrupt(self) -> None:
        """Ends all requests; safe to call from another thread."""
        self.ended.set()
        for connection in list(self.connections):
            if connection.sock is not None:
                with contextlib.suppress(OSError):
                    connection.sock.shutdown(socket.SHUT_RDWR)

    def _drop(self) -> None:
        if getattr(self.local, "made", None) is not None:
            self.connections.remove(self.local.made)
            self.local.made.close()
            self.local.made = None

    def _path(self) -> str:
        path = self.parts.path or "/"
        return f"{path}?{self.parts.query}" if self.parts.query else path

    def _headers(self, request: Request) -> dict[str, str]:
        made = {"Content-Type": "application/json", "Idempotency-Key": request.key}
        if self.parts.username is not None:
            words = f"{unquote(self.parts.username)}:{unquote(self.parts.password or '')}"
            made["Authorization"] = f"Basic {base64.b64encode(words.encode()).decode()}"
        return made | {name: str(text) for name, text in self.options["secret_headers"].items()}


def _retry_after(text: str | None) -> float:
    """The seconds that a server asks to wait, which it tells as a number or as a date; at most a quarter of an hour.

    >>> _retry_after("120"), _retry_after("Wed, 21 Oct 2015 07:28:00 GMT"), _retry_after("soon"), _retry_after(None)
    (120.0, 0.0, 0.0, 0.0)
    """
    if text is None:
        return 0.0
    if text.isdigit():
        return min(float(text), LONGEST_WISH)
    try:
        wished = parsedate_to_datetime(text).timestamp() - time.time()
    except ValueError:
        return 0.0
    return min(max(wished, 0.0), LONGEST_WISH)
