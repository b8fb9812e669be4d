"""The kernel of the user's functions over signed rows: what a function makes of a row has the row's count."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from penstock.graph.nodes import Node
from penstock.graph.nodes.base import COUNT
from penstock.graph.nodes.changes import SignedStep, visible
from penstock.graph.schema import Schema
from penstock.kernels.base import Kernel, Out, RecordFailed
from penstock.kernels.records.chunk import Chunk


class SignedKernel(Kernel):
    """Another kernel, run over the rows of each count for itself."""

    node: SignedStep

    def __init__(self, node: SignedStep, schema: Schema, inner: Callable[[Node, Schema], Kernel]) -> None:
        super().__init__(node)
        self.visible, self.at = visible(schema), schema.names.index(COUNT)
        bare = tuple(replace(o, schema=visible(o.schema)) for o in node.outputs)
        self.inner = inner(replace(node.of, outputs=bare), self.visible)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """What the function makes of the rows, with their counts; rows that go come first."""
        counts = chunk.columns()[self.at]
        for count in sorted(set(counts)):
            indexes = [at for at, n in enumerate(counts) if n == count]
            yield from self._counted(self._taken(chunk, indexes), count)

    def _taken(self, chunk: Chunk, indexes: list[int]) -> Iterator[tuple[str, Chunk]]:
        columns = [c for at, c in enumerate(chunk.columns()) if at != self.at]
        mine = Chunk(self.visible, columns=[[column[at] for at in indexes] for column in columns])
        try:
            yield from self.inner.take(mine)
        except RecordFailed as failed:
            at = None if failed.at is None else indexes[failed.at]
            raise RecordFailed(self.node, failed.record, at, failed.error) from failed.error

    def _counted(self, made: Iterator[tuple[str, Chunk]], count: int) -> Out:
        for port, rows in made:
            schema = self.node.output(port).schema
            yield port, Chunk(schema, columns=[*rows.columns(), [count] * len(rows)])
