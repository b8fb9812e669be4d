"""Compare and swap of a file, safe against a process that is paused anywhere and goes on later.

A lock alone does not do: whoever holds it may be stopped between its check and its rename, and those that wait for it would wait
for as long; and if they break the lock, the one that wakes renames its file over theirs. Here the *source* of the rename is what
can be taken away. To swap, a process

1. writes its new content into a claim, a file of its own in the directory of the swap;
2. removes the claims of all others;
3. checks that the object has the expected content;
4. renames its claim over the object, which fails if another has removed the claim.

Of two that have passed their checks with the same content, one fails: suppose A renames first, then B. B's check was before A's
rename, so B removed claims before that too. If A's claim was there then, A's rename failed. If it was not, A made it later, so B's was
there when A removed claims, and B's rename fails. Readers and writers need no lock, and nobody waits for one that is paused.

Two that go in step may remove each other's claims for ever, so they take turns by a lock, as a courtesy: whoever does not get it in
time goes on without it. Claims of processes that died are removed by the next swap.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from penstock.faults import passing
from penstock.storage.base import Version, version_of

PATIENCE = 1.0
"""How many seconds to wait for one's turn. A swap takes some milliseconds, so whoever holds the turn for longer is paused."""
POINTS = ("swap claimed", "swap alone", "swap checked", "swap renamed")
"""The points between the steps at which tests end or pause the process."""
_TURN = "turn"


@dataclass(frozen=True)
class Swap:
    """Swaps of one object. `directory` holds the claims on all objects, `name` is the name of this one."""

    path: Path
    directory: Path
    name: str
    is_private: bool = True

    @property
    def claims(self) -> Path:
        """The directory of the claims on this object; the caller makes it."""
        return self.directory / hashlib.sha256(self.name.encode()).hexdigest()

    def replace(self, expected: Version, content: bytes) -> bool:
        """Replaces the object if it has the expected content; returns whether it had."""
        with self._turn():
            while True:
                claim = self._claim(content)
                try:
                    if (swapped := self._attempt(claim, expected)) is not None:
                        return swapped
                finally:
                    claim.unlink(missing_ok=True)
                time.sleep(random.uniform(0, 0.01))

    def _attempt(self, claim: Path, expected: Version) -> bool | None:
        """Swaps once; None when another has removed the claim meanwhile."""
        passing("swap claimed", 0)
        _remove_others(claim)
        passing("swap alone", 0)
        if not self._has(expected):
            return False
        passing("swap checked", 0)
        try:
            claim.rename(self.path)
        except FileNotFoundError:
            return None
        passing("swap renamed", 0)
        sync_directory(self.path.parent)
        return True

    def _has(self, expected: Version) -> bool:
        try:
            return version_of(self.path.read_bytes()) == expected
        except (FileNotFoundError, NotADirectoryError):
            return False

    def _claim(self, content: bytes) -> Path:
        claim = self.claims / uuid.uuid4().hex
        with private(claim, is_private=self.is_private) as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        return claim

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Entered when it is this caller's turn, or waiting for it has taken too long."""
        turn = self.claims / _TURN
        handle = os.open(turn, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600 if self.is_private else 0o666)
        try:
            if not _locked(handle):
                # Whoever holds it is paused: those that come next must not wait for that one too.
                turn.unlink(missing_ok=True)
            yield
        finally:
            os.close(handle)


def _remove_others(claim: Path) -> None:
    for other in claim.parent.iterdir():
        if other.name not in (claim.name, _TURN):
            other.unlink(missing_ok=True)


def _locked(handle: int) -> bool:
    """Takes a lock, unless that takes too long."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        with suppress(BlockingIOError):
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        time.sleep(random.uniform(0.0005, 0.005))
    return False


def private(path: Path, *, is_private: bool = True) -> BinaryIO:
    """Opens a new file for writing."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600 if is_private else 0o666)
    return os.fdopen(handle, "wb")


def sync_directory(path: Path) -> None:
    """Makes the names in a directory durable: needed after a file gets or loses one."""
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
