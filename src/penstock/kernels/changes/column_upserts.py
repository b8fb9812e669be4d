"""From signed rows to one row for each key that changed, in columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.nodes import Keyed
from penstock.graph.nodes.changes import DELETE, UPSERT, Upserts, visible
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import equal
from penstock.graph.times import Times
from penstock.kernels.base import Kernel, Out
from penstock.kernels.changes.columns import added_up, gathered, is_plain
from penstock.kernels.changes.upserts import UpsertsKernel
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.keyed.key_columns import MANY, numbered
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk


class ColumnUpsertsKernel(UpsertsKernel):
    """Gathers the changes and looks at them when time moves. Few of them, and those of no table, are left to the rows of its base."""

    def __init__(self, node: Keyed, schema: Schema) -> None:
        super().__init__(node, schema)
        self.chunks: list[Chunk] = []
        self.out_schema = arrow_schema(node.output().schema)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers the changes."""
        self.chunks.append(chunk)
        return ()

    def advance(self, times: Times) -> Out:
        """The rows that stand, and those that are gone."""
        chunks, self.chunks = self.chunks, []
        made = self._by_columns(chunks) if sum(map(len, chunks)) >= MANY else None
        if made is not None:
            self.move(times)
            return made
        for chunk in chunks:
            super().take(chunk)
        return super().advance(times)

    def _by_columns(self, chunks: list[Chunk]) -> Out | None:
        """One row for each key; None where a key has several, which is an error that rows can tell."""
        rows = gathered(chunks, self.visible)
        made = self._of_keys(rows)
        return made if made is not None else self._of_keys(added_up(rows))

    def _of_keys(self, change: pa.RecordBatch) -> Out | None:
        keys = [change.column(c.name).cast(c.type) for c in self.key_columns]
        found = numbered(keys, key_hashes(keys, change.num_rows))
        if found is None:
            return None
        counts = change.column(change.num_columns - 1).to_numpy()
        gone, come = found.rows(counts < 0, found.ids), found.rows(counts > 0, found.ids)
        if gone is None or come is None:
            return None
        both = np.flatnonzero((gone >= 0) & (come >= 0))
        come[both[_are_same(change, gone[both], come[both])]] = -1
        gone[both] = -1
        return self._rows(change, come[come >= 0], gone[gone >= 0])

    def _rows(self, change: pa.RecordBatch, stand: IntArray, gone: IntArray) -> Out:
        if not len(stand) + len(gone):
            return ()
        rows = change.take(pa.array(np.concatenate([stand, gone])))
        done = pa.array([UPSERT] * len(stand) + [DELETE] * len(gone))
        arrays = [
            array.cast(field.type) for array, field in zip((*rows.columns[:-1], done), self.out_schema, strict=True)
        ]
        made = pa.RecordBatch.from_arrays(arrays, schema=self.out_schema)
        return (("out", Chunk(self.node.output().schema, batch=made)),)


def _are_same(rows: pa.RecordBatch, ones: IntArray, others: IntArray) -> BoolArray:
    """Which of two rows each have the same fields, the count aside."""
    same = np.ones(len(ones), bool)
    for array in rows.columns[:-1]:
        same &= equal(array.take(pa.array(ones)), array.take(pa.array(others)))
    return same


def upserts_kernel(node: Upserts, schema: Schema) -> Kernel:
    """The kernel of a step from signed rows to one row for each key: by columns where Arrow can compare the rows."""
    return (ColumnUpsertsKernel if is_plain(visible(schema)) else UpsertsKernel)(node, schema)
