"""Watches sinks while they are asked for something: one that does not answer is named, and broken off in the end."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from penstock.errors import RunError
from penstock.live.watchdog import Finding, Watchdog

log = logging.getLogger("penstock")


class NotAnswered(RunError):
    """A sink was broken off because it did not answer in time; the message says since when."""


@dataclass
class SinkWatch:
    """How long sinks may take.

    Attributes:
        say_after: after how many seconds without an answer it is said, and said again.
        break_after: after how many it is broken off; None: never.
        has_tasks: whether tasks of Spark run. Then it is them who take long, and the watch over tasks speaks.
        pause: the seconds between two looks.
        at_work: what is being asked of which sink now; empty between two.
    """

    say_after: float = 600.0
    break_after: float | None = None
    has_tasks: Callable[[], bool] = lambda: False
    pause: float = 1.0
    at_work: str = ""

    @contextmanager
    def watching(self, doing: str, interrupt: Callable[[], bool]) -> Iterator[None]:
        """Watches what is done inside. `interrupt` makes it raise an error, from another thread; it returns whether it can.

        Raises:
            NotAnswered: it was broken off.
        """
        call = _WatchedCall(self, doing, interrupt)
        self.at_work = doing
        call.thread.start()
        try:
            yield
        except Exception as error:
            if call.broken_after:
                raise NotAnswered(f"{doing}: no answer {call.broken_after}, so it was broken off ({error})") from error
            raise
        finally:
            self.at_work = ""
            call.is_over.set()


class _WatchedCall:
    """One request to a sink, and the thread that looks at it."""

    def __init__(self, watch: SinkWatch, doing: str, interrupt: Callable[[], bool]) -> None:
        self.watch, self.doing, self.interrupt = watch, doing, interrupt
        self.watchdog = Watchdog(watch.say_after, watch.break_after)
        self.is_over = threading.Event()
        self.broken_after = ""
        self.asked_at = time.monotonic()
        self.thread = threading.Thread(target=self._run, name="penstock-sink-watch", daemon=True)

    def _run(self) -> None:
        self.watchdog.look(self.asked_at, self.doing)
        while not self.is_over.wait(self.watch.pause):
            finding = self._look()
            if finding is Finding.SAY:
                log.warning("%s: no answer %s", self.doing, self._since())
            elif finding is Finding.KILL:
                self._break()

    def _look(self) -> Finding | None:
        now, is_quiet = time.monotonic(), not self.watch.has_tasks()
        self.asked_at = self.asked_at if is_quiet else now
        return self.watchdog.look(now, self.doing if is_quiet else None)

    def _since(self) -> str:
        seconds = time.monotonic() - self.asked_at
        return f"since {time.strftime('%H:%M:%S', time.localtime(time.time() - seconds))} ({seconds:.0f} s)"

    def _break(self) -> None:
        self.broken_after = since = self._since()
        if not self.interrupt():
            self.broken_after = ""
            log.warning("%s: no answer %s, and it cannot be broken off", self.doing, since)
