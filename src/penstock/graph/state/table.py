"""Rows in time: what windows, joins and sorting steps keep. The second seam behind which state engines are put.

A table holds Arrow rows, each with a key hash (64 bits, of which the last seven are the key group, in the field
`__key_hash`) and a time (in the field `__time`, microseconds). Rows are added, never changed; a batch reads those of a span of time
or of some key hashes, and rows before a horizon are forgotten. Several rows may share key hash and time: what they mean together is
the kernel's affair.
"""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.times import FOREVER, NEVER

KEY_HASH, TIME = "__key_hash", "__time"


class TimeTable(Protocol):
    """The rows of one step, as far as the task at hand owns them."""

    def add(self, rows: pa.RecordBatch) -> None:
        """Keeps rows, which have the fields `__key_hash` and `__time` among others. They can be read at once."""

    def span(self, begin: int, end: int) -> pa.Table | None:
        """The rows with `begin <= __time < end`, in no order; None when there are none."""

    def at(self, hashes: IntArray, begin: int = NEVER, end: int = FOREVER) -> pa.Table | None:
        """The rows of these key hashes (a numpy array of int64) in a span of time; None when there are none."""

    def first(self, begin: int) -> int:
        """A time at or after `begin` before which no row from there on is kept; FOREVER when there is none."""

    def forget(self, before: int) -> None:
        """Drops the rows with `__time < before`; they are never seen again."""

    def replace(self, rows: pa.Table | None) -> None:
        """Replaces all that is kept; for steps that keep little."""

    def snapshot(self) -> bytes:
        """What is kept at a barrier, as bytes from which `restore` goes on; a store on disk writes its files first and names them."""

    def restore(self, snapshot: bytes) -> None:
        """Replaces all that is kept by what a snapshot holds."""


def column(rows: pa.Table | pa.RecordBatch, name: str) -> IntArray:
    """A column of integers as a numpy array."""
    made = rows.column(name)
    if isinstance(made, pa.ChunkedArray):
        made = made.combine_chunks() if made.num_chunks != 1 else made.chunk(0)
    array: IntArray = made.to_numpy(zero_copy_only=False)
    return array


def times_of(rows: pa.Table | pa.RecordBatch) -> IntArray:
    """The times of rows."""
    return column(rows, TIME)


def key_hashes_of(rows: pa.Table | pa.RecordBatch) -> IntArray:
    """The key hashes of rows."""
    return column(rows, KEY_HASH)


def within(times: IntArray, begin: int, end: int) -> BoolArray:
    """Which times lie in a span."""
    return (times >= begin) & (times < end)


def some(rows: pa.Table, flags: BoolArray) -> pa.Table | None:
    """The rows whose flag is true; None when there are none."""
    if flags.all():
        return rows if rows.num_rows else None
    return rows.filter(pa.array(flags)) if flags.any() else None
