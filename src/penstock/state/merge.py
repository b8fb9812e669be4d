"""Merges files of state: of each key the newest entry stays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from penstock.errors import StateError
from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.state.arrow import equal
from penstock.state.columns import GONE, KEY
from penstock.state.file import KEY_HASH


def merged(batches: list[pa.RecordBatch], *, last: bool) -> pa.RecordBatch:
    """One batch of several, oldest first.

    `last` says that nothing lies below, so that entries which only say that a key is gone can go too.
    """
    whole = together(batches)
    order = np.argsort(_key_hashes(whole), kind="stable")
    ordered = whole.take(pa.array(order))
    kept = ~_older(ordered)
    if last and GONE in ordered.schema.names:
        kept &= ~flags(ordered, GONE)
        ordered = ordered.drop_columns([GONE])
    return ordered if kept.all() else ordered.filter(pa.array(kept))


def together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """The rows of several batches; a column that an older one lacks is null there."""
    if len({b.schema for b in batches}) == 1:
        return pa.concat_batches(batches)
    try:
        tables = [pa.Table.from_batches([b]) for b in batches]
        table = pa.concat_tables(tables, promote_options="default").combine_chunks()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise StateError(f"state of earlier batches does not fit that of now: {error}") from None
    return _one(table)


def _one(table: pa.Table) -> pa.RecordBatch:
    wide = [name for name, c in zip(table.column_names, table.columns, strict=True) if c.num_chunks > 1]
    if wide:
        raise StateError(f"the column {wide[0]!r} of the state of a task is larger than 2 GiB; use more tasks")
    columns = [c.chunk(0) if c.num_chunks else pa.array([], c.type) for c in table.columns]
    return pa.RecordBatch.from_arrays(columns, schema=table.schema)


def _key_hashes(batch: pa.RecordBatch) -> IntArray:
    hashes: IntArray = batch.column(KEY_HASH).to_numpy(zero_copy_only=False)
    return hashes


def flags(batch: pa.RecordBatch, name: str) -> BoolArray:
    """A column of flags; null is false."""
    made: BoolArray = batch.column(name).fill_null(False).to_numpy(zero_copy_only=False)
    return made


def _older(batch: pa.RecordBatch) -> BoolArray:
    """Which entries have a newer one of the same key after them; entries of a key hash stand oldest first."""
    hashes = _key_hashes(batch)
    older = np.zeros(len(hashes), bool)
    same = np.flatnonzero(hashes[:-1] == hashes[1:])
    if not len(same):
        return older
    alike = same_keys(batch, same, batch, same + 1)
    older[same[alike]] = True
    if not alike.all():
        _look_closer(batch, hashes, same[~alike], older)
    return older


def same_keys(one: pa.RecordBatch, rows: IntArray, other: pa.RecordBatch, others: IntArray) -> BoolArray:
    """Where the keys in some rows equal those in others."""
    alike = np.ones(len(rows), bool)
    for name in (n for n in one.schema.names if n.startswith(KEY)):
        alike &= equal(one.column(name).take(pa.array(rows)), other.column(name).take(pa.array(others)))
    return alike


def _look_closer(batch: pa.RecordBatch, hashes: IntArray, rows: IntArray, older: BoolArray) -> None:
    """Hashes that several keys share: entry by entry."""
    names = [n for n in batch.schema.names if n.startswith(KEY)]
    for key_hash in np.unique(hashes[rows]):
        newest: dict[Any, int] = {}
        begin, end = np.searchsorted(hashes, key_hash, "left"), np.searchsorted(hashes, key_hash, "right")
        for row in range(int(begin), int(end)):
            key = tuple(batch.column(n)[row].as_py() for n in names)
            if key in newest:
                older[newest[key]] = True
            older[row] = False
            newest[key] = row
