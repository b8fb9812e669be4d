"""The ledger of messages in a checkpoint: what is held and what failed after each batch.

A file is written with the state of the batch, before its manifest; a batch that runs again begins with the ledger of the batch before it and
writes its own anew. Of batches that change nothing there is no file.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field

from penstock.graph.logic.topology.acks import AckReport
from penstock.kernels.topology.pending import AckLedger
from penstock.storage import Storage, names_under

KEEP = 20
"""So many files of older batches stay."""


@dataclass
class AckLog:
    """The ledger of a run, by batch.

    Attributes:
        storage: where its files are.
        ledger: what is known after batch `version`.
        renewed: the roots to which that batch has given more time.
    """

    storage: Storage
    ledger: AckLedger = field(default_factory=AckLedger)
    version: int | None = None
    renewed: frozenset[int] = frozenset()
    _staged: tuple[int, AckLedger, frozenset[int]] | None = None
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def load(self, version: int) -> None:
        """Goes on from a batch; what later ones have written does not count."""
        names = {_number(name): name for name in names_under(self.storage, "acks-")}
        self.storage.delete(*(name for number, name in names.items() if number > version))
        found = max((number for number in names if number <= version), default=None)
        self.ledger = AckLedger() if found is None else _read(self.storage.read(names[found]))
        self.version = version

    def stage(self, batch: int, base: int, report: AckReport) -> None:
        """Writes the ledger after a batch; it counts when the batch is committed."""
        with self._lock:
            if self.version != base:
                self.load(base)
            made = self.ledger.copy()
            made.add(batch, report)
            if made != self.ledger:
                self.storage.write(_name(batch), _text(made))
            self._staged = (batch, made, frozenset(report.renewed))

    def commit(self, batch: int) -> None:
        """The batch is committed."""
        with self._lock:
            if self._staged is None or self._staged[0] != batch:
                return
            has_changed = self._staged[1] != self.ledger
            self.version, self.ledger, self.renewed = self._staged
            self._staged = None
            if has_changed:
                old = [name for name in names_under(self.storage, "acks-") if _number(name) < batch]
                self.storage.delete(*old[:-KEEP])

    def forget(self, roots: set[int]) -> None:
        """Drops what spouts have taken in, and saved."""
        with self._lock:
            for ledger in (self.ledger, *([self._staged[1]] if self._staged else [])):
                ledger.forget(roots)


def _name(batch: int) -> str:
    return f"acks-{batch:09d}.json"


def _number(name: str) -> int:
    return int(name.rpartition("-")[2].split(".")[0])


def _text(ledger: AckLedger) -> bytes:
    return json.dumps({"open": list(ledger.open.items()), "failed": list(ledger.failed.items())}).encode()


def _read(content: bytes | memoryview) -> AckLedger:
    given = json.loads(bytes(content))
    return AckLedger(dict(given["open"]), dict(given["failed"]))
