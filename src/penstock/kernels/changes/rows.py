"""Rows with signed counts: consolidated in columns, and as multisets in memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph import types as t
from penstock.graph.nodes.base import COUNT
from penstock.graph.schema import Schema

Row = tuple[Any, ...]
Identity = Callable[[Row], Hashable]
"""What two rows are equal by."""


class NegativeCount(ValueError):
    """More of a row was taken back than there was of it."""


def consolidated(rows: pa.Table) -> pa.Table:
    """Signed rows with equal ones added up, and without those that add up to nothing.

    >>> rows = pa.table({"word": ["a", "b", "a", "a"], COUNT: [1, 1, -1, 1]})
    >>> consolidated(rows).sort_by("word").to_pydict()
    {'word': ['a', 'b'], '__count': [1, 1]}
    """
    names = [n for n in rows.column_names if n != COUNT]
    if not names or any(_nested(rows.schema.field(n).type) for n in names):
        return _added_up(rows)
    summed = rows.group_by(names, use_threads=False).aggregate([(COUNT, "sum")])
    made = summed.rename_columns([*names, COUNT] if summed.column_names[-1] == f"{COUNT}_sum" else [COUNT, *names])
    return made.filter(pc.not_equal(made.column(COUNT), 0)).select(rows.column_names)


def _nested(kind: pa.DataType) -> bool:
    return bool(pa.types.is_nested(kind) or pa.types.is_null(kind))


def _added_up(rows: pa.Table) -> pa.Table:
    """The same a row at a time, for values that Arrow cannot group by."""
    bag = Bag(frozen)
    at = rows.column_names.index(COUNT)
    for values in zip(*(c.to_pylist() for c in rows.columns), strict=True):
        bag.add((*values[:at], *values[at + 1 :]), values[at])
    made = [(*row[:at], count, *row[at:]) for row, count in bag]
    columns = list(zip(*made, strict=True)) if made else [()] * rows.num_columns
    arrays = [pa.array(c, f.type) for c, f in zip(columns, rows.schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=rows.schema)


def identity_of(schema: Schema) -> Identity | None:
    """What rows of a schema are equal by; None when they are equal as they are."""
    plain = all(isinstance(f.type, t.Simple | t.Decimal) and f.type not in (t.FLOAT, t.DOUBLE) for f in schema.fields)
    return None if plain else frozen


def frozen(value: object) -> Hashable:
    """A value as something to look up by: lists and dicts by what is in them, not-a-number equal to itself.

    >>> frozen((1, [2, {"a": float("nan")}])) == frozen((1, [2, {"a": float("nan")}]))
    True
    """
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    if isinstance(value, Mapping):
        return frozenset((k, frozen(v)) for k, v in value.items())
    if isinstance(value, float) and math.isnan(value):
        return "not-a-number", None
    return value


class Bag:
    """A multiset of rows; counts may be below zero while it is a change, never when it is a table."""

    __slots__ = ("_entries", "_identity")

    def __init__(self, identity: Identity | None = None) -> None:
        self._identity = identity
        self._entries: dict[Hashable, tuple[Row, int]] = {}

    def add(self, row: Row, count: int) -> int:
        """Adds a row so many times; returns how many there are now."""
        by = row if self._identity is None else self._identity(row)
        before = self._entries.get(by)
        now = count if before is None else before[1] + count
        if now:
            self._entries[by] = (row if before is None else before[0], now)
        else:
            del self._entries[by]
        return now

    def update(self, rows: Iterable[tuple[Row, int]], sign: int = 1) -> None:
        """Adds rows, or takes them back with a sign of -1."""
        for row, count in rows:
            if count:
                self.add(row, sign * count)

    def copy(self) -> Bag:
        """Another of the same rows."""
        made = Bag(self._identity)
        made._entries = dict(self._entries)
        return made

    def count(self, row: Row) -> int:
        """How many there are of a row."""
        found = self._entries.get(row if self._identity is None else self._identity(row))
        return 0 if found is None else found[1]

    def total(self) -> int:
        """How many rows there are."""
        return sum(count for _, count in self._entries.values())

    def check(self, where: str) -> None:
        """Refuses a multiset with less than none of a row."""
        for row, count in self._entries.values():
            if count < 0:
                raise NegativeCount(_negative(where, row, count))

    def __iter__(self) -> Iterator[tuple[Row, int]]:
        return iter(self._entries.values())

    def __len__(self) -> int:
        return len(self._entries)


def _negative(where: str, row: Row, count: int) -> str:
    return (
        f"{where}: {row!r} was taken back {-count} times more than it was there. The input takes back rows that it never "
        f"added; a source of changes must tell each change once, and in order"
    )
