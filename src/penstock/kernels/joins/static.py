"""The kernel of a join with a static table; for hosts without a JVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from penstock.graph.nodes import JoinStatic
from penstock.graph.schema import Schema
from penstock.graph.times import Times
from penstock.kernels.base import Kernel, Out
from penstock.kernels.joins.refresh import Freshness
from penstock.kernels.keyed.keyed import key_getter
from penstock.kernels.records.chunk import Chunk, shape_of


class JoinKernel(Kernel):
    """Looks each record's key up in a table held in memory, which is re-read where the step says so."""

    node: JoinStatic

    def __init__(self, node: JoinStatic, schema: Schema, table: Callable[[], Iterable[Any]]) -> None:
        super().__init__(node)
        self.key_of = key_getter(schema.names, node.on)
        table_schema: Any = node.table.schema
        self.rest = [i for i, n in enumerate(table_schema.names) if n not in node.on]
        self.table, self.fresh, self.checked = table, Freshness(node), False
        self.matches: dict[Any, list[tuple[Any, ...]]] = {}

    def begin(self, times: Times) -> None:
        """A batch begins: its first record asks whether the table is still good."""
        super().begin(times)
        self.checked = False

    def _look(self) -> None:
        if not self.checked and self.fresh.stale(self.times.now):
            self.matches = self._read()
        self.checked = True

    def _read(self) -> dict[Any, list[tuple[Any, ...]]]:
        schema: Any = self.node.table.schema
        key_of = key_getter(schema.names, self.node.on)
        found: dict[Any, list[tuple[Any, ...]]] = {}
        for values in zip(*shape_of(schema).columns(list(self.table())), strict=True):
            found.setdefault(key_of(values), []).append(tuple(values[i] for i in self.rest))
        return found

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Each record with its matches; null keys match nothing."""
        self._look()
        made: list[tuple[Any, ...]] = []
        none = [(None,) * len(self.rest)] if self.node.how == "left" else []
        for values in chunk.values():
            key = self.key_of(values)
            found = none if None in key else self.matches.get(key, none)
            made += [(*values, *match) for match in found]
        yield "out", Chunk.of(self.node.output().schema, made)
