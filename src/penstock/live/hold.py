"""The right of one driver at a time to a checkpoint: a lock of this machine for a directory, a lease for a URL.

The lock of a directory goes with the process that has it, so a driver that was killed delays nobody. A lease ends when it is not renewed; see `penstock.storage.lease`.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Protocol

from penstock.errors import CheckpointError, PenstockError
from penstock.location import Address, Location
from penstock.storage import StorageError, open_storage
from penstock.storage.lease import SECONDS, KeptLease, Lease
from penstock.storage.private import make_private

LOCK = "lock"
"""The file whose lock says that a driver of this machine has the directory open."""
LEASE = "lease"
"""The object that says which driver has a checkpoint that is a URL."""
_LOOKS = 8
"""How often a waiting driver looks at a lease in the time for which that holds."""


class Hold(Protocol):
    """A checkpoint that this process has. `epoch` grows with every holder; it is 0 where no other can take over."""

    epoch: int

    def check(self) -> None:
        """Returns if this process still has it; raises LeaseLost otherwise."""

    @property
    def failure(self) -> PenstockError | None:
        """Why it was lost, if it was."""

    def close(self) -> None:
        """Gives it up."""


@dataclass
class DirectoryLock:
    """A directory of this machine that this process has locked."""

    file: IO[str]
    epoch: int = 0
    failure: PenstockError | None = None

    def check(self) -> None:
        """Nobody can take a lock away."""

    def close(self) -> None:
        """Unlocks the directory."""
        self.file.close()


@dataclass
class HeldLease:
    """A checkpoint in a shared storage of which this process has the lease."""

    kept: KeptLease
    epoch: int = field(init=False)

    def __post_init__(self) -> None:
        self.epoch = self.kept.lease.epoch

    def check(self) -> None:
        """Looks whether the lease has been lost."""
        self.kept.check()

    @property
    def failure(self) -> PenstockError | None:
        """Why the lease was lost, if it was."""
        return self.kept.failure

    def close(self) -> None:
        """Gives the lease up."""
        self.kept.close()


def check_free(folder: Path, flow: str) -> None:
    """Refuses a checkpoint directory that another process has open; changes nothing."""
    if not (folder / LOCK).exists():
        return
    with (folder / LOCK).open("r") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise _in_use(folder, flow) from None


def lock_directory(folder: Path, flow: str) -> DirectoryLock:
    """Locks a checkpoint directory, which is made if it is not there."""
    try:
        make_private(folder)
        make_private(folder / "spark")
    except OSError as error:
        raise CheckpointError(
            f"the checkpoint folder {folder} cannot be made ({error}); choose one with --checkpoint"
        ) from None
    file = (folder / LOCK).open("w")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise _in_use(folder, flow) from None
    return DirectoryLock(file)


@dataclass
class LeaseSeeker:
    """Takes the lease of a checkpoint that is a URL.

    Attributes:
        folder: the URL.
        flow: the name of the flow, for messages.
        seconds: how long the lease holds without being renewed.
        stops: says whether waiting is to end.
    """

    folder: Location
    flow: str
    seconds: float = SECONDS
    stops: Callable[[], bool] = lambda: False
    tell: Callable[[str], None] = lambda text: None
    _is_away: bool = False

    def take(self) -> HeldLease:
        """Takes the lease, waiting at most until that of a driver that died has ended.

        Raises:
            CheckpointError: another driver renews it: the flow runs.
        """
        lease = self._lease()
        while not lease.take():
            if lease.is_renewed:
                raise _in_use(self.folder, self.flow, f"{lease.other.holder if lease.other else 'another'}")
            self._pause(lease)
        return HeldLease(KeptLease(lease).start())

    def wait(self) -> HeldLease | None:
        """Takes the lease as soon as no other driver renews it, however long that takes; None when waiting is to end.

        Raises:
            CheckpointError: the lease is damaged.
            StorageError: the storage cannot be reached when waiting begins. Later it may be away for as long as it likes.
        """
        lease, waits = self._lease(), False
        while not (self._takes(lease) if waits else lease.take()):
            if not waits:
                self.tell(f"standing by: {lease.other.holder if lease.other else 'another driver'} runs the flow")
            waits = True
            if self.stops():
                return None
            self._pause(lease)
        if waits:
            self.tell(f"taking over, epoch {lease.epoch}")
        return HeldLease(KeptLease(lease).start())

    def _takes(self, lease: Lease) -> bool:
        """Takes the lease if it has ended. While the storage is away nobody can renew it, so its time begins anew then."""
        try:
            taken = lease.take()
            self._is_away = False
            return taken
        except (StorageError, OSError) as error:
            if not self._is_away:
                self.tell(f"the checkpoint cannot be reached; trying until it can: {error}")
            self._is_away = True
            lease.look_anew()
            return False

    def _lease(self) -> Lease:
        return Lease(open_storage(self.folder), LEASE, self.seconds)

    def _pause(self, lease: Lease) -> None:
        time.sleep(min(lease.seconds, lease.other.seconds if lease.other else lease.seconds) / _LOOKS)


def _in_use(folder: Address, flow: str, by: str = "another process") -> CheckpointError:
    return CheckpointError(
        f"flow {flow!r} runs already: {by} has {folder} open. Stop it first, or give this run a directory of its own "
        f"with --checkpoint"
    )
