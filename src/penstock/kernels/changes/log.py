"""Changes as records, and a table from records that say what changed."""

from __future__ import annotations

from penstock.graph.nodes import AsTable, Changelog
from penstock.graph.nodes.ordering import AFTER, BEFORE, DELETE, INSERT
from penstock.graph.schema import Schema
from penstock.graph.times import Times
from penstock.kernels.base import Kernel, Out, RecordFailed
from penstock.kernels.changes.rows import Row
from penstock.kernels.changes.upserts import GatherKernel
from penstock.kernels.keyed.keyed import Key, key_getter
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.records.records import BadRecord
from penstock.kernels.stateless import shaped


class ChangelogKernel(GatherKernel):
    """What happened to the row of each key, as records; without a key each row comes or goes by itself."""

    node: Changelog

    def advance(self, times: Times) -> Out:
        """The changes."""
        self.move(times)
        made = self._by_row() if self.node.by_row else [r for pair in self.pairs() for r in self._records(*pair)]
        if made:
            yield "out", shaped(self, "out", made)

    def _by_row(self) -> list[Row]:
        rows = [signed for bag in self.gathered().values() for signed in bag]
        return [(INSERT if count > 0 else DELETE, *row) for row, count in rows for _ in range(abs(count))]

    def _records(self, before: Row | None, after: Row | None) -> list[Row]:
        if after is None:
            return [(DELETE, *(before or ()))]
        if before is None:
            return [(INSERT, *after)]
        return [*([(BEFORE, *before)] if self.node.before else []), (AFTER, *after)]


class AsTableKernel(Kernel):
    """The last change of each key, once a batch."""

    node: AsTable

    def __init__(self, node: AsTable, schema: Schema) -> None:
        super().__init__(node)
        self.key_of = key_getter(schema.names, node.keys)
        self.op = schema.names.index(node.op)
        self.last: dict[Key, Row] = {}

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Notes the changes; old rows say nothing."""
        for at, values in enumerate(chunk.values()):
            op = values[self.op]
            if op not in (INSERT, BEFORE, AFTER, DELETE):
                wrong = BadRecord(f"{self.node.op} is insert, update_before, update_after or delete, got {op!r}", at)
                raise RecordFailed(self.node, chunk.rows()[at], at, wrong)
            if op != BEFORE:
                row = (*values[: self.op], *values[self.op + 1 :], -1 if op == DELETE else 1)
                self.last[self.key_of(values)] = row
        return ()

    def advance(self, times: Times) -> Out:
        """The rows that changed; a count below zero says that the key is gone."""
        self.move(times)
        made, self.last = list(self.last.values()), {}
        if made:
            yield "out", shaped(self, "out", made)
