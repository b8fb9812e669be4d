"""The ledger of messages in a checkpoint: what is held and what failed after each batch.

A file is written with the state of the batch, before its manifest; a batch that runs again begins with the ledger of the batch before it and
writes its own anew. Of batches that change nothing there is no file where nobody can take over; where another driver can, each batch writes one,
so that nothing counts which a driver has left there that was replaced.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from typing import Any

from penstock.graph.logic.topology.acks import AckReport
from penstock.kernels.topology.pending import AckLedger
from penstock.state.notes import put_note, read_note, swap_note
from penstock.storage import Storage, StorageError, names_under, number_of

ACKS = "acks"
"""Where the ledger is in a checkpoint."""
KEEP = 20
"""So many files of older batches stay, at least."""
_FORGET_EVERY = 10
"""How many files are more than those before some are deleted."""


@dataclass
class AckLog:
    """The ledger of a run, by batch.

    Attributes:
        storage: where its files are.
        keep: for how many batches before the last the ledger can be asked for.
        epoch: the epoch of the driver that writes: no file of a later one is replaced. 0 where no other can take over.
        ledger: what is known after batch `version`.
        renewed: the roots to which that batch has given more time.
    """

    storage: Storage
    keep: int = KEEP
    epoch: int = 0
    ledger: AckLedger = field(default_factory=AckLedger)
    version: int | None = None
    renewed: frozenset[int] = frozenset()
    _staged: tuple[int, AckLedger, frozenset[int]] | None = None
    _later: frozenset[int] = frozenset()
    """The batches after the one that it goes on from, of which there are files: they do not count, and are replaced as the batches run."""
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def load(self, version: int) -> None:
        """Goes on from a batch; what later ones have written does not count."""
        names = names_under(self.storage, "acks-")
        found = file_at(names, version)
        self.ledger = AckLedger() if found is None else _read(self.storage, found)
        self.version, self._later = version, frozenset(n for n in map(number_of, names) if n > version)

    def stage(self, batch: int, base: int, report: AckReport) -> None:
        """Writes the ledger after a batch; it counts when the batch is committed.

        Raises:
            StateError: A later driver has written that of this batch.
        """
        with self._lock:
            if self.version != base:
                self.load(base)
            made = self.ledger.copy()
            made.add(batch, report)
            if self.epoch:
                swap_note(self.storage, _name(batch), _note(made) | {"epoch": self.epoch})
            elif made != self.ledger or batch in self._later:
                put_note(self.storage, _name(batch), _note(made))
            self._staged = (batch, made, frozenset(report.renewed))

    def commit(self, batch: int) -> None:
        """The batch is committed."""
        with self._lock:
            if self._staged is None or self._staged[0] != batch:
                return
            self.version, self.ledger, self.renewed = self._staged
            self._staged = None
            if batch % _FORGET_EVERY == 0:
                self._forget(batch - max(KEEP, self.keep))

    def _forget(self, version: int) -> None:
        """Deletes what nobody needs who goes on from a batch, or from a later one."""
        names = names_under(self.storage, "acks-")
        needed = file_at(names, version)
        self.storage.delete(*(name for name in names if needed is not None and number_of(name) < number_of(needed)))

    def forget(self, roots: set[int]) -> None:
        """Drops what spouts have taken in, and saved."""
        with self._lock:
            for ledger in (self.ledger, *([self._staged[1]] if self._staged else [])):
                ledger.forget(roots)


def file_at(names: list[str], version: int) -> str | None:
    """The file of those of some names that says how the ledger is after a batch; None where nothing was held or failed before.

    >>> file_at(["acks-000000003.json", "acks-000000012.json"], 11), file_at(["acks-000000003.json"], 2)
    ('acks-000000003.json', None)
    """
    return max((name for name in names if number_of(name) <= version), key=number_of, default=None)


def _name(batch: int) -> str:
    return f"acks-{batch:09d}.json"


def _note(ledger: AckLedger) -> dict[str, Any]:
    return {"open": list(ledger.open.items()), "failed": list(ledger.failed.items())}


def _read(storage: Storage, name: str) -> AckLedger:
    given = _plain(storage, name) or read_note(storage, name, "ledger of messages")
    return AckLedger(dict(given["open"]), dict(given["failed"]))


def _plain(storage: Storage, name: str) -> dict[str, Any] | None:
    """A file of an earlier release, which has no checksum; None for any other."""
    try:
        found = json.loads(bytes(storage.read(name)))
    except (ValueError, StorageError):
        return None
    return found if isinstance(found, dict) else None
