"""The folder a live flow keeps its place in: Spark's checkpoint, the state, and a note of whose it is."""

from __future__ import annotations

import fcntl
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import CheckpointError
from penstock.spark.checkpoint.restart import Restart, clear


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
        """Locks the folder, makes it what the flow wants, and gives the id of its lineage."""
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
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"the checkpoint folder {self.folder} cannot be made ({error}); choose one with --checkpoint"
            ) from None

    def _lock(self) -> None:
        self.lock = (self.folder / "lock").open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.close()
            raise CheckpointError(
                f"flow {self.restart.wanted.flow!r} runs already: another process has {self.folder} open. Stop it first, or give "
                f"this run a folder of its own with --checkpoint"
            ) from None

    def close(self) -> None:
        """Lets go of the folder."""
        if self.lock is not None:
            self.lock.close()
            self.lock = None
