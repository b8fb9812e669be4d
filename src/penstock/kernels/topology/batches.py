"""The kernel of steps over the tuples of each key in a batch."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

from penstock.graph.graph import Graph
from penstock.graph.nodes.batch import CombineBatch, KeyedBatch
from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.layout import Column, Layout
from penstock.kernels.base import Context, Kernel, Out, RecordFailed
from penstock.kernels.keyed.keyed import prefetch
from penstock.kernels.quiet import quiet
from penstock.kernels.records.arrow import arrow_type
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import shaped

Key = tuple[Any, ...]


class KeyedBatchKernel(Kernel):
    """Gathers the tuples of each key until the batch ends, which is at the barrier: time does not end a batch."""

    node: KeyedBatch
    state: KeyedState | None = None

    def __init__(self, node: KeyedBatch, graph: Graph) -> None:
        super().__init__(node)
        schemas = [graph.output(port).schema for port in node.inputs]
        self.key_indexes = [[s.names.index(k) for k in node.keys_of(at)] for at, s in enumerate(schemas)]
        self.key_columns = tuple(Column(k, arrow_type(schemas[0].field(k).type)) for k in node.keys)
        self.gathered: dict[Key, Any] = {}

    def open(self, context: Context) -> None:
        """Finds the state, if there is one."""
        self.batch = context.batch
        if self.node.persistent:
            self.state = context.state(self.node.name)
            self.state.describe(Layout(self.key_columns, (Column("value"),), single=True))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers tuples, or parts that a step before has made of them."""
        add: Callable[[Any, int, Any], None] = self.node.logic.add
        start = self.node.logic.start
        if self.node.combined and source == 0:
            add = self._add_part
        for at, (row, key) in enumerate(zip(chunk.rows(), self._keys(chunk, source), strict=True)):
            try:
                if key not in self.gathered:
                    self.gathered[key] = start(self.batch())
                add(self.gathered[key], source, row)
            except Exception as error:
                raise RecordFailed(self.node, row, at, error) from error
        return ()

    def _add_part(self, gathered: Any, source: int, row: Any) -> None:
        self.node.logic.add_part(gathered, pickle.loads(row[-1]))

    def _keys(self, chunk: Chunk, source: int) -> list[Key]:
        columns, indexes = chunk.columns(), self.key_indexes[source]
        keys: list[Key] = list(zip(*(columns[at] for at in indexes), strict=True)) or [()] * len(chunk)
        if self.state is not None:
            prefetch(self.state, keys, chunk.key_hashes, self.key_columns)
        return keys

    def barrier(self) -> Out:
        """What is made of the tuples of each key, by output."""
        made: dict[str, list[Any]] = {output.name: [] for output in self.node.outputs}
        gathered, self.gathered = self.gathered, {}
        for key, mine in gathered.items():
            for output, record in self._finished(key, mine):
                made[output].append(record)
        return [(output, shaped(self, output, records)) for output, records in made.items() if records]

    def _finished(self, key: Key, gathered: Any) -> list[tuple[str, Any]]:
        kept = None if self.state is None else self.state.get(key)
        try:
            value, made = self.node.logic.finish(key, gathered, kept)
        except Exception as error:
            raise RecordFailed(self.node, f"the tuples of key {key!r}", None, error) from error
        if self.state is not None and value is not kept:
            self.state.put(key, value)
        return made


class CombineBatchKernel(Kernel):
    """Puts the tuples of each key together in parts, which leave when the batch ends."""

    node: CombineBatch

    def __init__(self, node: CombineBatch, graph: Graph) -> None:
        super().__init__(node)
        names = graph.output(node.inputs[0]).schema.names
        self.key_indexes = [names.index(key) for key in node.of.keys]
        self.parts: dict[Key, Any] = {}

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Adds each tuple to the part of its key."""
        parts, part, joined = self.parts, self.node.of.logic.part, self.node.of.logic.joined
        columns = chunk.columns()
        keys = zip(*(columns[at] for at in self.key_indexes), strict=True)
        with quiet():
            for at, (row, key) in enumerate(zip(chunk.rows(), keys, strict=True)):
                try:
                    made = part(row)
                    parts[key] = joined(parts[key], made) if key in parts else made
                except Exception as error:
                    raise RecordFailed(self.node, row, at, error) from error
        return ()

    def barrier(self) -> Out:
        """The key and the part of each."""
        parts, self.parts = self.parts, {}
        if parts:
            made = [(*key, pickle.dumps(part, 5)) for key, part in parts.items()]
            yield "out", Chunk.of(self.node.output().schema, made)
