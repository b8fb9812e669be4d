"""Rows by key and in the order of event time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.nodes import Term
from penstock.graph.nodes.patterns.row_pattern import MatchRows
from penstock.graph.schema import Schema
from penstock.graph.state.table import KEY_HASH, TIME, column
from penstock.kernels.joins.rows import one_batch
from penstock.kernels.ordering.order import sorted_by
from penstock.kernels.ordering.sort import keys_in

Key = tuple[Any, ...]


@dataclass(frozen=True)
class KeyedRows:
    """Rows by key, each key's in order.

    Args:
        batch: the rows.
        key_names: the fields of the key.
        bounds: where the rows of each key begin, and at last where all end.
        times: the event time of each row.
        hashes: the hash of each key.
    """

    batch: pa.RecordBatch
    key_names: tuple[str, ...]
    bounds: list[int]
    times: list[int]
    hashes: list[int]

    @property
    def first(self) -> IntArray:
        """For each row the first of its key."""
        return np.repeat(np.array(self.bounds[:-1], np.int64), np.diff(self.bounds))

    @property
    def after(self) -> IntArray:
        """For each row the one after the last of its key."""
        return np.repeat(np.array(self.bounds[1:], np.int64), np.diff(self.bounds))

    def names(self, only: Key) -> list[Key]:
        """The keys; `only` is that of rows without one."""
        if not self.key_names:
            return [only]
        return keys_in(self.batch.take(pa.array(self.bounds[:-1])), self.key_names)

    def keys(self, only: Key) -> Iterator[tuple[Key, range]]:
        """Each key with its rows; `only` is the key of rows without one."""
        for key, begin, end in zip(self.names(only), self.bounds, self.bounds[1:], strict=False):
            yield key, range(begin, end)


def grouped(rows: pa.Table, node: MatchRows, schema: Schema) -> KeyedRows:
    """Rows by key and in order, from rows in any order that have their key hash and their time."""
    hashes, times = column(rows, KEY_HASH), column(rows, TIME)
    order = np.lexsort((times, hashes))
    hashes, times = hashes[order], times[order]
    table = rows.take(pa.array(order))
    if _shares_hashes(table, hashes, node.keys):
        by = (Term(KEY_HASH), *(Term(k) for k in node.keys), Term(TIME), *node.pattern.order)
        table = sorted_by(table, by, schema.names)
        hashes, times = column(table, KEY_HASH), column(table, TIME)
    else:
        table = _with_ties(table, _ties(hashes, times), node.pattern.order, schema)
    batch = one_batch(table.select(schema.names))
    bounds = _bounds(table, node.keys)
    return KeyedRows(batch, node.keys, bounds, times.tolist(), hashes[bounds[:-1]].tolist())


def _ties(hashes: IntArray, times: IntArray) -> BoolArray:
    """Which rows share their key hash and their time with another."""
    same = (hashes[1:] == hashes[:-1]) & (times[1:] == times[:-1])
    made: BoolArray = np.concatenate([same, [False]]) | np.concatenate([[False], same])
    return made


def _with_ties(table: pa.Table, tied: BoolArray, order: tuple[Term, ...], schema: Schema) -> pa.Table:
    """The table with rows of one key and time in the order of the terms, then of all their values."""
    if not tied.any():
        return table
    at = np.flatnonzero(tied)
    some = table.take(pa.array(at)).append_column("__at", pa.array(at))
    placed = np.arange(table.num_rows)
    placed[at] = column(sorted_by(some, (Term(KEY_HASH), Term(TIME), *order), schema.names), "__at")
    return table.take(pa.array(placed))


def _changes(table: pa.Table, keys: tuple[str, ...]) -> BoolArray:
    """For each row but the first whether its key is another than that of the row before it."""
    changed = np.zeros(max(0, table.num_rows - 1), bool)
    for key in keys:
        values = (
            table.column(key).combine_chunks() if isinstance(table.column(key), pa.ChunkedArray) else table.column(key)
        )
        here, before = values.slice(1), values.slice(0, max(0, len(values) - 1))
        equal = pc.equal(here, before).fill_null(False).to_numpy(zero_copy_only=False).astype(bool)
        nulls = (pc.is_null(here).to_numpy(zero_copy_only=False)) & (pc.is_null(before).to_numpy(zero_copy_only=False))
        changed |= ~(equal | nulls)
    return changed


def _shares_hashes(table: pa.Table, hashes: IntArray, keys: tuple[str, ...]) -> bool:
    """Whether different keys have the same hash, which they hardly ever do."""
    return bool((_changes(table, keys) & (hashes[1:] == hashes[:-1])).any())


def _bounds(table: pa.Table, keys: tuple[str, ...]) -> list[int]:
    """Where the rows of each key begin, and where all end."""
    begins = np.flatnonzero(_changes(table, keys)) + 1
    return [0, *begins.tolist(), table.num_rows]
