"""A pipeline under construction: a stream, and beside it the records that must come out of it.

Every stream has the fields `k string`, `v bigint` (not null, not negative) and its event time, a timestamp. The expected records are
worked out by plain Python over lists, without kernels, batches or times: what a step means when all its input is there.
"""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import penstock as ps

SECOND = 1_000_000
EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
BEGIN = 1_704_067_200 * SECOND
KEYS = ["a", "b", "c", "dd", None]


class R(NamedTuple):
    """A record: its key, its value, and the timestamp in its event time field."""

    k: str | None
    v: int
    t: int


def moment(time: int) -> datetime.datetime:
    """Microseconds as a timestamp."""
    return EPOCH + datetime.timedelta(microseconds=time)


def micros(at: datetime.datetime) -> int:
    """A timestamp as microseconds."""
    return (at - EPOCH) // datetime.timedelta(microseconds=1)


@dataclass(frozen=True)
class Pipe:
    """A stream, its expected records, and the dice. `other` is a second stream of the flow, for steps with two inputs."""

    rng: random.Random
    label: str
    stream: ps.Stream
    rows: list[R]
    other: Pipe | None = None
    steps: tuple[str, ...] = ()
    counter: list[int] = field(default_factory=lambda: [0])
    table: Counter[Any] | None = None
    """What a table holds in the end, for a pipeline that ends with one."""

    @property
    def time(self) -> str:
        """The field of its event time."""
        timed = self.stream.event_time_of
        assert timed is not None, f"{self.label}: {self.steps} lost the event time"
        return timed.column

    @property
    def shift(self) -> int:
        """What is to be added to it."""
        timed = self.stream.event_time_of
        assert timed is not None
        return timed.shift

    def at(self, row: R) -> int:
        """The event time of a record."""
        return row.t + self.shift

    def name(self, kind: str) -> str:
        """A name for a step."""
        self.counter[0] += 1
        return f"{self.label}-{self.counter[0]}-{kind}"

    def by_key(self) -> dict[str | None, list[R]]:
        """The records by key."""
        made: dict[str | None, list[R]] = {}
        for row in self.rows:
            made.setdefault(row.k, []).append(row)
        return made

    def then(self, stream: ps.Stream, rows: Iterable[R], step: str) -> Pipe:
        """The pipeline with one more step."""
        return replace(self, stream=stream, rows=list(rows), steps=(*self.steps, step))

    def end(self, stream: ps.Stream, table: Iterable[Any], step: str) -> Pipe:
        """The pipeline, ended by a table."""
        made = Counter(map(plain, table))
        return replace(self, stream=stream, rows=[], table=made, steps=(*self.steps, step))

    @property
    def expected(self) -> Counter[Any]:
        """What must come out."""
        return Counter(map(plain, self.rows)) if self.table is None else self.table


def plain(row: Any) -> tuple[Any, ...]:
    """A row as values that can be counted, its timestamps as microseconds."""
    return tuple(map(_plain, row))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime.datetime):
        return micros(value)
    if isinstance(value, Mapping):
        return tuple((name, _plain(each)) for name, each in value.items())
    return tuple(map(_plain, value)) if isinstance(value, list) else value
