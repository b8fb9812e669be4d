"""The kernel of windows as fields, for hosts without a JVM."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.relational.assigned import MILLISECOND, AssignWindows
from penstock.graph.schema import Schema
from penstock.kernels.base import Kernel, Out
from penstock.kernels.joins.output import moments
from penstock.kernels.joins.window import in_windows
from penstock.kernels.records.chunk import Chunk


class AssignWindowsKernel(Kernel):
    """Each record once for every window that holds it."""

    node: AssignWindows
    arrow = True

    def __init__(self, node: AssignWindows, schema: Schema) -> None:
        super().__init__(node)
        self.schema = node.output().schema

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records with their windows; one without a time is in none."""
        batch = self._timed(chunk.batch())
        at, starts, ends = in_windows(self.node.windows, self._times(batch))
        made = batch.take(pa.array(at))
        for name, bounds in zip(self.schema.names[-3:], (starts, ends, ends - MILLISECOND), strict=True):
            made = made.append_column(name, moments(bounds))
        yield "out", Chunk(self.schema, batch=made)

    def _timed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        timed = self.node.timed_by
        if timed is None or not batch.column(timed.column).null_count:
            return batch
        self.counters.bad += batch.column(timed.column).null_count
        return batch.filter(batch.column(timed.column).is_valid())

    def _times(self, batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        timed = self.node.timed_by
        if timed is None:
            return np.full(batch.num_rows, self.times.now, np.int64)
        times = batch.column(timed.column).cast(pa.int64()).to_numpy(zero_copy_only=False)
        return np.asarray(times + timed.shift, np.int64)
