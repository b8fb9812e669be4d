"""Idempotency keys: what was stored under which, so that a request that comes again is answered and not stored again.

A key stands in a header of the first record it brought into each partition. So a bridge that starts reads the newest records and
knows the keys again; also those of a request that reached one partition and not yet another.
"""

from __future__ import annotations

from typing import NamedTuple

from penstock.log import Log, LogDamaged, OffsetOutOfRange, Record

KEY, DIGEST = "idempotency-key", "idempotency-digest"
_CHUNK = 10_000


class Known(NamedTuple):
    """The first offset of what was stored, and the digest of what it was."""

    offset: int
    digest: bytes


class KnownKeys:
    """The newest keys of each partition; the oldest are forgotten first."""

    def __init__(self, partitions: int, most: int) -> None:
        self._most = max(most // partitions, 1)
        self._known: list[dict[bytes, Known]] = [{} for _ in range(partitions)]

    def get(self, ident: bytes, partition: int) -> Known | None:
        """What is stored under a key in a partition."""
        return self._known[partition].get(ident)

    def agrees(self, ident: bytes, digest: bytes) -> bool:
        """Whether a key stands for nothing else yet, in any partition."""
        return all(known[ident].digest == digest for known in self._known if ident in known)

    def put(self, ident: bytes, partition: int, known: Known) -> None:
        """Remember a key.

        >>> seen = KnownKeys(1, most=1)
        >>> seen.put(b"a", 0, Known(7, b"")); seen.put(b"b", 0, Known(8, b""))
        >>> seen.get(b"a", 0), seen.get(b"b", 0).offset
        (None, 8)
        """
        mine = self._known[partition]
        mine[ident] = known
        if len(mine) > self._most:
            del mine[next(iter(mine))]

    def load(self, log: Log, topic: str) -> None:
        """Find the keys of the newest records."""
        for partition, (start, end) in log.offsets(topic).items():
            at = max(start, end - self._most)
            while at < end:
                at = self._load(log, topic, partition, at)

    def _load(self, log: Log, topic: str, partition: int, at: int) -> int:
        """Read some records; where to go on. What cannot be read any more is left to its readers to find."""
        try:
            records = log.read(topic, partition, at, max_records=_CHUNK)
        except LogDamaged as error:
            return error.damage.next
        except OffsetOutOfRange as error:
            return max(error.start, at + 1)
        for record in records:
            if record.headers:
                self._note(record)
        return records[-1].offset + 1 if records else log.offsets(topic)[partition][1]

    def _note(self, record: Record) -> None:
        found = dict(record.headers)
        ident = found.get(KEY)
        if ident:
            self.put(ident, record.partition, Known(record.offset, found.get(DIGEST) or b""))


def headers_of(ident: bytes, digest: bytes) -> tuple[tuple[str, bytes], ...]:
    """The headers that keep a key."""
    return ((KEY, ident), (DIGEST, digest)) if ident else ()
