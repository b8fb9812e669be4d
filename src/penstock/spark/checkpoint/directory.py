"""The checkpoint of a live flow: the state, a note of whose it is, Spark's own part, and the right to write there."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from penstock.errors import PenstockError
from penstock.live.hold import Hold, LeaseSeeker, lock_directory
from penstock.location import Address, Location
from penstock.spark.checkpoint.entries import FedFiles
from penstock.spark.checkpoint.mirror import FED, LogMirror
from penstock.spark.checkpoint.offsets import OffsetLog
from penstock.spark.checkpoint.restart import Restart, clear
from penstock.storage import mounted
from penstock.temporary import LockedDirectory

EVERY = 10
"""Batches between two looks at what Spark has dropped from its log."""


@contextmanager
def removed_if_failed(folder: Address) -> Iterator[None]:
    """A start that fails leaves no directory behind that it made."""
    made = [p for p in (folder, *folder.parents) if not p.exists()] if isinstance(folder, Path) else []
    try:
        yield
    except BaseException:
        if made:
            shutil.rmtree(made[0], ignore_errors=True)
        for parent in made[1:]:
            with suppress(OSError):
                parent.rmdir()
        raise


@dataclass
class Checkpoint:
    """The checkpoint of a flow. One driver at a time may have it open.

    In a directory of this machine Spark has its part there. Of a checkpoint that is a URL it works on a copy in a private directory (`mirror.py`), which goes with the process.

    Attributes:
        restart: what is there, and what the flow wants.
        hold: the right to write there, where it was taken before.
        is_apart: tasks do not see directories of this machine.
        work: the directory in which Spark keeps its part, and finds what the flow puts there for its sources.
    """

    restart: Restart
    hold: Hold | None = field(default=None, repr=False)
    lease_seconds: float = 10.0
    is_apart: bool = False
    mirror: LogMirror | None = None
    work: Path = field(init=False)
    _closing: ExitStack = field(default_factory=ExitStack, repr=False)

    def __post_init__(self) -> None:
        folder = self.restart.folder
        if isinstance(folder, Path):
            self.work = folder
            return
        made = LockedDirectory.make("work")
        self.work = made.path
        self._closing.callback(made.close)

    @property
    def folder(self) -> Address:
        """Where everything is kept that outlives the process."""
        return self.restart.folder

    @property
    def spark(self) -> Path:
        """Spark's own part, as Spark itself reads and writes it."""
        return self.work / "spark"

    @property
    def kept_log(self) -> OffsetLog:
        """Spark's part, where it is kept."""
        return OffsetLog(self.folder / "spark")

    @property
    def log(self) -> OffsetLog:
        """Spark's part, as Spark itself reads and writes it, with the names of files that all drivers agree on."""
        return OffsetLog(self.spark, self.work if self.mirror is not None else None)

    @property
    def fed(self) -> FedFiles | None:
        """The files that tasks read from the storage of the checkpoint; None where Spark reads them itself."""
        return FedFiles(self.log, self.work) if self.mirror is not None and self.is_apart else None

    @property
    def epoch(self) -> int:
        """The epoch in which this driver writes; 0 where no other can take over."""
        return self.hold.epoch if self.hold is not None else 0

    def open(self, *, fresh: bool = False) -> str:
        """Takes the checkpoint, makes it what the flow wants, and returns the id of its lineage."""
        try:
            self.hold = self.hold or self._take()
            self._closing.callback(self.hold.close)
            if fresh:
                clear(self.folder)
            return self.restart.settle()
        except BaseException:
            self.close()
            raise

    def _take(self) -> Hold:
        folder, flow = self.folder, self.restart.wanted.flow
        if isinstance(folder, Location):
            return LeaseSeeker(folder, flow, self.lease_seconds).take()
        return lock_directory(folder, flow)

    def build(self) -> None:
        """Makes Spark's part of what is kept, where Spark does not work on that itself."""
        if isinstance(self.folder, Path) or self.hold is None:
            return
        self.mirror = LogMirror(self.folder, self.work, self.epoch, self.hold.check, self.is_apart)
        self.mirror.build()
        for part in FED:
            mount = mounted(self.work / part.rstrip("/"), self.mirror.mirrored(part.rstrip("/")))
            self._closing.enter_context(mount)

    def begin(self, batch: int) -> None:
        """Makes the offsets of a batch durable; Spark has written them."""
        if self.mirror is not None:
            self.mirror.begin(batch)

    def finish(self, batch: int) -> None:
        """Says that all of a batch is shown."""
        if self.mirror is not None:
            self.mirror.finish(batch)

    def sweep(self, batch: int) -> None:
        """Lets go of what Spark has dropped, now and then; `batch` is the last that is through."""
        if self.mirror is not None and batch % EVERY == 0:
            self.mirror.sweep()

    @property
    def failure(self) -> PenstockError | None:
        """Why this driver may not write any more, if it may not."""
        return self.hold.failure if self.hold is not None else None

    def close(self) -> None:
        """Lets go of the checkpoint."""
        self._closing.close()
