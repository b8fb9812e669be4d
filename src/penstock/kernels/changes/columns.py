"""Signed rows as columns, gathered and consolidated."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.base import COUNT
from penstock.graph.schema import Schema
from penstock.kernels.changes.rows import consolidated, identity_of
from penstock.kernels.records.chunk import Chunk

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


def gathered(chunks: Sequence[Chunk], schema: Schema) -> pa.RecordBatch:
    """The signed rows of some chunks: the fields of a schema, then the count."""
    nothing = Chunk(schema, columns=[[] for _ in schema.fields])
    return _one(pa.Table.from_batches([signed_batch(chunk, schema) for chunk in (nothing, *chunks)]))


def added_up(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Signed rows with equal ones added up."""
    return _one(consolidated(pa.Table.from_batches([rows])))


def _one(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([c.combine_chunks() for c in table.columns], table.column_names)
