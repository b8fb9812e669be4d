"""The kernel of a rule set."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.rules import ApplyRules
from penstock.graph.rules.changes import KEPT, ChangedRule
from penstock.graph.schema import Schema
from penstock.graph.times import Times
from penstock.kernels.base import Kernel, Out, RecordFailed
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.rules.changes import changed_engine
from penstock.kernels.rules.columns import RowError
from penstock.kernels.rules.engine import EventBatch, RuleEngine, engine_of


class ApplyRulesKernel(Kernel):
    """Applies the rules to whole chunks; those of deferred rules are kept until the batch ends."""

    node: ApplyRules

    def __init__(self, node: ApplyRules, schema: Schema) -> None:
        super().__init__(node)
        assert node.program is not None, "the graph has bound the rules"
        self.schema = schema
        self.engine: RuleEngine = engine_of(node.program, node.rounds)
        self.waits = self.changes = len(node.inputs) > 1
        self.waiting: list[Chunk] = []
        """The chunks that came before the rules of their batch."""
        self.held: list[tuple[Chunk, list[EventBatch]]] = []
        """The chunks of this batch with their events for deferred rules."""

    def begin(self, times: Times) -> None:
        """A batch begins; where rules change, those of the batch are not known yet."""
        super().begin(times)
        self.waits = self.changes

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """What follows from the records at once; they wait for the rules of their batch where these change."""
        if source == 1:
            self._change(chunk)
        elif self.waits:
            self.waiting.append(chunk)
        else:
            yield from self._apply(chunk)

    def _change(self, chunk: Chunk) -> None:
        """The rules of this batch are these changes over those of the flow."""
        assert self.node.source is not None, "rules that change have a source"
        changes = tuple(
            (rule, ChangedRule(*rest)) for rule, *rest in sorted(chunk.values(), key=lambda row: str(row[0]))
        )
        self.engine = changed_engine(self.node.source, changes, self.node.rounds)
        self.waits = False

    def _apply(self, chunk: Chunk) -> Out:
        batch = pa.RecordBatch.from_arrays(chunk.batch().columns, schema=arrow_schema(self.schema))
        given = EventBatch(self.node.event, batch, np.arange(batch.num_rows))
        made = self._made(chunk, self.engine.run(given))
        deferred = [each for each in (given, *made) if each.event in self.engine.deferred]
        if deferred:
            self.held.append((chunk, deferred))
        yield from self._chunks(made)

    def advance(self, times: Times) -> Out:
        """What follows from the records that waited, and from deferred rules."""
        self.move(times)
        if self.waits and self.changes:
            self._change(Chunk(KEPT, rows=[]))
        waiting, self.waiting = self.waiting, []
        for chunk in waiting:
            yield from self.guard.take(self, chunk, 0) if self.guard is not None else self._apply(chunk)
        held, self.held = self.held, []
        for chunk, events in held:
            yield from self._chunks(self._made(chunk, self.engine.finish(events)))

    def _made(self, chunk: Chunk, made: Iterable[EventBatch]) -> list[EventBatch]:
        try:
            return list(made)
        except RowError as error:
            raise RecordFailed(self.node, chunk.rows()[error.at], error.at, error.error) from error

    def _chunks(self, made: Iterable[EventBatch]) -> Iterator[tuple[str, Chunk]]:
        for each in made:
            if each.event != self.node.event:
                yield each.event, Chunk(self.node.output(each.event).schema, batch=each.batch)
