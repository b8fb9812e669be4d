"""The kernel of a rule set by key, whose rules switch each other."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.patterns.rules import KeyedRules
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.kernels.base import Out, RecordFailed
from penstock.kernels.keyed.keyed import Key, KeyedKernel
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.rules.axis import Numbers
from penstock.kernels.rules.columns import RowError
from penstock.kernels.rules.engine import EventBatch, Gate
from penstock.kernels.rules.kernel import RuleSetKernel

Made = list[tuple[str, Chunk]]


class KeyedRulesKernel(RuleSetKernel, KeyedKernel):
    """Takes the records that fire a rule one by one: each sees what those before it have switched for its key."""

    node: KeyedRules

    def __init__(self, node: KeyedRules, schema: Schema) -> None:
        KeyedKernel.__init__(self, node, schema)
        self.prepare(schema)
        self.held: list[tuple[Key, EventBatch]] = []
        """The events of this batch for deferred rules, with their keys."""

    def layout(self) -> Layout:
        """The rules that were activated for a key, and those that were deactivated."""
        kind = pa.list_(pa.string())
        return Layout(self.key_columns, (Column("active", kind), Column("inactive", kind)))

    def apply(self, chunk: Chunk) -> Out:
        """What follows from the records at once."""
        given, keys = self.event_of(chunk), self.keys(chunk)
        made: Made = []
        for at in self._firing(given).tolist():
            try:
                made += self._one(keys[at], given.batch.slice(at, 1))
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
        self.held += [(key, each) for each in self.deferred_of((given, *made))]
        self._keep(key, gate)
        return [*self.chunks(made)]

    def finish(self) -> Out:
        """What follows from deferred rules."""
        held, self.held = self.held, []
        for key, event in held:
            gate = self._gate(key)
            try:
                made = list(self.engine.finish([event], gate))
            except RowError as error:
                raise RecordFailed(self.node, event.batch.to_pylist()[0], None, error.error) from error
            self._keep(key, gate)
            yield from self.chunks(made)

    def _gate(self, key: Key) -> Gate:
        active, inactive = self.state.get(key) or ((), ())
        return Gate({**dict.fromkeys(active or (), True), **dict.fromkeys(inactive or (), False)})

    def _keep(self, key: Key, gate: Gate) -> None:
        if gate.switched:
            kept = sorted(gate.switched.items())
            self.state.put(key, ([name for name, on in kept if on], [name for name, on in kept if not on]))
