"""Adds up equal signed rows before they leave a pass, so that fewer of them move."""

from __future__ import annotations

import pyarrow as pa

from penstock.graph.nodes.base import OUT
from penstock.graph.nodes.changes import ConsolidateEarly, visible
from penstock.graph.schema import Schema
from penstock.kernels.base import Kernel, Out
from penstock.kernels.changes.columns import added_up, is_plain
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import PassKernel

FEW = 256
"""Chunks of fewer rows go on as they are."""
WORTH = 0.5
"""Where more than this share of the rows is left, the rows of this pass are too different for it to pay."""


class EarlyKernel(Kernel):
    """Equal rows of a chunk are added up, as long as that leaves far fewer."""

    arrow = True

    def __init__(self, node: ConsolidateEarly) -> None:
        super().__init__(node)
        self._pays = True

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The rows, equal ones added up."""
        yield OUT, self._consolidated(chunk) if self._pays and len(chunk) >= FEW else chunk

    def _consolidated(self, chunk: Chunk) -> Chunk:
        made: pa.RecordBatch = added_up(chunk.batch())
        self._pays = made.num_rows <= WORTH * len(chunk)
        return Chunk(self.node.output().schema, batch=made)


def early_kernel(node: ConsolidateEarly, schema: Schema) -> Kernel:
    """The kernel of a step that may add up equal rows: it does where Arrow can compare them."""
    return EarlyKernel(node) if is_plain(visible(schema)) else PassKernel(node)
