"""The kernels of rule sets: over records as they come."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.patterns.rules import ApplyRules, without_hidden
from penstock.graph.rules.changes import KEPT, ChangedRule
from penstock.graph.schema import Schema
from penstock.graph.times import Times
from penstock.kernels.base import Kernel, Out, RecordFailed
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.rules.changes import changed_engine
from penstock.kernels.rules.columns import RowError
from penstock.kernels.rules.engine import EventBatch, RuleEngine, engine_of


class RuleSetKernel(Kernel):
    """The base of kernels that apply rules: it has the rules of the batch, which may change from one to the next."""

    node: ApplyRules
    engine: RuleEngine
    schema: Schema
    changes = False
    """Whether rules change: then records wait until those of their batch are known."""
    waits = False

    def prepare(self, schema: Schema) -> None:
        """Makes ready for the rules of the flow."""
        assert self.node.program is not None, "the graph has bound the rules"
        self.schema = without_hidden(schema)
        self.engine = engine_of(self.node.program, self.node.rounds)
        self.waits = self.changes = len(self.node.inputs) > 1
        self.waiting: list[Chunk] = []

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
            return self.apply(chunk)
        return ()

    def _change(self, chunk: Chunk) -> None:
        """The rules of this batch are these changes over those of the flow."""
        assert self.node.source is not None, "rules that change have a source"
        rows = sorted(chunk.values(), key=lambda row: str(row[0]))
        changes = tuple((rule, ChangedRule(*rest)) for rule, *rest in rows)
        self.engine = changed_engine(self.node.source, changes, self.node.rounds)
        self.waits = False

    def advance(self, times: Times) -> Out:
        """What follows from the records that waited, and then from deferred rules."""
        self.move(times)
        if self.waits:
            self._change(Chunk(KEPT, rows=[]))
        waiting, self.waiting = self.waiting, []
        for chunk in waiting:
            yield from self.guard.take(self, chunk, 0) if self.guard is not None else self.apply(chunk)
        yield from self.finish()

    def apply(self, chunk: Chunk) -> Out:
        """What follows from records at once."""
        raise NotImplementedError

    def finish(self) -> Out:
        """What follows from deferred rules."""
        raise NotImplementedError

    def event_of(self, chunk: Chunk) -> EventBatch:
        """The records of a chunk as an event."""
        columns = chunk.batch().columns[: len(self.schema.fields)]
        batch = pa.RecordBatch.from_arrays(columns, schema=arrow_schema(self.schema))
        return EventBatch(self.node.event, batch, np.arange(batch.num_rows))

    def deferred_of(self, events: Iterable[EventBatch]) -> list[EventBatch]:
        """The events that deferred rules are on."""
        return [each for each in events if each.event in self.engine.deferred]

    def chunks(self, made: Iterable[EventBatch]) -> Iterator[tuple[str, Chunk]]:
        """The events that come out."""
        for each in made:
            if each.event not in self.engine.bound.events.inputs:
                yield each.event, Chunk(self.node.output(each.event).schema, batch=each.batch)


class ApplyRulesKernel(RuleSetKernel):
    """Applies the rules to whole chunks; those of deferred rules are kept until the batch ends."""

    def __init__(self, node: ApplyRules, schema: Schema) -> None:
        super().__init__(node)
        self.prepare(schema)
        self.held: list[tuple[Chunk, list[EventBatch]]] = []
        """The chunks of this batch with their events for deferred rules."""

    def apply(self, chunk: Chunk) -> Out:
        """What follows from the records at once."""
        given = self.event_of(chunk)
        made = self._made(chunk, self.engine.run(given))
        deferred = self.deferred_of((given, *made))
        if deferred:
            self.held.append((chunk, deferred))
        yield from self.chunks(made)

    def finish(self) -> Out:
        """What follows from deferred rules."""
        held, self.held = self.held, []
        for chunk, events in held:
            yield from self.chunks(self._made(chunk, self.engine.finish(events)))

    def _made(self, chunk: Chunk, made: Iterable[EventBatch]) -> list[EventBatch]:
        try:
            return list(made)
        except RowError as error:
            raise RecordFailed(self.node, chunk.rows()[error.at], error.at, error.error) from error
