"""Requests that are stored together: which records go to which partition, and which are there already."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from penstock.bridge.records import Submission
from penstock.bridge.seen import KnownKeys, headers_of
from penstock.log.produce.partitioner import partition_for


class KeyReused(Exception):
    """An idempotency key was used before, for another request."""


class StoredRecords(NamedTuple):
    """Where records of a request are: its `rows`, from `offset` on. `again` says that they were there already."""

    partition: int
    offset: int
    rows: Sequence[int]
    again: bool = False


@dataclass
class Share:
    """The records of a request that go to one partition; `twin` is the same under the same key, which waits too."""

    partition: int
    rows: Sequence[int]
    offset: int = -1
    again: bool = False
    error: Exception | None = None
    twin: Share | None = None

    def stored(self) -> StoredRecords:
        """Where it is now, or what went wrong."""
        done = self.twin or self
        if done.error is not None:
            raise done.error
        return StoredRecords(self.partition, done.offset, self.rows, self.again)


@dataclass
class WaitingRequest:
    """A request that waits to be stored."""

    given: Submission
    answer: asyncio.Future[list[StoredRecords]]
    shares: list[Share] = field(default_factory=list)
    error: Exception | None = None

    def settle(self) -> None:
        """Answer, unless nobody waits for it any more."""
        if self.answer.done():
            return
        try:
            if self.error is not None:
                raise self.error
            self.answer.set_result([share.stored() for share in self.shares])
        except Exception as error:
            self.answer.set_exception(error)


class PendingBatch:
    """The records that go to one partition together."""

    def __init__(self) -> None:
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] = []
        self.headers: list[tuple[tuple[str, bytes], ...]] = []
        self.shares: list[tuple[Share, int, Submission]] = []

    def add(self, share: Share, given: Submission) -> None:
        """Put a share into the batch; its first record keeps the idempotency key."""
        self.shares.append((share, len(self.values), given))
        self.values += [given.values[row] for row in share.rows]
        self.keys += [given.keys[row] if given.keys else None for row in share.rows]
        self.headers += [given.headers + headers_of(given.ident, given.digest)]
        self.headers += [given.headers] * (len(share.rows) - 1)


class RequestSorter:
    """Spreads the requests of a group over the partitions; what is stored already is only looked up."""

    def __init__(self, seen: KnownKeys, partitions: int, turn: int) -> None:
        self._seen, self._partitions, self._turn = seen, partitions, turn
        self._pending: dict[bytes, tuple[bytes, dict[int, Share]]] = {}
        self.pending: dict[int, PendingBatch] = {}

    def add(self, waiting: WaitingRequest) -> None:
        """Sort a request in."""
        given = waiting.given
        if given.ident and self._reused(given):
            waiting.error = KeyReused("this Idempotency-Key was used before, for another request")
            return
        waiting.shares = [Share(partition, rows) for partition, rows in self._spread(given).items()]
        for share in waiting.shares:
            if not (given.ident and self._known(given, share)):
                self.pending.setdefault(share.partition, PendingBatch()).add(share, given)

    def _reused(self, given: Submission) -> bool:
        digest, _ = self._pending.get(given.ident, (given.digest, None))
        return digest != given.digest or not self._seen.agrees(given.ident, given.digest)

    def _spread(self, given: Submission) -> dict[int, Sequence[int]]:
        """The rows for each partition. For a request with an idempotency key it is the same whenever it comes."""
        other = partition_for(given.ident, self._partitions) if given.ident else self._turn
        if given.keys is None:
            return {other: range(len(given.values))}
        found: dict[int, list[int]] = {}
        for row, key in enumerate(given.keys):
            found.setdefault(other if key is None else partition_for(key, self._partitions), []).append(row)
        return dict(found)

    def _known(self, given: Submission, share: Share) -> bool:
        """Whether a share is stored, or waits already under the same key."""
        _, twins = self._pending.setdefault(given.ident, (given.digest, {}))
        known = self._seen.get(given.ident, share.partition)
        if known is not None:
            share.offset = known.offset
        share.twin = twins.get(share.partition)
        share.again = known is not None or share.twin is not None
        twins.setdefault(share.partition, share)
        return share.again
