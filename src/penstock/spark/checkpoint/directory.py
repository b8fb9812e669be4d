"""The checkpoint directory of a live flow: Spark's checkpoint, the state, and a note of whose it is."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import CheckpointError
from penstock.spark.checkpoint.restart import LOCK, Restart, clear
from penstock.storage.private import make_private


def check_free(folder: Path, flow: str) -> None:
    """Refuses a checkpoint directory that another process has open; changes nothing."""
    if not (folder / LOCK).exists():
        return
    with (folder / LOCK).open("r") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _in_use(folder, flow) from None


def _in_use(folder: Path, flow: str) -> CheckpointError:
    return CheckpointError(
        f"flow {flow!r} runs already: another process has {folder} open. Stop it first, or give this run a directory of its own "
        f"with --checkpoint"
    )


@contextmanager
def removed_if_failed(folder: Path) -> Iterator[None]:
    """A start that fails leaves no directory behind that it made."""
    made = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        yield
    except BaseException:
        if made:
            shutil.rmtree(folder, ignore_errors=True)
        for parent in made[1:]:
            with suppress(OSError):
                parent.rmdir()
        raise


@dataclass
class Checkpoint:
    """One folder per flow. One driver at a time may have it open."""

    restart: Restart
    lock: Any = field(default=None, repr=False)

    @property
    def folder(self) -> Path:
        """The whole of it."""
        return self.restart.folder

    @property
    def spark(self) -> Path:
        """Spark's own part."""
        return self.folder / "spark"

    def open(self, *, fresh: bool = False) -> str:
        """Locks the folder, makes it what the flow wants, and returns the id of its lineage."""
        self._make()
        self._lock()
        try:
            if fresh:
                clear(self.folder)
            return self.restart.settle()
        except BaseException:
            self.close()
            raise

    def _make(self) -> None:
        try:
            make_private(self.folder)
            make_private(self.spark)
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint folder {self.folder} cannot be made ({error}); choose one with --checkpoint"
            ) from None

    def _lock(self) -> None:
        self.lock = (self.folder / LOCK).open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise _in_use(self.folder, self.restart.wanted.flow) from None

    def close(self) -> None:
        """Lets go of the folder."""
        if self.lock is not None:
            self.lock.close()
            self.lock = None
