"""Processes that share a storage, moved one request at a time: whoever tests decides who goes next, who is paused and who dies.

Each process is a thread that waits before every request until it is its turn, so an execution is the list of turns and nothing else.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

from penstock.storage import Data, Entry, Storage, Version


class Died(BaseException):
    """Ends a process that was killed."""


class Process:
    """A process that moves when it is told to, with a clock of its own."""

    def __init__(self, work: Callable[[Process], None]) -> None:
        self.now = 0.0
        self.error: BaseException | None = None
        self.is_over = self._is_killed = False
        self._go, self._stopped = threading.Semaphore(0), threading.Semaphore(0)
        self._thread = threading.Thread(target=self._run, args=(work,), daemon=True)
        self._thread.start()
        self._stopped.acquire()

    def _run(self, work: Callable[[Process], None]) -> None:
        try:
            self.turn()
            work(self)
        except Died:
            pass
        except BaseException as error:
            self.error = error
        self.is_over = True
        self._stopped.release()

    def turn(self) -> None:
        """Called by the process: waits until it may go on."""
        if self._is_killed:
            raise Died
        self._stopped.release()
        self._go.acquire()
        if self._is_killed:
            raise Died

    def step(self) -> None:
        """Lets the process make one request."""
        if not self.is_over:
            self._go.release()
            self._stopped.acquire()

    def kill(self) -> None:
        """Ends the process before its next request."""
        self._is_killed = True
        self.step()

    def clock(self) -> float:
        """The time of this process."""
        return self.now


class SteppedStorage:
    """A storage as one process sees it: every request waits for its turn."""

    def __init__(self, storage: Storage, process: Process) -> None:
        self.storage, self.process = storage, process

    def read(self, name: str, begin: int = 0, length: int | None = None) -> bytes:
        self.process.turn()
        return self.storage.read(name, begin, length)

    def size(self, name: str) -> int:
        self.process.turn()
        return self.storage.size(name)

    def write(self, name: str, data: Data) -> None:
        self.process.turn()
        self.storage.write(name, data)

    def put_if_absent(self, name: str, data: Data) -> bool:
        self.process.turn()
        return self.storage.put_if_absent(name, data)

    def read_versioned(self, name: str) -> tuple[bytes, Version]:
        self.process.turn()
        return self.storage.read_versioned(name)

    def compare_and_swap(self, name: str, expected: Version | None, data: Data) -> Version:
        self.process.turn()
        return self.storage.compare_and_swap(name, expected, data)

    def list(self, prefix: str = "") -> Iterator[Entry]:
        self.process.turn()
        return self.storage.list(prefix)

    def children(self, prefix: str = "") -> builtins.list[str]:
        self.process.turn()
        return self.storage.children(prefix)

    def delete(self, *names: str) -> None:
        self.process.turn()
        self.storage.delete(*names)

    def local_path(self, name: str) -> Path | None:
        return self.storage.local_path(name)
