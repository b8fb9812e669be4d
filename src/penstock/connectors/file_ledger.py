"""The ledger of a sink that has no transactions: one object of a storage, replaced only by whoever has seen its last content.

A driver raises the fence in it when it starts. From then on every swap of an older driver fails, wherever that one was paused: it
cannot write over what its successor has noted.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, NoReturn

from penstock.connectors.base import Batch
from penstock.connectors.delivery import Entry, fenced
from penstock.errors import DeliveryError
from penstock.faults import passing
from penstock.storage import Conflict, Storage, Version, read_if_present


@dataclass(frozen=True)
class Intent:
    """A batch that is about to be written: at which record number it begins in each partition."""

    batch: int
    fingerprint: str
    begins: Mapping[int, int]
    offsets: str = ""

    def is_of(self, batch: Batch) -> bool:
        """Whether it is the intent of this batch, made of the same offsets."""
        return self.batch == batch.id and self.fingerprint == batch.fingerprint


@dataclass(frozen=True)
class LedgerState:
    """What a ledger holds: the fence of the driver that writes, its last batch, and the one under way."""

    fence: int = 0
    entry: Entry | None = None
    intent: Intent | None = None

    def as_bytes(self) -> bytes:
        """The state as JSON with a checksum."""
        data = asdict(self)
        whole = {"checksum": _checksum(data), "data": data}
        return (json.dumps(whole, indent=1, sort_keys=True) + "\n").encode()


@dataclass
class FileLedger:
    """The ledger of one sink and one lineage. It knows the version that it has read last."""

    storage: Storage
    name: str
    version: Version | None = None

    def read(self) -> LedgerState:
        """What the ledger holds now."""
        found = read_if_present(self.storage, self.name)
        self.version = None if found is None else found[1]
        return LedgerState() if found is None else _state(found[0], self.name)

    def read_as(self, batch: Batch, fence: int) -> LedgerState:
        """What the ledger holds, for a driver that is about to write; one that was replaced is refused.

        Raises:
            DeliveryError: Another driver has taken over.
        """
        state = self.read()
        if state.fence > fence:
            raise fenced(batch, state.fence, fence)
        passing("ledger checked", batch.id)
        return state

    def write(self, state: LedgerState, batch: Batch) -> None:
        """Replaces what was read last.

        Raises:
            DeliveryError: Another driver has written the ledger since.
        """
        try:
            self.version = self.storage.compare_and_swap(self.name, self.version, state.as_bytes())
        except Conflict:
            self._refuse(batch, state.fence)

    def take_over(self, fence: int, is_under_way: Callable[[Intent], bool]) -> LedgerState:
        """Raises the fence, and forgets an intent of which nothing was written; returns what the ledger holds then.

        Raises:
            DeliveryError: A driver that started later has raised it further.
        """
        while True:
            state = self.read()
            if state.fence > fence:
                raise DeliveryError(
                    f"another driver of this flow has taken over (fence {state.fence}, expected {fence})"
                )
            intent = state.intent if state.intent is not None and is_under_way(state.intent) else None
            taken = replace(state, fence=fence, intent=intent)
            try:
                self.version = self.storage.compare_and_swap(self.name, self.version, taken.as_bytes())
            except Conflict:
                continue
            return taken

    def _refuse(self, batch: Batch, fence: int) -> NoReturn:
        state = self.read()
        if state.fence > fence:
            raise fenced(batch, state.fence, fence) from None
        raise DeliveryError(
            f"sink {batch.sink!r}: its ledger was changed by someone else while batch {batch.id} was written. Start again, and see that "
            f"one driver of this flow runs"
        ) from None


def _state(content: bytes, name: str) -> LedgerState:
    try:
        whole = json.loads(content)
        data = whole["data"]
        if whole["checksum"] != _checksum(data):
            raise ValueError("the checksum does not fit")
        entry, intent = data["entry"], data["intent"]
        return LedgerState(
            int(data["fence"]), None if entry is None else Entry(**entry), None if intent is None else _intent(intent)
        )
    except (ValueError, KeyError, TypeError) as error:
        raise DeliveryError(
            f"the ledger {name} is damaged ({error}), so nobody knows what was written; restore it from a copy"
        ) from None


def _intent(found: dict[str, Any]) -> Intent:
    return Intent(**{**found, "begins": {int(p): n for p, n in found["begins"].items()}})


def _checksum(data: object) -> int:
    return zlib.crc32(json.dumps(data, sort_keys=True).encode())
