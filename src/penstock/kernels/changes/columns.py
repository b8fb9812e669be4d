"""Signed rows as columns, gathered and consolidated."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.base import COUNT
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import wide_type
from penstock.kernels.changes.rows import consolidated, identity_of
from penstock.kernels.records.chunk import Chunk


def is_plain(schema: Schema) -> bool:
    """Whether rows of a schema are equal when their values are, so that Arrow may compare and group them."""
    return bool(schema.fields) and identity_of(schema) is None


def signed_batch(chunks: Iterable[Chunk], schema: Schema) -> pa.RecordBatch:
    """The signed rows of some chunks: the fields of a schema, then the count."""
    nothing = Chunk(schema, columns=[[] for _ in schema.fields])
    return _one(pa.Table.from_batches([_signed(chunk, schema) for chunk in (nothing, *chunks)]))


def _signed(chunk: Chunk, schema: Schema) -> pa.RecordBatch:
    """The fields and the count of each record; those of a stream without counts are added once each. Texts may be of any length together."""
    batch = chunk.batch()
    arrays = [array.cast(wide_type(array.type)) for array in map(batch.column, schema.names)]
    has_count = COUNT in batch.schema.names
    counts = batch.column(COUNT) if has_count else pa.array(np.ones(len(chunk), np.int64))
    return pa.RecordBatch.from_arrays([*arrays, counts], [*schema.names, COUNT])


def added_up(rows: pa.RecordBatch) -> pa.RecordBatch:
    """Signed rows with equal ones added up."""
    return _one(consolidated(pa.Table.from_batches([rows])))


def _one(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([c.combine_chunks() for c in table.columns], table.column_names)
