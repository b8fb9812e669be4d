"""What the kernels of all joins of two streams have in common."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from penstock.graph.graph import Graph
from penstock.graph.nodes import LATE, LATE_RIGHT, StreamJoin
from penstock.graph.nodes.join import LEFT, RIGHT, without_computed
from penstock.kernels.base import Context, Kernel, Out
from penstock.kernels.joins.output import JoinOutput
from penstock.kernels.joins.sides import Fresh, Side
from penstock.kernels.records.chunk import Chunk


class StreamJoinKernel(Kernel):
    """The base of joins of two streams: gathers both sides, and emits what is too late."""

    node: Any

    def __init__(self, node: StreamJoin, graph: Graph) -> None:
        super().__init__(node)
        self.schemas = [graph.output(p).schema for p in node.inputs]
        self.joined = JoinOutput(node)

    def open(self, context: Context) -> None:
        """Finds what is kept of each side."""
        names = (self.node.store(LEFT), self.node.store(RIGHT))
        self.sides = [Side(self.node, side, context.table(name)) for side, name in enumerate(names)]
        self.timers = context.timers(self.node.name)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers records; they are joined many at a time, when the host advances."""
        self.sides[source].gather(chunk)
        return ()

    def too_late(self, fresh: list[Fresh]) -> Iterator[tuple[str, Chunk]]:
        """The late records of both sides, each on an output of its own."""
        for side, (name, each) in enumerate(zip((LATE, LATE_RIGHT), fresh, strict=True)):
            if each.late is not None:
                shown = without_computed(self.schemas[side])
                yield name, Chunk(shown, batch=each.late.select(shown.names))
