"""What each producer has written to a partition, so that a batch sent twice is stored once.

The numbers stand in the batches themselves; a snapshot at the start of each segment saves reading them all again.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from penstock.log.errors import OutOfOrderSequence, ProducerFenced
from penstock.log.produce.identity import UNNAMED
from penstock.log.storage.batch import Header, Stamp

_RECENT = 5
_MOST_NAMED = 10_000
_MOST_UNNAMED = 100


class SequenceRange(NamedTuple):
    """A batch of a producer: its sequence numbers and its first offset."""

    sequence: int
    records: int
    offset: int


@dataclass(frozen=True)
class Line:
    """One producer here: its newest epoch, the last sequence number, and its last few batches."""

    epoch: int
    last: int = -1
    recent: tuple[SequenceRange, ...] = ()


class Sequences:
    """All producers of a partition.

    Those that wrote longest ago are forgotten: beyond ten thousand of those with a name, and a hundred without.
    """

    def __init__(self) -> None:
        self._lines: dict[int, Line] = {}
        self._unnamed: dict[int, None] = {}

    def line(self, producer: int) -> Line | None:
        """What is known of a producer."""
        return self._lines.get(producer)

    def check(self, stamp: Stamp, count: int) -> SequenceRange | None:
        """None for a batch that is next; what was written for one that is here already; else an error."""
        line = self._lines.get(stamp.producer)
        if line is None or stamp.producer < 0:
            return None
        if stamp.epoch < line.epoch:
            raise ProducerFenced(
                f"producer {stamp.producer} has epoch {stamp.epoch}, but epoch {line.epoch} has written here since: "
                "a newer producer of the same name has taken over; close this one"
            )
        if stamp.sequence < 0 or stamp.sequence == line.last + 1:
            return None
        if stamp.sequence + count - 1 <= line.last:
            return self._known(line, stamp.sequence, count)
        raise OutOfOrderSequence(
            f"producer {stamp.producer} sent records {stamp.sequence} to {stamp.sequence + count - 1}, "
            f"but {line.last + 1} comes next: a batch before this one is missing, or this one overlaps it"
        )

    @staticmethod
    def _known(line: Line, sequence: int, count: int) -> SequenceRange:
        for written in line.recent:
            if written.sequence <= sequence and sequence + count <= written.sequence + written.records:
                return SequenceRange(sequence, count, written.offset + sequence - written.sequence)
        return SequenceRange(sequence, count, -1)

    def note(self, header: Header) -> None:
        """Take notice of a batch that is in the log."""
        if header.producer < 0:
            return
        line = self._lines.pop(header.producer, Line(header.epoch))
        epoch = max(line.epoch, header.epoch)
        if header.sequence >= 0 and header.produced:
            recent = (*line.recent, SequenceRange(header.sequence, header.produced, header.base))[-_RECENT:]
            line = Line(epoch, header.sequence + header.produced - 1, recent)
        self._lines[header.producer] = Line(epoch, line.last, line.recent)
        self._forget(header.producer)

    def _forget(self, producer: int) -> None:
        if producer >= UNNAMED:
            self._unnamed.pop(producer, None)
            self._unnamed[producer] = None
            if len(self._unnamed) > _MOST_UNNAMED:
                oldest = next(iter(self._unnamed))
                del self._unnamed[oldest], self._lines[oldest]
        elif len(self._lines) - len(self._unnamed) > _MOST_NAMED:
            del self._lines[next(p for p in self._lines if p < UNNAMED)]

    def as_json(self) -> list[Any]:
        """As plain values, oldest first."""
        return [[producer, line.epoch, line.last, line.recent] for producer, line in self._lines.items()]

    @classmethod
    def from_json(cls, data: list[Any]) -> Sequences:
        """What `as_json` gave."""
        found = cls()
        for producer, epoch, last, recent in data:
            found._lines[producer] = Line(epoch, last, tuple(SequenceRange(*w) for w in recent))
            if producer >= UNNAMED:
                found._unnamed[producer] = None
        return found
