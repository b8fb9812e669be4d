"""Signed rows as columns: gathered, consolidated, and their keys numbered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.nodes.base import COUNT
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import equal
from penstock.kernels.changes.rows import consolidated, identity_of
from penstock.kernels.records.chunk import Chunk

MANY = 64
"""From so many rows on columns are quicker than rows."""
_WIDE = {pa.string(): pa.large_string(), pa.binary(): pa.large_binary()}


def is_plain(schema: Schema) -> bool:
    """Whether rows of a schema are equal when their values are, so that Arrow may compare and group them."""
    return bool(schema.fields) and identity_of(schema) is None


def signed_batch(chunk: Chunk, schema: Schema) -> pa.RecordBatch:
    """The fields of a schema and the count of each record; those of a stream without counts are added once each."""
    batch = chunk.batch()
    arrays = [wide(batch.column(name)) for name in schema.names]
    has_count = COUNT in batch.schema.names
    counts = batch.column(COUNT) if has_count else pa.array(np.ones(len(chunk), np.int64))
    return pa.RecordBatch.from_arrays([*arrays, counts], [*schema.names, COUNT])


def wide(array: pa.Array) -> pa.Array:
    """Texts and bytes of any length together; other arrays as they are."""
    return array.cast(_WIDE[array.type]) if array.type in _WIDE else array


def added_up(chunks: Sequence[Chunk], schema: Schema) -> pa.RecordBatch:
    """The change that some chunks are together: the fields of a schema, then the count."""
    nothing = Chunk(schema, columns=[[] for _ in schema.fields])
    table = consolidated(pa.Table.from_batches([signed_batch(chunk, schema) for chunk in (nothing, *chunks)]))
    columns = [c.combine_chunks() for c in table.columns]
    return pa.RecordBatch.from_arrays(columns, table.column_names)


@dataclass(frozen=True)
class Numbered:
    """Keys with a number each.

    Attributes:
        hashes: The hash of each key.
        first: A row with each key.
        ids: The number of the key in each row.
    """

    hashes: IntArray
    first: IntArray
    ids: IntArray

    def __len__(self) -> int:
        return len(self.hashes)

    def rows(self, flags: BoolArray, ids: IntArray) -> IntArray | None:
        """The row of each key among those whose flag is set, -1 where it has none; None when a key has several."""
        rows = np.full(len(self), -1)
        marked = np.flatnonzero(flags)
        rows[ids[marked]] = marked
        return rows if np.count_nonzero(rows >= 0) == len(marked) else None


def numbered(keys: Sequence[pa.Array], hashes: IntArray) -> Numbered | None:
    """Numbers the keys of some rows by their hashes; None when two keys have the same hash."""
    unique, first, ids = np.unique(hashes, return_index=True, return_inverse=True)
    made = Numbered(unique, first, ids)
    return made if all(_are_equal(key, key.take(pa.array(first[ids]))) for key in keys) else None


def _are_equal(one: pa.Array, other: pa.Array) -> bool:
    return bool(equal(one, other).all())
