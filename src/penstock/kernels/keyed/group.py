"""The native half of aggregates for hosts without a JVM: what Spark's `groupBy` makes of a batch, in Arrow."""

from __future__ import annotations

import pyarrow as pa

from penstock.graph.aggregates.aggregate import ROWS, Part
from penstock.graph.nodes import AggregateBy, Parts, Window
from penstock.graph.schema import Schema
from penstock.graph.times import Times
from penstock.kernels.base import Kernel, Out, RecordFailed
from penstock.kernels.keyed.part_columns import PartColumns
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.windows.rows import Rows, concat

GATHERED = 100_000
"""Records that wait before they are grouped."""


class PartGroups:
    """Rows of parts, gathered over a batch and merged by key."""

    def __init__(self, of: AggregateBy | Window, by: list[str], merges: dict[str, str] | None = None) -> None:
        self.of, self.by = of, by
        self.merging = Rows(of)
        self.merging.merges |= {name: (Part(how), None) for name, how in (merges or {}).items()}
        self.merging.merges[ROWS] = (Part("add"), None)
        self.waiting: list[pa.Table] = []
        self.many = 0

    def add(self, rows: pa.Table) -> None:
        """Takes rows in."""
        self.waiting.append(rows)
        self.many += rows.num_rows
        if self.many > GATHERED:
            merged = self._merged()
            self.waiting, self.many = [] if merged is None else [merged], 0

    def taken(self) -> pa.Table | None:
        """A row for each key, of all that was taken in since the last time; None when that is nothing."""
        made = self._merged()
        self.waiting, self.many = [], 0
        return made

    def _merged(self) -> pa.Table | None:
        rows = concat(self.waiting)
        try:
            return None if rows is None else self.merging.together(rows, self.by)
        except (pa.ArrowInvalid, OverflowError) as error:
            raise RecordFailed(self.of, "the records of a batch, grouped by key", None, error) from error


class GroupKernel(Kernel):
    """The parts of a running aggregate: a row for each key of the batch, emitted when it ends."""

    node: Parts
    arrow = True

    def __init__(self, node: Parts, schema: Schema) -> None:
        super().__init__(node)
        self.columns = PartColumns(node.of, schema)
        self.groups = PartGroups(node.of, list(node.keys))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers the parts of these records."""
        self.groups.add(self.columns.table(chunk))
        return ()

    def advance(self, times: Times) -> Out:
        """The parts of each key."""
        self.move(times)
        yield from grouped(self, self.groups)


def grouped(kernel: Kernel, groups: PartGroups) -> Out:
    """What was gathered, as chunks of the step's output."""
    schema, made = kernel.node.output().schema, groups.taken()
    if made is not None:
        for batch in made.select(list(schema.names)).combine_chunks().to_batches():
            yield "out", Chunk(schema, batch=batch)
