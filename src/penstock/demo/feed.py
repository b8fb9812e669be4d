"""The demo's people: a thread that writes posts into the log, so many a second."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from penstock.demo.posts import post
from penstock.log import Log

TOPIC = "posts"
PARTITIONS = 2
PAUSE = 0.05


class PostFeed:
    """Posts into a topic of a log, from the first number on; a `with` block starts and ends it."""

    def __init__(self, path: Path, rate: int, limit: int | None = None) -> None:
        self.path, self.rate, self.limit = path, rate, limit
        self.sent = 0
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="posts", daemon=True)
        with Log(path) as log:
            log.create_topic(TOPIC, PARTITIONS)

    def _run(self) -> None:
        began = time.monotonic()
        with Log(self.path) as log, log.producer() as producer:
            while not self._ended.is_set() and self.sent != self.limit:
                due = int((time.monotonic() - began) * self.rate)
                due = due if self.limit is None else min(due, self.limit)
                posts = [post(n, self.rate) for n in range(self.sent, due)]
                if posts:
                    values = [json.dumps(p._asdict()).encode() for p in posts]
                    producer.send_many(TOPIC, values, [p.author.encode() for p in posts])
                self.sent = max(self.sent, due)
                self._ended.wait(PAUSE)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
