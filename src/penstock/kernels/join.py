"""The kernel of a join with a static table; for hosts without a JVM."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from penstock.graph.nodes import JoinStatic
from penstock.kernels.base import Kernel, Out
from penstock.kernels.chunk import Chunk, shape_of
from penstock.kernels.keyed import key_getter


class JoinKernel(Kernel):
    """Looks each record's key up in a table held in memory."""

    node: JoinStatic

    def __init__(self, node: Any, schema: Any, table: Iterable[Any]) -> None:
        super().__init__(node)
        right = node.table.schema
        self.key_of = key_getter(schema.names, node.on)
        self.rest = [i for i, n in enumerate(right.names) if n not in node.on]
        self.matches: dict[Any, list[tuple[Any, ...]]] = {}
        right_key = key_getter(right.names, node.on)
        for values in zip(*shape_of(right).columns(list(table)), strict=True):
            self.matches.setdefault(right_key(values), []).append(tuple(values[i] for i in self.rest))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Each record with its matches; null keys match nothing."""
        made: list[tuple[Any, ...]] = []
        none = [(None,) * len(self.rest)] if self.node.how == "left" else []
        for values in chunk.values():
            key = self.key_of(values)
            found = none if None in key else self.matches.get(key, none)
            made += [(*values, *match) for match in found]
        yield "out", Chunk.of(self.node.output().schema, made)
