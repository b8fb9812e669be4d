"""Programs outlive the instance that uses them: on Spark an instance lives for one batch, its program for as long as its worker.

A worker that does not get the task back for a while ends the program.
"""

from __future__ import annotations

import atexit
import threading
from typing import Any

from penstock.graph.multilang.process import ShellProcess

IDLE = 60.0
"""Seconds after which a program that no task has taken back ends."""
Key = tuple[int, str, str, int]


class ShellPool:
    """Programs that no task uses now, by the component and the task they belong to."""

    def __init__(self) -> None:
        self.keeps = False
        """Whether programs stay when their task is closed; workers of Spark say so."""
        self._lock = threading.Lock()
        self._found: dict[Key, tuple[object, ShellProcess, threading.Timer]] = {}

    def take(self, key: Key) -> ShellProcess | None:
        """The program of a task, which is the caller's then; None where there is none that runs."""
        with self._lock:
            _, found, timer = self._found.pop(key, (None, None, None))
        if timer is not None:
            timer.cancel()
        return found if found is not None and found.is_alive else None

    def put(self, key: Key, owner: Any, process: ShellProcess) -> None:
        """Keeps a program, or ends it where none are kept. The owner is kept too, so that its identity stays its own."""
        if not self.keeps:
            process.stop()
            return
        timer = threading.Timer(IDLE, self._end, (key,))
        timer.daemon = True
        with self._lock:
            before = self._found.pop(key, None)
            self._found[key] = (owner, process, timer)
        timer.start()
        if before is not None:
            before[1].stop()

    def _end(self, key: Key) -> None:
        found = self.take(key)
        if found is not None:
            found.stop()

    def close(self) -> None:
        """Ends all programs."""
        for key in list(self._found):
            self._end(key)


POOL = ShellPool()
atexit.register(POOL.close)
