"""Ctrl-C and `kill`: the first asks a run to end after the batch at hand, a second Ctrl-C ends it at once."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any

INTERRUPTED = 130
"""What a program ends with after Ctrl-C, by custom."""


@dataclass
class StopSignals:
    """The handlers. `install` may be called again: Spark installs one of its own when it starts."""

    ask: Callable[[], None]
    force: Callable[[], None] = lambda: None
    asked: bool = False

    def install(self) -> None:
        """Takes SIGINT and SIGTERM; does nothing outside the main thread, where Python allows no handlers."""
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._handle)
            signal.signal(signal.SIGTERM, self._handle)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.asked and number == signal.SIGINT:
            self.force()
            os._exit(INTERRUPTED)
        self.asked = True
        self.ask()


@contextmanager
def leaving_on_sigterm() -> Iterator[None]:
    """Has SIGTERM end the process as an error would: what a block holds is released, and what it made for a while is removed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, _leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


@contextmanager
def stop_signals(ask: Callable[[], None], force: Callable[[], None] = lambda: None) -> Iterator[StopSignals]:
    """Handlers that are there for the time of a run."""
    before: list[tuple[int, Any]] = [(n, signal.getsignal(n)) for n in (signal.SIGINT, signal.SIGTERM)]
    made = StopSignals(ask, force)
    made.install()
    try:
        yield made
    finally:
        if threading.current_thread() is threading.main_thread():
            for number, handler in before:
                signal.signal(number, handler)
