"""Aggregates that can take values back: what they keep of a group, and what they answer.

Counts and sums subtract. All others keep the sorted multiset of their argument's values, and answer from it.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable
from functools import reduce
from typing import Any, Protocol

import pyarrow as pa

from penstock.graph import types as t
from penstock.graph.aggregates.aggregate import Aggregate
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column
from penstock.kernels.changes.multiset import SortedMultiset
from penstock.kernels.changes.rows import NegativeCount
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.keyed import sketches
from penstock.kernels.keyed.aggregates import begins, finish, merges, rank
from penstock.kernels.keyed.own import own_of, taken_of
from penstock.kernels.records.arrow import arrow_type
from penstock.kernels.records.chunk import shape_of

_EXACT = decimal.Context(prec=76)
Parts = list[Any]
"""What is kept of a group: the parts of all its accumulators, one after the other."""


class Accumulator(Protocol):
    """One aggregate over signed rows; its parts stand in a list, from `at` on."""

    width: int

    def columns(self, name: str) -> list[Column]:
        """How its parts are kept."""

    def empty(self) -> Parts:
        """Its parts before the first row."""

    def probe(self, values: tuple[Any, ...], row: object) -> object:
        """What it reads of a row; fails where `add` would, and changes nothing."""

    def add(self, parts: Parts, at: int, values: tuple[Any, ...], row: object, count: int) -> None:
        """Takes a row in so many times, or back when the count is below zero."""

    def result(self, parts: Parts, at: int, rows: int) -> object:
        """What it answers for a group of so many rows."""


class CountAll:
    """count(*): the number of rows of the group, which is kept anyway."""

    width = 0

    def columns(self, name: str) -> list[Column]:
        """Nothing of its own."""
        return []

    def empty(self) -> Parts:
        """Nothing."""
        return []

    def probe(self, values: tuple[Any, ...], row: object) -> object:
        """It reads nothing."""
        return None

    def add(self, parts: Parts, at: int, values: tuple[Any, ...], row: object, count: int) -> None:
        """Counted with the group."""

    def result(self, parts: Parts, at: int, rows: int) -> int:
        """The number of rows."""
        return rows


class Count:
    """count(x) and count_if(x)."""

    width = 1

    def __init__(self, aggregate: Aggregate, schema: Schema) -> None:
        self.one = begins(aggregate, schema)[0]

    def columns(self, name: str) -> list[Column]:
        """The number."""
        return [Column(f"{name}.n", pa.int64())]

    def empty(self) -> Parts:
        """Zero."""
        return [0]

    def probe(self, values: tuple[Any, ...], row: object) -> object:
        """The argument."""
        return self.one(values, row)

    def add(self, parts: Parts, at: int, values: tuple[Any, ...], row: object, count: int) -> None:
        """One more, or one less."""
        parts[at] += self.one(values, row) * count

    def result(self, parts: Parts, at: int, rows: int) -> object:
        """The number."""
        return parts[at]


class Sum:
    """sum(x) of whole numbers and decimals, which is exact: the sum, and how many values are in it."""

    width = 2

    def __init__(self, aggregate: Aggregate, schema: Schema) -> None:
        self.value = begins(aggregate, schema)[0]
        self.decimal = isinstance(aggregate.type, t.Decimal)
        self.kind = arrow_type(aggregate.type)

    def columns(self, name: str) -> list[Column]:
        """The sum and the number of values."""
        return [Column(f"{name}.sum", self.kind), Column(f"{name}.n", pa.int64())]

    def empty(self) -> Parts:
        """Nothing yet."""
        return [decimal.Decimal(0) if self.decimal else 0, 0]

    def probe(self, values: tuple[Any, ...], row: object) -> object:
        """The value."""
        return self.value(values, row)

    def add(self, parts: Parts, at: int, values: tuple[Any, ...], row: object, count: int) -> None:
        """Adds the value so many times; null is nothing."""
        value = self.value(values, row)
        if value is not None:
            parts[at] = _EXACT.fma(value, count, parts[at]) if self.decimal else parts[at] + value * count
            parts[at + 1] += count

    def result(self, parts: Parts, at: int, rows: int) -> object:
        """The sum; null when there is no value."""
        return parts[at] if parts[at + 1] else None


class FloatSum:
    """sum(x) and avg(x) of floats. The sum is compensated, so that what is taken back leaves no trace to speak of.

    Infinities and not-a-number cannot be subtracted; they are counted beside the sum.
    """

    width = 6

    def __init__(self, aggregate: Aggregate, schema: Schema) -> None:
        self.value = begins(aggregate, schema)[0]
        self.mean = aggregate.call == "avg"

    def columns(self, name: str) -> list[Column]:
        """The sum, its compensation, and how many values there are of each kind."""
        sums = [Column(f"{name}.{part}", pa.float64()) for part in ("sum", "rest")]
        return [*sums, *(Column(f"{name}.{part}", pa.int64()) for part in ("n", "inf", "-inf", "nan"))]

    def empty(self) -> Parts:
        """Nothing yet."""
        return [0.0, 0.0, 0, 0, 0, 0]

    def probe(self, values: tuple[Any, ...], row: object) -> object:
        """The value."""
        return self.value(values, row)

    def add(self, parts: Parts, at: int, values: tuple[Any, ...], row: object, count: int) -> None:
        """Adds the value so many times; null is nothing."""
        value = self.value(values, row)
        if value is None:
            return
        parts[at + 2] += count
        if not math.isfinite(value):
            parts[at + (5 if math.isnan(value) else 3 if value > 0 else 4)] += count
            return
        parts[at], rest = _two_sum(parts[at], value * count)
        parts[at + 1] += rest
        if not parts[at + 2]:
            parts[at], parts[at + 1] = 0.0, 0.0

    def result(self, parts: Parts, at: int, rows: int) -> object:
        """The sum or the mean; null when there is no value."""
        total, rest, many, above, below, none = parts[at : at + 6]
        if not many:
            return None
        if none or (above and below):
            return math.nan
        if above or below:
            return math.inf if above else -math.inf
        return (total + rest) / many if self.mean else total + rest


def _two_sum(one: float, other: float) -> tuple[float, float]:
    """A sum, and what rounding took from it (Knuth)."""
    total = one + other
    back = total - one
    return total, (one - (total - back)) + (other - back)


class OrderedValues:
    """Aggregates that need what is below their answer: the values of the argument, sorted, with counts."""

    width = 2

    def __init__(self, aggregate: Aggregate, schema: Schema) -> None:
        self.aggregate, self.begin = aggregate, begins(aggregate, schema)[0]
        self.part = aggregate.recipe.parts[0]
        self.paired = self.part.begin in ("pair", "pairs")
        self.of = [compile_expr(a, schema) for a in aggregate.arguments]
        self.rank = _pair_rank if self.paired else rank
        self.merge = merges(aggregate)[0]

    def columns(self, name: str) -> list[Column]:
        """The values and their counts."""
        kinds = self.aggregate.kinds
        one = pa.struct([("o", arrow_type(kinds[1])), ("v", arrow_type(kinds[0]))]) if self.paired else self._kind()
        return [Column(f"{name}.values", pa.list_(one)), Column(f"{name}.counts", pa.list_(pa.int64()))]

    def _kind(self) -> pa.DataType:
        return pa.float64() if self.part.begin == "doubles" else arrow_type(self.aggregate.kinds[0])

    def empty(self) -> Parts:
        """No values."""
        return [[], []]

    def probe(self, values: tuple[Any, ...], row: object) -> object:
        """The value."""
        return self._value(values)

    def add(self, parts: Parts, at: int, values: tuple[Any, ...], row: object, count: int) -> None:
        """Adds the value so many times; null is nothing."""
        value = self._value(values)
        if value is not None:
            SortedMultiset(parts[at], parts[at + 1], self.rank).add(value, count)

    def _value(self, values: tuple[Any, ...]) -> object:
        if not self.paired:
            value = self.of[0](values)
            return float(value) if value is not None and self.part.begin == "doubles" else value
        value, order = self.of[0](values), self.of[1](values)
        unknown = order is None if self.part.begin == "pair" else value is None
        return None if unknown else {"o": order, "v": value}

    def result(self, parts: Parts, at: int, rows: int) -> object:
        """What the values answer."""
        kept = SortedMultiset(parts[at], parts[at + 1], self.rank)
        if kept.is_negative():
            raise NegativeCount(f"{self.aggregate} would hold less than none of a value")
        return finish(self.aggregate, (self._whole(kept),))

    def _whole(self, kept: SortedMultiset) -> object:
        if self.aggregate.ranked is not None:
            return self.merge(list(kept.each()), [])
        make = _WHOLE.get(self.part.merge)
        if make is not None:
            return make(kept, int(self.aggregate.number or 0))
        made = [self._begun(value, count) for value, count in zip(kept.values, kept.counts, strict=True)]
        return reduce(self.merge, (part for parts in made for part in parts), None)

    def _begun(self, value: Any, count: int) -> list[Any]:
        if self.part.merge == "moments":
            return [{"n": count, "mean": float(value), "m2": 0.0}]
        one = sketches.distinct_of if self.part.merge == "hll" else sketches.values_of
        return [one(value) for _ in range(1 if self.part.merge == "hll" else count)]


def _pair_rank(pair: dict[str, Any]) -> tuple[object, ...]:
    return rank(pair["o"]), rank(pair["v"])


def _first(kept: SortedMultiset, number: int) -> object:
    return kept.values[0] if kept.values else None


def _last(kept: SortedMultiset, number: int) -> object:
    return kept.values[-1] if kept.values else None


def _top(kept: SortedMultiset, number: int) -> object:
    return list(reversed(list(kept.each())))[:number]


_WHOLE: dict[str, Callable[[SortedMultiset, int], Any]] = {
    "least": _first,
    "greatest": _last,
    "least_pair": _first,
    "greatest_pair": _last,
    "unite": lambda kept, number: list(kept.values),
    "sorted": lambda kept, number: list(kept.each()),
    "sorted_pairs": lambda kept, number: list(kept.each()),
    "top": _top,
}
"""The part that a whole multiset makes, by how parts are merged."""


class Own:
    """The user's own aggregate: what it takes in of the rows of the group is kept, and added anew when some of them change."""

    width = 2

    def __init__(self, aggregate: Aggregate, schema: Schema) -> None:
        self.own, self.make = own_of(aggregate), shape_of(schema).make
        self.taken = taken_of(aggregate, schema) if aggregate.written else None
        self.holds = None if aggregate.condition is None else compile_expr(aggregate.condition, schema)

    def columns(self, name: str) -> list[Column]:
        """The rows and their counts, as objects."""
        return [Column(f"{name}.rows"), Column(f"{name}.counts", pa.list_(pa.int64()))]

    def empty(self) -> Parts:
        """No rows."""
        return [[], []]

    def probe(self, values: tuple[Any, ...], row: object) -> object:
        """The row as it is, and whether it counts."""
        return (self.holds is None or self.holds(values)) and (self.taken is None or self.taken(values, row))

    def add(self, parts: Parts, at: int, values: tuple[Any, ...], row: object, count: int) -> None:
        """Keeps the row, if it counts."""
        if self.holds is not None and not self.holds(values):
            return
        kept = tuple(values) if self.taken is None else self.taken(values, row)
        SortedMultiset(parts[at], parts[at + 1], _row_rank).add(kept, count)

    def result(self, parts: Parts, at: int, rows: int) -> object:
        """All rows, added in order."""
        each = SortedMultiset(parts[at], parts[at + 1], _row_rank).each()
        given = list(each) if self.taken is not None else [self.make(values) for values in each]
        return self.own.result(self.own.add_all(self.own.init(), given))


class OwnRetracting:
    """The user's own aggregate that can take rows back: what stands is kept, and no rows."""

    width = 1

    def __init__(self, aggregate: Aggregate, schema: Schema) -> None:
        self.own, self.taken = own_of(aggregate), taken_of(aggregate, schema)
        self.holds = None if aggregate.condition is None else compile_expr(aggregate.condition, schema)

    def columns(self, name: str) -> list[Column]:
        """What stands, as an object."""
        return [Column(f"{name}.part")]

    def empty(self) -> Parts:
        """What stands before the first row."""
        return [self.own.init()]

    def probe(self, values: tuple[Any, ...], row: object) -> object:
        """The row as the first one."""
        counts = self.holds is None or self.holds(values)
        return self.own.add(self.own.init(), self.taken(values, row)) if counts else None

    def add(self, parts: Parts, at: int, values: tuple[Any, ...], row: object, count: int) -> None:
        """Adds the row so many times, or takes it back."""
        if self.holds is not None and not self.holds(values):
            return
        given = self.taken(values, row)
        for _ in range(abs(count)):
            parts[at] = self.own.add(parts[at], given) if count > 0 else self.own.retract(parts[at], given)

    def result(self, parts: Parts, at: int, rows: int) -> object:
        """What the class makes of what stands."""
        return self.own.result(parts[at])


def _row_rank(values: tuple[Any, ...]) -> tuple[object, ...]:
    return tuple((0, "") if v is None else (1, repr(v)) for v in values)


def accumulator_of(aggregate: Aggregate, schema: Schema) -> Accumulator:
    """How an aggregate goes over signed rows of a schema."""
    if aggregate.own is not None:
        return (OwnRetracting if aggregate.own.retracts else Own)(aggregate, schema)
    if not aggregate.arguments:
        return CountAll()
    if aggregate.call in ("count", "count_if"):
        return Count(aggregate, schema)
    if aggregate.call == "avg" or (aggregate.call == "sum" and aggregate.type == t.DOUBLE):
        return FloatSum(aggregate, schema)
    return Sum(aggregate, schema) if aggregate.call == "sum" else OrderedValues(aggregate, schema)
