"""A record, as it comes out of the log."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class Record(NamedTuple):
    """One record; `value` None is a tombstone: on a compacted topic it says that the key is deleted.

    >>> Record("orders", 0, 7, 1_700_000_000_000, b"k", b'{"total": 3}').json()
    {'total': 3}
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()

    def json(self) -> Any:
        """The value read as JSON; None for a tombstone."""
        return None if self.value is None else json.loads(self.value)


class TopicPartition(NamedTuple):
    """A partition of a topic."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class AppendResult(NamedTuple):
    """Where an append went: offsets `offset` to `offset + records` (not included).

    `duplicate` says that the batch was in the log already, from an earlier try; `offset` is then -1 when it is too long ago.
    """

    topic: str
    partition: int
    offset: int
    records: int
    duplicate: bool = False
