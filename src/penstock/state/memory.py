"""State in memory: what the local host and bounded runs use."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import IntArray
from penstock.graph.state.layout import Layout
from penstock.graph.state.table import places_of, some, times_of, within
from penstock.graph.times import FOREVER, NEVER


class MemoryState:
    """State in a dict; what the local runtime and bounded runs use."""

    def __init__(self, kept: dict[Any, Any] | None = None) -> None:
        self.kept: dict[Any, Any] = kept if kept is not None else {}
        self.near, self.get = self.kept, self.kept.get
        self.touched: dict[Any, None] = {}
        self.layout: Layout | None = None

    def describe(self, layout: Layout) -> None:
        """Remembers the columns."""
        self.layout = layout

    def prepare(self, keys: list[Any], places: list[int] | None) -> None:
        """All keys are near."""

    def put(self, key: object, value: object) -> None:
        """Keeps a value for a key."""
        self.kept[key] = value

    def delete(self, key: object) -> None:
        """Forgets a key."""
        self.kept.pop(key, None)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """All that is kept."""
        return iter(self.kept.items())

    def snapshot(self) -> bytes:
        """The keys and values, pickled."""
        return pickle.dumps(self.kept)

    def restore(self, snapshot: bytes) -> None:
        """Takes the keys and values of a snapshot."""
        self.kept.clear()
        self.kept.update(pickle.loads(snapshot))
        self.touched.clear()


class MemoryTable:
    """A table in memory; what the local runtime and bounded runs use."""

    def __init__(self, rows: pa.Table | None = None, horizon: int = NEVER) -> None:
        self.rows, self.horizon = rows, horizon
        self.new: list[pa.RecordBatch] = []

    def add(self, rows: pa.RecordBatch) -> None:
        """Keeps rows."""
        if rows.num_rows:
            self.new.append(rows)

    def span(self, begin: int, end: int) -> pa.Table | None:
        """The rows of a span of time."""
        self._gather()
        if self.rows is None:
            return None
        return some(self.rows, within(times_of(self.rows), max(begin, self.horizon), end))

    def at(self, places: IntArray, begin: int = NEVER, end: int = FOREVER) -> pa.Table | None:
        """The rows at some places in a span of time."""
        found = self.span(begin, end)
        return None if found is None else some(found, np.isin(places_of(found), places))

    def first(self, begin: int) -> int:
        """The earliest time at or after `begin`."""
        found = self.span(begin, FOREVER)
        return FOREVER if found is None else int(times_of(found).min())

    def forget(self, before: int) -> None:
        """Drops rows by their time."""
        self.horizon = max(self.horizon, before)

    def replace(self, rows: pa.Table | None) -> None:
        """Puts other rows in the place of all."""
        self.rows, self.new = rows, []

    def settle(self) -> None:
        """The end of a batch: what was forgotten is gone."""
        self._gather()
        if self.rows is not None:
            self.rows = some(self.rows, times_of(self.rows) >= self.horizon)

    def snapshot(self) -> bytes:
        """The rows, and how far rows are forgotten."""
        self.settle()
        return pickle.dumps((self.rows, self.horizon))

    def restore(self, snapshot: bytes) -> None:
        """Takes the rows of a snapshot."""
        self.rows, self.horizon = pickle.loads(snapshot)
        self.new = []

    def _gather(self) -> None:
        """Puts what was added to the rest."""
        if self.new:
            kept = [] if self.rows is None else [self.rows]
            both = [*kept, *(pa.Table.from_batches([batch]) for batch in self.new)]
            self.new, self.rows = [], pa.concat_tables(both)
