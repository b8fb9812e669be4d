"""From signed rows to one row for each key that changed, in columns."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import BoolArray, IntArray
from penstock.graph.nodes.changes import DELETE, UPSERT, Upserts, visible
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import equal
from penstock.kernels.base import Kernel, Out
from penstock.kernels.changes.columns import added_up, is_plain, signed_batch
from penstock.kernels.changes.upserts import UpsertsKernel
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.keyed.column_kernel import ColumnKernel, GatheredChunks
from penstock.kernels.keyed.key_columns import numbered


class ColumnUpsertsKernel(ColumnKernel, UpsertsKernel):
    """The rows that stand, and those that are gone; changes of no table are left to rows."""

    def by_columns(self, chunks: GatheredChunks) -> Out | None:
        """One row for each key; None where a key has several, which is an error that rows can tell."""
        rows = signed_batch((chunk for _, chunk in chunks), self.visible)
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
        rows = change.take(pa.array(np.concatenate([stand, gone])))
        done = pa.array([UPSERT] * len(stand) + [DELETE] * len(gone), pa.string())
        return self.out_of([*rows.columns[:-1], done])


def _are_same(rows: pa.RecordBatch, ones: IntArray, others: IntArray) -> BoolArray:
    """Which of two rows each have the same fields, the count aside."""
    same = np.ones(len(ones), bool)
    for array in rows.columns[:-1]:
        same &= equal(array.take(pa.array(ones)), array.take(pa.array(others)))
    return same


def upserts_kernel(node: Upserts, schema: Schema) -> Kernel:
    """The kernel of a step from signed rows to one row for each key: by columns where Arrow can compare the rows."""
    return (ColumnUpsertsKernel if is_plain(visible(schema)) else UpsertsKernel)(node, schema)
