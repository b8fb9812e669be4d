"""Functions over the frame of a row: rows in order, and for each of them what it sees around it.

A frame that begins with the first row is a running total: it keeps the answer alone. One with two ends slides over the rows: what comes into it is
added, what leaves it is taken back.
"""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from penstock.graph.nodes.relational.over import ROWS, SHARES, Frame, OverCall
from penstock.graph.schema import Schema
from penstock.graph.times import to_micros
from penstock.kernels.changes.accumulators import Accumulator, accumulator_of
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.keyed.aggregates import begins, finish, merges
from penstock.kernels.records.chunk import shape_of

Row = tuple[Any, ...]
DAY = 86_400_000_000


@dataclass
class Passed:
    """What is known of the rows of a partition that were answered already.

    Args:
        number: how many they are.
        dense: how many different orders they have.
        rank: the rank of the last of them.
        last: the order of the last of them.
        running: the parts of the running totals.
        first: the first row.
    """

    number: int = 0
    dense: int = 0
    rank: int = 0
    last: Any = None
    running: list[Any] | None = None
    first: Row | None = None


@dataclass
class Partition:
    """Rows of a partition in order, each with its order; `begin` is the first that is not answered."""

    rows: Sequence[Row]
    orders: Sequence[Any]
    """What rows are peers by."""
    distances: Sequence[Any]
    """What a range is measured by, growing; empty where there is none."""
    begin: int = 0
    passed: Passed = field(default_factory=Passed)


class Running:
    """Aggregates from the first row to the current one."""

    def __init__(self, calls: Sequence[OverCall], schema: Schema) -> None:
        self.aggregates = [call.aggregate for call in calls if call.aggregate is not None]
        self.begins = [begin for a in self.aggregates for begin in begins(a, schema)]
        self.merges = [merge for a in self.aggregates for merge in merges(a)]
        self.make = shape_of(schema).make

    def add(self, parts: list[Any] | None, row: Row) -> list[Any]:
        """The parts with one more row."""
        record = self.make(row)
        made = [begin(row, record) for begin in self.begins]
        return made if parts is None else [m(a, b) for m, a, b in zip(self.merges, parts, made, strict=True)]

    def results(self, parts: list[Any]) -> list[Any]:
        """What the aggregates answer."""
        made, at = [], 0
        for aggregate in self.aggregates:
            width = len(merges(aggregate))
            made.append(finish(aggregate, tuple(parts[at : at + width])))
            at += width
        return made


class Sliding:
    """Aggregates over rows from one to another, both of which only move on."""

    def __init__(self, calls: Sequence[OverCall], schema: Schema) -> None:
        self.accumulators: list[tuple[Accumulator, int]] = []
        at = 0
        for call in calls:
            if call.aggregate is not None:
                made = accumulator_of(call.aggregate, schema)
                self.accumulators.append((made, at))
                at += made.width
        self.make = shape_of(schema).make
        self.start()

    def start(self) -> None:
        """Begins with no rows."""
        self.low = self.high = 0
        self.parts = [part for made, _ in self.accumulators for part in made.empty()]

    def move(self, rows: Sequence[Row], low: int, high: int) -> None:
        """Goes on to the rows from `low` up to before `high`."""
        if low >= self.high:
            self.start()
            self.low = self.high = low
        for at in range(self.high, high):
            self._add(rows[at], 1)
        for at in range(self.low, min(low, self.high)):
            self._add(rows[at], -1)
        self.low, self.high = max(low, self.low), max(high, self.high)

    def _add(self, row: Row, count: int) -> None:
        record = self.make(row)
        for made, at in self.accumulators:
            made.add(self.parts, at, row, record, count)

    def results(self) -> list[Any]:
        """What the aggregates answer."""
        return [made.result(self.parts, at, self.high - self.low) for made, at in self.accumulators]


class Frames:
    """The functions of a step over the rows of a partition."""

    def __init__(self, calls: Sequence[OverCall], frame: Frame, schema: Schema) -> None:
        self.calls, self.frame = calls, frame
        self.is_running = frame.is_running
        self.running, self.sliding = Running(calls, schema), Sliding(calls, schema)
        self.values = {c.name: compile_expr(c.argument, schema) for c in calls if c.argument is not None}
        self.defaults = {c.name: compile_expr(c.default, schema) for c in calls if c.default is not None}
        self.aggregated = [call.name for call in calls if call.aggregate is not None]

    def answers(self, given: Partition, until: int) -> list[Row]:
        """The results of the rows from `begin` up to before `until`; what was passed is noted in the partition."""
        self.sliding.start()
        self.low = self.high = self.peers = 0
        made = [self._answer(given, at) for at in range(given.begin, until)]
        given.begin = max(until, given.begin)
        return made

    def _answer(self, given: Partition, at: int) -> Row:
        passed, order = given.passed, given.orders[at]
        fresh = passed.number == 0 or order != passed.last
        if passed.first is None:
            passed.first = given.rows[at]
        passed.number += 1
        if fresh:
            passed.dense, passed.rank, passed.last = passed.dense + 1, passed.number, order
        totals = self._running(given, at, fresh) if self.is_running else self._sliding(given, at)
        known = dict(zip(self.aggregated, totals, strict=True))
        return tuple(known[c.name] if c.name in known else self._picked(c, given, at) for c in self.calls)

    def _running(self, given: Partition, at: int, fresh: bool) -> list[Any]:
        passed = given.passed
        if self.frame.unit == ROWS:
            passed.running = self.running.add(passed.running, given.rows[at])
        elif fresh:
            for peer in range(at, self._peers(given, at)):
                passed.running = self.running.add(passed.running, given.rows[peer])
        return [] if not self.aggregated else self.running.results(passed.running or [])

    @staticmethod
    def _peers(given: Partition, at: int) -> int:
        """Where the rows of the same order end."""
        end = at + 1
        while end < len(given.rows) and given.orders[end] == given.orders[at]:
            end += 1
        return end

    def _sliding(self, given: Partition, at: int) -> list[Any]:
        low, high = self.bounds(given, at)
        self.sliding.move(given.rows, low, high)
        return self.sliding.results()

    def bounds(self, given: Partition, at: int) -> tuple[int, int]:
        """From which row the frame of a row is, and up to before which; both only move on from row to row."""
        many, before, after = len(given.rows), self.frame.before, self.frame.after
        if self.frame.unit == ROWS:
            low = 0 if before is None else min(many, max(0, at - before))
            return low, many if after is None else max(low, min(many, at + after + 1))
        self.low = self._edge(given, at, self.low, before)
        if after is None:
            return self.low, many
        if after < 0:
            self.high = max(self.low, self._beyond(given, at, self.high, after, or_equal=True))
            return self.low, self.high
        if at >= self.peers:
            self.peers = self._peers(given, at)
        self.high = max(self.high, self.peers)
        here = given.distances[at] if after else None
        while here is not None and self.high < len(given.rows) and _within(here, given.distances[self.high], after):
            self.high += 1
        return self.low, self.high

    def _edge(self, given: Partition, at: int, low: int, before: int | None) -> int:
        if before is None:
            return 0
        if before < 0:
            return self._beyond(given, at, low, -before)
        if not before:
            while given.orders[low] != given.orders[at]:
                low += 1
            return low
        here = given.distances[at]
        while low < at and not _within(given.distances[low], here, before) and given.orders[low] != given.orders[at]:
            low += 1
        return low

    def _beyond(self, given: Partition, at: int, edge: int, offset: int, or_equal: bool = False) -> int:
        """The first row from an edge on that is not nearer than so far after a row; a row of null sees those of null."""
        here = given.distances[at]
        while edge < len(given.rows):
            there = given.distances[edge]
            if here is None and there is None:
                passes = or_equal
            elif here is None or there is None:
                passes = edge < at
            else:
                passes = there <= here + offset if or_equal else there < here + offset
            if not passes:
                break
            edge += 1
        return edge

    def _picked(self, call: OverCall, given: Partition, at: int) -> Any:
        passed = given.passed
        if call.function in ("row_number", "rank", "dense_rank"):
            return {"row_number": passed.number, "rank": passed.rank, "dense_rank": passed.dense}[call.function]
        if call.function in SHARES:
            return _share(call, passed, len(given.rows), self._peers(given, at))
        value = self.values[call.name]
        if call.function in ("lag", "lead"):
            other = at - call.offset if call.function == "lag" else at + call.offset
            if 0 <= other < len(given.rows):
                return value(given.rows[other])
            return self.defaults[call.name](given.rows[at]) if call.name in self.defaults else None
        return self._end(call, value, given, at)

    def _end(self, call: OverCall, value: Callable[[Row], Any], given: Partition, at: int) -> Any:
        """The first, the last or the nth value of the frame; null where it has no such row."""
        ends_here = self.frame.after is None or self.frame.after >= 0
        if call.function == "first_value" and self.frame.before is None and ends_here:
            return value(given.passed.first or given.rows[at])
        if call.function == "last_value" and self.is_running:
            return value(given.rows[at if self.frame.unit == ROWS else self._peers(given, at) - 1])
        low, high = self.bounds(given, at)
        picked = {"first_value": low, "last_value": high - 1}.get(call.function, low + call.offset - 1)
        return value(given.rows[picked]) if low <= picked < high else None


def _share(call: OverCall, passed: Passed, many: int, peers: int) -> int | float:
    """Where a row stands among all rows of its partition."""
    if call.function == "cume_dist":
        return peers / many
    if call.function == "percent_rank":
        return (passed.rank - 1) / (many - 1) if many > 1 else 0.0
    size, longer = divmod(many, call.offset)
    at, edge = passed.number - 1, longer * (size + 1)
    return at // (size + 1) + 1 if at < edge else longer + (at - edge) // size + 1


def _within(one: Any, other: Any, distance: int) -> bool:
    """Whether a value is at most so far before another; null is near to null alone."""
    return one is not None and other is not None and other - one <= distance


def measure(value: object) -> Any:
    """What a range is measured by: numbers as they are, times in microseconds."""
    if isinstance(value, datetime.datetime):
        return to_micros(value)
    if isinstance(value, datetime.date):
        return value.toordinal() * DAY
    return value
