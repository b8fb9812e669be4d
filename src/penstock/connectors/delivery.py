"""The ledger of a sink: what makes a batch arrive exactly once.

A sink that keeps a ledger writes one row for each life of a flow (its lineage) in the same atomic commit as the batch
itself: which batch it was, the fingerprint of the offsets it was made of, and the fence of the driver that wrote it. A batch that
comes again with the same fingerprint is skipped; anything that does not fit is refused, because it can only be wrong.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from penstock.connectors.base import Batch, SinkConnector, SinkContext
from penstock.errors import DeliveryError
from penstock.graph.capabilities import LEDGER_SINK, Capabilities

WRITE, SKIP = "write", "skip"


@dataclass(frozen=True)
class Entry:
    """The last line of a ledger. `offsets` is the text of Spark's offsets, so that a lost file can be written again.

    One that is not complete is of a batch that was written in part: the flow goes on with just these offsets, and adds the rest.
    """

    batch: int
    fingerprint: str
    fence: int
    rows: int = 0
    crc: int = 0
    offsets: str = ""
    is_complete: bool = True
    refused: str = ""
    """The dead letters of the rows that the sink refused, as text; empty where the sink keeps none, or they are too many."""

    @property
    def finished(self) -> int:
        """The last batch that is there as a whole."""
        return self.batch if self.is_complete else self.batch - 1

    def as_json(self) -> str:
        """The entry as text."""
        return json.dumps(asdict(self))

    @classmethod
    def of(cls, batch: Batch, fence: int, rows: int, crc: int = 0, refused: str = "") -> Entry:
        """The entry of a batch that is being written."""
        return cls(batch.id, batch.fingerprint, fence, rows, crc, batch.offsets, refused=refused)

    @classmethod
    def from_json(cls, text: str | bytes) -> Entry:
        """The entry that a text stands for."""
        found: dict[str, Any] = json.loads(text)
        return cls(**{k: v for k, v in found.items() if k in cls.__dataclass_fields__})


def verdict(entry: Entry | None, batch: Batch, fence: int) -> str:
    """Whether a batch is to be written or was written already; to be asked inside the sink's own transaction.

    >>> about = Batch(7, "out", fingerprint="ab")
    >>> verdict(None, about, fence=1), verdict(Entry(6, "aa", 1), about, fence=2), verdict(Entry(7, "ab", 1), about, fence=2)
    ('write', 'write', 'skip')
    """
    if entry is None:
        return WRITE
    if entry.fence > fence:
        raise fenced(batch, entry.fence, fence)
    if entry.batch < batch.id:
        return _next(entry, batch)
    if entry.batch == batch.id and entry.fingerprint == batch.fingerprint:
        return SKIP
    if entry.batch == batch.id:
        raise DeliveryError(
            f"sink {batch.sink!r} holds batch {batch.id} already, made of other offsets than now. The checkpoint is not the one "
            f"it was written with; restore that one, or start afresh with --fresh and an empty sink"
        )
    raise DeliveryError(
        f"sink {batch.sink!r} holds batch {entry.batch}, got batch {batch.id}. The checkpoint is older than the sink; restore "
        f"the newer one, or start afresh with --fresh and an empty sink"
    )


def fenced(batch: Batch, highest: int, fence: int) -> DeliveryError:
    """What a driver gets that was replaced by another."""
    return DeliveryError(
        f"sink {batch.sink!r}: another driver of this flow has taken over (its fence is {highest}, this one's {fence}). "
        f"This one must stop; it has written nothing more of batch {batch.id}"
    )


def _next(entry: Entry, batch: Batch) -> str:
    if batch.id > entry.batch + 1:
        raise DeliveryError(
            f"sink {batch.sink!r} holds everything up to batch {entry.batch}, got batch {batch.id}, so what lies between is "
            f"not there. The sink is older than the checkpoint; restore it, or start afresh with --fresh and an empty sink"
        )
    return WRITE


class LedgerSink(SinkConnector):
    """The base of sinks that keep a ledger.

    `open` must raise the fence by one, atomically, and keep it in `self.fence`; `StagedBatch.commit` must ask `verdict` and write
    the entry inside the one transaction that shows the batch.
    """

    capabilities: ClassVar[Capabilities] = LEDGER_SINK
    fence = 0

    def open(self, context: SinkContext) -> Entry | None:
        """Takes over from older drivers, and returns the last entry of this lineage."""
        raise NotImplementedError

    def clean(self) -> None:
        """Removes what attempts that never committed have left."""
