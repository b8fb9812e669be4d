"""Numbers that count up to a limit, at a pace, and then are over: a source that Spark can find quiet."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence

import pyarrow as pa

from penstock.connectors.ranges import Offset, Ranges, Stretch

FIELDS = "timestamp timestamp, value bigint"
_SCHEMA = pa.schema([("timestamp", pa.timestamp("us", tz="UTC")), ("value", pa.int64())])
_ROWS = 10_000
_SECOND = 1_000_000


class Numbers(Ranges):
    """Offsets are how many numbers there were, and when the first came. As of Spark's own source, those of a second come together."""

    def __init__(self, per_second: int, limit: int, tasks: int) -> None:
        self.per_second = per_second
        self.most_of_all = limit
        self.tasks = tasks
        self.begin: tuple[float, int] | None = None
        self.is_paced = True

    def first(self) -> Offset:
        """None yet."""
        return {"n": 0, "began": time.time_ns() // 1000}

    def latest(self, start: Offset, most: int | None) -> Offset:
        """As many as the pace allows since this run began; a run that goes on does not hurry to catch up."""
        if self.begin is None:
            self.begin = (time.monotonic(), start["n"])
        since, before = self.begin
        due = before + int(time.monotonic() - since) * self.per_second if self.is_paced else self.most_of_all
        at_most = self.most_of_all if most is None else min(self.most_of_all, start["n"] + most)
        return {**start, "n": max(start["n"], min(due, at_most))}

    def target(self) -> Offset:
        """All of them, without waiting: a run that takes what is there takes what a bounded run takes."""
        self.is_paced = False
        return {"n": self.most_of_all, "began": 0}

    def within(self, offset: Offset, target: Offset) -> Offset:
        """The one with fewer numbers."""
        return offset if offset["n"] <= target["n"] else {**offset, "n": target["n"]}

    def stretches(self, start: Offset, end: Offset) -> Sequence[Stretch]:
        """Even parts, one for each task."""
        low, count = start["n"], end["n"] - start["n"]
        cuts = [low + count * i // self.tasks for i in range(self.tasks + 1)]
        return [Stretch({**end, "n": a}, {**end, "n": b}) for a, b in itertools.pairwise(cuts) if a < b]

    def read(self, part: Stretch) -> Iterator[pa.RecordBatch]:
        """The numbers, dated by their place."""
        for low in range(part.low["n"], part.high["n"], _ROWS):
            numbers = range(low, min(low + _ROWS, part.high["n"]))
            times = [part.high["began"] + n * _SECOND // self.per_second for n in numbers]
            yield pa.RecordBatch.from_arrays(
                [pa.array(times, _SCHEMA[0].type), pa.array(numbers, pa.int64())], schema=_SCHEMA
            )
