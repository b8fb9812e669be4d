"""State in memory: what the local host and bounded runs use."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.state.arrow import values_of
from penstock.graph.state.layout import Layout
from penstock.graph.times import FOREVER, NEVER
from penstock.state.columns import UNFIT
from penstock.state.runs import Runs


class MemoryState:
    """State in a dict; what the local runtime and bounded runs use."""

    is_columnar: ClassVar[bool] = False

    def __init__(self, kept: dict[Any, Any] | None = None) -> None:
        self.kept: dict[Any, Any] = kept if kept is not None else {}
        self.cache, self.get = self.kept, self.kept.get
        self.touched: dict[Any, None] = {}
        self.layout: Layout | None = None

    def describe(self, layout: Layout) -> None:
        """Remembers the columns."""
        self.layout = layout

    def prefetch(self, keys: list[Any], hashes: list[int] | None) -> None:
        """All keys are in memory."""

    def release(self, keys: list[Any]) -> None:
        """All keys stay in memory."""

    def put(self, key: object, value: object) -> None:
        """Keeps a value for a key."""
        self.kept[key] = value

    def delete(self, key: object) -> None:
        """Forgets a key."""
        self.kept.pop(key, None)

    def read_columns(self, keys: pa.RecordBatch, hashes: IntArray) -> tuple[pa.RecordBatch, BoolArray] | None:
        """What is kept for many keys; None where a value does not fit its type."""
        assert self.layout is not None, "a kernel describes its state first"
        nothing = (None,) * len(self.layout.values)
        named = list(_rows(keys))
        found = [self.kept.get(key, nothing) for key in named]
        parts = list(zip(*found, strict=True)) or [()] * len(nothing)
        try:
            arrays = [pa.array(part, c.type) for part, c in zip(parts, self.layout.values, strict=True)]
        except UNFIT:
            return None
        there = np.array([key in self.kept for key in named], bool)
        return pa.RecordBatch.from_arrays(arrays, [c.name for c in self.layout.values]), there

    def put_columns(self, keys: pa.RecordBatch, hashes: IntArray, values: pa.RecordBatch, gone: BoolArray) -> None:
        """Keeps values for many keys, and forgets those that are gone."""
        for key, value, is_gone in zip(_rows(keys), _rows(values), gone.tolist(), strict=True):
            if is_gone:
                self.delete(key)
            else:
                self.put(key, value)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All that is kept."""
        return iter(self.kept.items())

    def sizes(self, column: str) -> tuple[int, int]:
        """How many keys there are, and how many items their lists in a column hold."""
        assert self.layout is not None, "a kernel describes its state first"
        at = [each.name for each in self.layout.values].index(column)
        return len(self.kept), sum(len(value[at]) for value in self.kept.values())

    def snapshot(self) -> bytes:
        """The keys and values, pickled."""
        return pickle.dumps(self.kept)

    def restore(self, snapshot: bytes) -> None:
        """Takes the keys and values of a snapshot."""
        self.kept.clear()
        self.kept.update(pickle.loads(snapshot))
        self.touched.clear()


class MemoryTable:
    """A table in memory; what the local runtime and bounded runs use. What is read costs what is found, not what is kept."""

    def __init__(self, rows: pa.Table | None = None, horizon: int = NEVER) -> None:
        self.kept, self.horizon = Runs(rows), horizon
        self.new: list[pa.RecordBatch] = []

    @property
    def rows(self) -> pa.Table | None:
        """All rows; None when there are none."""
        return self.span(NEVER, FOREVER)

    def add(self, rows: pa.RecordBatch) -> None:
        """Keeps rows."""
        if rows.num_rows:
            self.new.append(rows)

    def span(self, begin: int, end: int) -> pa.Table | None:
        """The rows of a span of time."""
        self._gather()
        return _together(run.span(max(begin, self.horizon), end) for run in self.kept)

    def at(self, hashes: IntArray, begin: int = NEVER, end: int = FOREVER) -> pa.Table | None:
        """The rows of some key hashes in a span of time."""
        self._gather()
        return _together(run.at(hashes, max(begin, self.horizon), end) for run in self.kept)

    def first(self, begin: int) -> int:
        """The earliest time at or after `begin`."""
        self._gather()
        return self.kept.first(max(begin, self.horizon))

    def forget(self, before: int) -> None:
        """Drops rows by their time."""
        self.horizon = max(self.horizon, before)

    def replace(self, rows: pa.Table | None) -> None:
        """Replaces all rows."""
        self.kept, self.new = Runs(rows), []

    def settle(self) -> None:
        """The end of a batch: what was forgotten is gone."""
        self._gather()
        self.kept.forget(self.horizon)

    def snapshot(self) -> bytes:
        """The rows, and how far rows are forgotten."""
        self.settle()
        return pickle.dumps((self.rows, self.horizon))

    def restore(self, snapshot: bytes) -> None:
        """Takes the rows of a snapshot."""
        rows, self.horizon = pickle.loads(snapshot)
        self.replace(rows)

    def _gather(self) -> None:
        """Puts what was added to the rest."""
        if self.new:
            new, self.new = pa.Table.from_batches(self.new), []
            self.kept.add(new)


def _rows(batch: pa.RecordBatch) -> Iterator[tuple[Any, ...]]:
    return zip(*map(values_of, batch.columns), strict=True)


def _together(parts: Iterable[pa.Table]) -> pa.Table | None:
    """Rows of several runs as one table; None when there are none."""
    found = [part for part in parts if part.num_rows]
    return pa.concat_tables(found) if found else None
