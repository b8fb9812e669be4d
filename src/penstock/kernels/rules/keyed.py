"""The kernel of a rule set by key, whose rules switch each other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.rules import KeyedRules
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.graph.times import Times
from penstock.kernels.base import Out, RecordFailed
from penstock.kernels.keyed.keyed import Key, KeyedKernel
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.rules.axis import Numbers
from penstock.kernels.rules.columns import RowError
from penstock.kernels.rules.engine import EventBatch, Gate, RuleEngine, engine_of

Made = list[tuple[str, Chunk]]


class KeyedRulesKernel(KeyedKernel):
    """Takes the records that fire a rule one by one: each sees what those before it have switched for its key."""

    node: KeyedRules

    def __init__(self, node: KeyedRules, schema: Schema) -> None:
        super().__init__(node, schema)
        assert node.program is not None, "the graph has bound the rules"
        self.schema = schema
        self.engine: RuleEngine = engine_of(node.program, node.rounds)
        self.held: list[tuple[Key, EventBatch]] = []
        """The events of this batch for deferred rules, with their keys."""

    def layout(self) -> Layout:
        """The rules that were activated for a key, and those that were deactivated."""
        kind = pa.list_(pa.string())
        return Layout(self.key_columns, (Column("active", kind), Column("inactive", kind)))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """What follows from the records at once."""
        batch = pa.RecordBatch.from_arrays(chunk.batch().columns, schema=arrow_schema(self.schema))
        keys = self.keys(chunk)
        made: Made = []
        given = EventBatch(self.node.event, batch, np.arange(batch.num_rows))
        for at in self._firing(given).tolist():
            try:
                made += self._one(keys[at], batch.slice(at, 1))
            except RowError as error:
                failed = RecordFailed(self.node, chunk.rows()[at], at, error.error)
                failed.made = made
                raise failed from error
        return made

    def _firing(self, given: EventBatch) -> Numbers:
        """The records that fire a rule; all of them where a condition fails on one, which is found one by one then."""
        try:
            return self.engine.fires(given)
        except RowError:
            return given.origins

    def _one(self, key: Key, batch: pa.RecordBatch) -> Made:
        gate = self._gate(key)
        given = EventBatch(self.node.event, batch, np.zeros(1, np.int64))
        made = list(self.engine.run(given, gate))
        self.held += [(key, each) for each in (given, *made) if each.event in self.engine.deferred]
        self._keep(key, gate)
        return [*self._chunks(made)]

    def advance(self, times: Times) -> Out:
        """What follows from deferred rules."""
        self.move(times)
        held, self.held = self.held, []
        for key, event in held:
            gate = self._gate(key)
            try:
                made = list(self.engine.finish([event], gate))
            except RowError as error:
                raise RecordFailed(self.node, event.batch.to_pylist()[0], None, error.error) from error
            self._keep(key, gate)
            yield from self._chunks(made)

    def _gate(self, key: Key) -> Gate:
        active, inactive = self.state.get(key) or ((), ())
        return Gate({**dict.fromkeys(active or (), True), **dict.fromkeys(inactive or (), False)})

    def _keep(self, key: Key, gate: Gate) -> None:
        if gate.switched:
            kept = sorted(gate.switched.items())
            self.state.put(key, ([name for name, on in kept if on], [name for name, on in kept if not on]))

    def _chunks(self, made: list[EventBatch]) -> Iterator[tuple[str, Chunk]]:
        for each in made:
            if each.event != self.node.event:
                yield each.event, Chunk(self.node.output(each.event).schema, batch=each.batch)
