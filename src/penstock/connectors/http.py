"""HTTP as a sink: records as JSON, each request with a key by which the server can tell that it came before."""

from __future__ import annotations

import base64
import hashlib
import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import Any, ClassVar
from urllib.parse import unquote, urlsplit

from penstock.connectors.base import Batch, RowSink, SinkPlace
from penstock.connectors.texts import json_text
from penstock.errors import RunError
from penstock.graph.delivery import AT_LEAST_ONCE

AGAIN = (408, 425, 429)
LONGEST_PAUSE = 30.0


class HttpSink(RowSink):
    """Sends the rows of a batch, some requests at a time; done when every one is answered."""

    holds: ClassVar[tuple[str, ...]] = (AT_LEAST_ONCE,)

    def open(self, place: SinkPlace) -> Any:
        """Nothing to prepare."""
        return None

    def write(self, rows: list[Any], batch: Batch) -> None:
        """All requests of a batch; the first failure that lasts ends it."""
        posting = Posting(batch)
        with ThreadPoolExecutor(batch.options["concurrency"], thread_name_prefix="http") as pool:
            waiting = _requests(rows, batch)
            while some := list(islice(waiting, 8 * batch.options["concurrency"])):
                for _ in pool.map(posting.send, some):
                    pass


@dataclass(frozen=True)
class Request:
    """A body and its key."""

    key: str
    body: bytes


def _requests(rows: Iterable[Any], batch: Batch) -> Iterator[Request]:
    """The requests of a batch. A key is made of what is sent, so it is the same when the rows come in another order."""
    seen: Counter[str] = Counter()
    for body in _bodies(rows, batch.options["per_request"]):
        digest = hashlib.sha256(body).hexdigest()[:24]
        seen[digest] += 1
        yield Request(f"{batch.lineage}/{batch.sink}/{batch.id}/{digest}-{seen[digest]}", body)


def _bodies(rows: Iterable[Any], many: int) -> Iterator[bytes]:
    texts = (json_text(row.asdict()) for row in rows)
    if many == 1:
        yield from (text.encode() for text in texts)
        return
    while some := list(islice(texts, many)):
        yield f"[{','.join(some)}]".encode()


class Posting:
    """Sends requests, with one connection for each thread that is kept open."""

    def __init__(self, batch: Batch) -> None:
        self.batch, self.options = batch, batch.options
        self.parts = urlsplit(str(self.options["secret_url"]))
        self.local = threading.local()

    def send(self, request: Request) -> None:
        """Sends one, again and again with growing pauses while the server is busy or out of reach."""
        pause = 0.2
        for left in range(self.options["retries"], -1, -1):
            wait, said = self._try(request)
            if not said:
                return
            if wait is None or left == 0:
                raise RunError(
                    f"sink {self.batch.sink!r}: {self.options['host']} {said} (batch {self.batch.id}, Idempotency-Key {request.key})"
                )
            time.sleep(min(max(wait, pause * random.uniform(0.5, 1.5)), LONGEST_PAUSE))
            pause *= 2

    def _try(self, request: Request) -> tuple[float | None, str]:
        """How long to wait before the next try (None: never), and what went wrong; an empty text when nothing did."""
        try:
            connection = self._connection()
            connection.request(self.options["method"], self._path(), request.body, self._headers(request))
            answer = connection.getresponse()
            text = answer.read(500)
            if answer.length:
                self._drop()
        except (OSError, http.client.HTTPException) as error:
            self._drop()
            return 0.0, f"cannot be reached: {type(error).__name__}: {error}"
        if 200 <= answer.status < 300:
            return None, ""
        wait = _retry_after(answer.getheader("Retry-After")) if answer.status in AGAIN or answer.status >= 500 else None
        return wait, f"answered {answer.status} {answer.reason}: {text.decode(errors='replace').strip()[:200]}"

    def _connection(self) -> http.client.HTTPConnection:
        if getattr(self.local, "made", None) is None:
            kind = http.client.HTTPSConnection if self.parts.scheme == "https" else http.client.HTTPConnection
            self.local.made = kind(self.parts.hostname or "", self.parts.port, timeout=self.options["timeout"])
        made: http.client.HTTPConnection = self.local.made
        return made

    def _drop(self) -> None:
        if getattr(self.local, "made", None) is not None:
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
    return float(text) if text is not None and text.isdigit() else 0.0
