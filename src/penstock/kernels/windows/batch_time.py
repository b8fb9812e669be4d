"""The kernel of the processing time as a field, for hosts without a JVM."""

from __future__ import annotations

import numpy as np

from penstock.graph.nodes.relational.batch_time import BatchTime
from penstock.graph.schema import Schema
from penstock.kernels.base import Kernel, Out
from penstock.kernels.joins.output import moments
from penstock.kernels.records.chunk import Chunk


class BatchTimeKernel(Kernel):
    """Each record with the processing time of its batch."""

    node: BatchTime
    arrow = True

    def __init__(self, node: BatchTime, schema: Schema) -> None:
        super().__init__(node)
        self.schema = node.output().schema

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records with the time."""
        batch = chunk.batch()
        times = moments(np.full(batch.num_rows, self.times.now, np.int64))
        yield "out", Chunk(self.schema, batch=batch.append_column(self.node.into, times))
