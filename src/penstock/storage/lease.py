"""A lease: who may write to something that machines share, for as long as it keeps saying so.

The lease is one object, changed by compare and swap. It names its holder and an epoch, a number that grows with every holder, and counts renewals. Nobody
compares clocks of two machines: whoever waits looks at the object, and when that has not changed for the lease's time *by the waiter's own monotonic clock*, swaps
it for one of the next epoch. The former holder's next renewal fails then.

A lease is no lock. A holder that is paused believes that it holds the lease until it looks again, so whatever it writes must be fenced: by the epoch, or by names
that only one can put. The lease says who should try; the fence says who succeeds.

On the machine of the holder nobody has to wait: a process that is gone is known to be gone.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace

from penstock.errors import CheckpointError, PenstockError
from penstock.storage.base import Conflict, Storage, StorageError, Version, read_if_present
from penstock.storage.holder import Holder

SECONDS = 10.0
"""How long a lease holds without being renewed."""
_RENEWALS = 3
"""How often it is renewed in that time."""


class LeaseLost(CheckpointError):
    """Another process holds the lease now; what this one had begun is not committed."""


@dataclass(frozen=True)
class LeaseNote:
    """What the object of a lease says; nobody holds one whose holder is None."""

    holder: Holder | None
    epoch: int
    seconds: float
    renewals: int = 0

    def to_bytes(self) -> bytes:
        """As it is written."""
        return json.dumps(asdict(self)).encode()

    @classmethod
    def from_bytes(cls, content: bytes, name: str) -> LeaseNote:
        """As it is read."""
        try:
            found = json.loads(content)
            holder = None if found["holder"] is None else Holder(**found["holder"])
            return cls(holder, int(found["epoch"]), float(found["seconds"]), int(found["renewals"]))
        except (ValueError, KeyError, TypeError) as error:
            raise CheckpointError(
                f"the lease {name!r} is damaged ({error}); restore it, or delete it while no server or flow uses it"
            ) from None


@dataclass
class Lease:
    """One process's side of a lease.

    Attributes:
        storage: what keeps the object.
        name: the name of the object.
        seconds: how long the lease holds without being renewed.
        holder: who takes it.
        clock: a monotonic clock.
        epoch: the epoch in which it is held; 0 before it was taken.

    >>> from penstock.storage.memory import MemoryStorage
    >>> kept = MemoryStorage()
    >>> one, other = Lease(kept, holder=Holder("one")), Lease(kept, holder=Holder("other"))
    >>> one.take(), other.take(), one.epoch
    (True, False, 1)
    >>> one.release()
    >>> other.take(), other.epoch
    (True, 2)
    """

    storage: Storage
    name: str = "lease"
    seconds: float = SECONDS
    holder: Holder = field(default_factory=Holder.this_process)
    clock: Callable[[], float] = time.monotonic
    epoch: int = 0
    other: LeaseNote | None = None
    """The note of another that was found last."""
    _first: LeaseNote | None = None
    _note: LeaseNote | None = None
    _version: Version | None = None
    _seen: Version | None = None
    _since: float = 0.0
    _loss: str = ""
    _until: float = 0.0
    _lock: threading.RLock = field(default_factory=threading.RLock, repr=False)

    def take(self) -> bool:
        """Takes the lease if nobody holds it any more; returns whether it did. Whoever waits calls it again and again."""
        found = read_if_present(self.storage, self.name)
        before = None if found is None else LeaseNote.from_bytes(found[0], self.name)
        if found is not None and before is not None and not self._has_ended(before, found[1]):
            self.other, self._first = before, self._first or before
            return False
        return self._put(
            LeaseNote(self.holder, 1 if before is None else before.epoch + 1, self.seconds), found and found[1]
        )

    def _has_ended(self, note: LeaseNote, version: Version) -> bool:
        if note.holder is None or note.holder.has_died:
            return True
        if version != self._seen:
            self._seen, self._since = version, self.clock()
        return self.clock() - self._since >= note.seconds

    def look_anew(self) -> None:
        """Has the time begin anew after which the lease of another has ended."""
        self._seen = None

    @property
    def is_renewed(self) -> bool:
        """Whether another has renewed the lease since `take` found it first: it runs."""
        return self.other != self._first

    def _put(self, note: LeaseNote, expected: Version | None) -> bool:
        """Swaps the note for another. A swap that took effect although its answer was lost is found again."""
        sent = self.clock()
        try:
            version = self.storage.compare_and_swap(self.name, expected, note.to_bytes())
        except Conflict:
            found = read_if_present(self.storage, self.name)
            if found is None or found[0] != note.to_bytes():
                return False
            version = found[1]
        self._note, self._version, self._until, self.epoch = note, version, sent + self.seconds, note.epoch
        return True

    def renew(self) -> None:
        """Says that the holder is there.

        Raises:
            LeaseLost: another holds the lease.
        """
        with self._lock:
            if self._note is None:
                raise LeaseLost(self._loss or "the lease is not held")
            if not self._put(replace(self._note, renewals=self._note.renewals + 1), self._version):
                self._note, self._loss = None, self._lost()
                raise LeaseLost(self._loss)

    def check(self) -> None:
        """Returns if the lease is held as far as is known here; looks at the object when its time is over.

        Raises:
            LeaseLost: another holds the lease.
        """
        with self._lock:
            if self._note is None or self.clock() >= self._until:
                self.renew()

    def release(self) -> None:
        """Gives the lease up, so that the next need not wait for its end. A lease that was lost is left as it is."""
        with self._lock, suppress(StorageError):
            if self._note is not None:
                self._put(LeaseNote(None, self.epoch, self.seconds), self._version)
            self._note = None

    def _lost(self) -> str:
        found = None
        with suppress(PenstockError):
            found = read_if_present(self.storage, self.name)
        holder = None if found is None else LeaseNote.from_bytes(found[0], self.name).holder
        by = f"{holder} has taken over" if holder is not None else "its lease was given up"
        return (
            f"this driver (epoch {self.epoch}) no longer has the checkpoint: {by}. It was paused, or could not reach the storage, for longer than "
            f"its lease of {self.seconds:g} s; nothing of the batch under way is lost, the other driver runs it"
        )


@dataclass
class KeptLease:
    """A lease that a thread of this process renews."""

    lease: Lease
    failure: LeaseLost | None = None
    _ended: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def start(self) -> KeptLease:
        """Begins to renew the lease, which must have been taken."""
        self._thread = threading.Thread(target=self._run, daemon=True, name="penstock-lease")
        self._thread.start()
        return self

    def _run(self) -> None:
        while not self._ended.wait(self.lease.seconds / _RENEWALS):
            try:
                self.lease.renew()
            except LeaseLost as lost:
                self.failure = lost
                return
            except (StorageError, OSError):  # tried again; whoever commits looks at the time itself
                continue

    def check(self) -> None:
        """Returns if the lease is held; raises LeaseLost otherwise."""
        if self.failure is not None:
            raise self.failure
        self.lease.check()

    def close(self) -> None:
        """Stops renewing, and gives the lease up."""
        self._ended.set()
        if self._thread is not None:
            self._thread.join(timeout=5)
        self.lease.release()
