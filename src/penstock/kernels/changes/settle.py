"""The kernel that turns the rows of a table into records, when event time has passed them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.base import COUNT
from penstock.graph.nodes.changes import Settle, visible
from penstock.graph.schema import Schema
from penstock.graph.times import NEVER, Times
from penstock.kernels.changes.base import negative
from penstock.kernels.changes.rows import NegativeCount, consolidated
from penstock.kernels.ordering.sort import BufferKernel, given
from penstock.kernels.records.chunk import Chunk


class SettleKernel(BufferKernel):
    """Holds changes until event time has passed their rows; what they add up to then are the records."""

    node: Settle

    def __init__(self, node: Settle, schema: Schema) -> None:
        super().__init__(node, schema)
        self.visible = visible(schema)

    def advance(self, times: Times) -> Iterator[tuple[str, Chunk]]:
        """The rows that event time has passed, each as often as it is there."""
        self.move(times)
        due = self.due(times.watermark)
        if times.watermark > NEVER:
            self.waiting.forget(times.watermark)
        rows = None if due is None else self._net(due.select(self.schema.names))
        if rows is not None and rows.num_rows:
            yield "out", given(rows, self.visible)

    def _net(self, changes: pa.Table) -> pa.Table:
        made = consolidated(changes)
        counts = made.column(COUNT).to_numpy()
        if (counts < 0).any():
            row = made.filter(pa.array(counts < 0)).slice(0, 1).to_pylist()[0]
            taken = row.pop(COUNT)
            raise negative(self, row, NegativeCount(f"it was taken back {-taken} times more than it was there"))
        return made if (counts == 1).all() else made.take(pa.array(np.repeat(np.arange(len(counts)), counts)))
