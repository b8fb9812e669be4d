"""Every error the log raises on purpose.

PenstockError
└── LogError
    ├── UnknownTopic        a topic or partition that is not there (any more)
    ├── TopicExists         a topic of that name is there already
    ├── BadSetting          a topic setting or an argument that cannot be used
    ├── BadRecord           a record the log cannot take: too large, wrong type, no key where one is needed
    ├── BadPredicate        a subscription predicate that cannot be read
    ├── OffsetOutOfRange    an offset that retention has removed, or that is not written yet
    ├── LogDamaged          bytes that were acknowledged once cannot be read any more
    ├── ProducerFenced      a newer producer of the same name has taken over
    ├── OutOfOrderSequence  a producer's batch does not follow the one before it
    ├── NotAssigned         a consumer asked for a partition that another member holds
    └── LogClosed           the log, producer or consumer is closed
"""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import PenstockError


class LogError(PenstockError):
    """The base of all errors of the log."""


class UnknownTopic(LogError):
    """A topic or partition that is not there, or not any more."""


class TopicExists(LogError):
    """A topic of that name is there already."""


class BadSetting(LogError):
    """A setting or an argument that cannot be used."""


class BadRecord(LogError):
    """A record the log cannot take."""


class BadPredicate(LogError):
    """A subscription predicate that cannot be read."""


class OffsetOutOfRange(LogError):
    """An offset below the first or above the last the partition has."""

    def __init__(self, topic: str, partition: int, offset: int, start: int, end: int) -> None:
        self.topic, self.partition, self.offset, self.start, self.end = topic, partition, offset, start, end
        super().__init__(
            f"topic {topic!r} partition {partition} holds offsets {start} to {end} (not included), not {offset}; "
            "retention may have removed it: seek to the beginning, to a time, or to another offset"
        )


@dataclass(frozen=True)
class Damage:
    """Where the log cannot be read: offsets `first` to `next` (not included), bytes `position` to `until` of `file`."""

    topic: str
    partition: int
    first: int
    next: int
    file: str
    position: int
    until: int
    reason: str

    def __str__(self) -> str:
        return (
            f"topic {self.topic!r} partition {self.partition}: offsets {self.first} to {self.next} (not included) "
            f"cannot be read: {self.reason} ({self.file}, bytes {self.position} to {self.until})"
        )


class LogDamaged(LogError):
    """Bytes that were acknowledged once cannot be read any more; nothing is skipped unless the reader says so."""

    def __init__(self, damage: Damage) -> None:
        self.damage = damage
        super().__init__(
            f"{damage}; restore the file, or call skip_damage() to go on at offset {damage.next} without these records"
        )


class ProducerFenced(LogError):
    """A newer producer of the same name has taken over; this one may not write any more."""


class OutOfOrderSequence(LogError):
    """A producer's batch does not follow the last one that was written."""


class NotAssigned(LogError):
    """A consumer asked for a partition it does not hold."""


class LogClosed(LogError):
    """The log, producer or consumer is closed."""
