"""The local runtime: the whole graph in this process, without a JVM.

Records go in one at a time, in order; a barrier ends a batch. What is committed at a barrier survives a crash; what
came after it is replayed from the sources, as on Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.errors import Impossible, StepError, UnknownName, nearest
from penstock.graph.graph import Graph
from penstock.graph.nodes import Bolt, Port, Sink, Source
from penstock.kernels.base import Context, Kernel, RecordFailed
from penstock.kernels.build import kernel_of
from penstock.kernels.chunk import Chunk
from penstock.kernels.join import JoinKernel
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records import BadRecord
from penstock.kernels.spout import completed
from penstock.kernels.state import MemoryState
from penstock.kernels.topology import TaskChunk, unsaved


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    time: float = 0.0

    def __call__(self) -> float:
        """The time, in seconds."""
        return self.time

    def advance(self, seconds: float) -> None:
        """Moves it on."""
        self.time += seconds


@dataclass
class Committed:
    """What a barrier made safe: the state of every step, how far each source was read, what each sink holds."""

    states: bytes = field(default_factory=lambda: pickle.dumps({}))
    offsets: dict[str, int] = field(default_factory=dict)
    results: dict[str, list[Any]] = field(default_factory=dict)
    looped: dict[str, list[Any]] = field(default_factory=dict)


class LocalRun:
    """A flow running in this process."""

    def __init__(
        self,
        graph: Graph,
        tables: Callable[[Any], Iterable[Any]],
        clock: Callable[[], float] | None = None,
        committed: Committed | None = None,
    ) -> None:
        self.graph = graph
        self.tables = tables
        self.clock = clock or Clock()
        self.committed = committed or Committed()
        self._start()

    def _start(self) -> None:
        self.states: dict[str, MemoryState] = {
            step: MemoryState(pickle.loads(kept)) for step, kept in pickle.loads(self.committed.states).items()
        }
        self.offsets = dict(self.committed.offsets)
        self.results: dict[str, list[Any]] = {s.name: [] for s in self.graph.sinks}
        self.looped: dict[str, list[Any]] = {n: list(rows) for n, rows in self.committed.looped.items()}
        ports = [p for s in self.graph.sinks for p in s.inputs] + [n.fed_by for n in self.graph.loops if n.fed_by]
        self.pipeline = Pipeline([self._kernel(n) for n in self._working()], ports)
        try:
            self.pipeline.open(Context(now=self.clock, state=self._state))
        except RecordFailed as failed:
            raise StepError(failed.failure("before the first record")) from failed.error

    def _working(self) -> list[Any]:
        return [n for n in self.graph.ordered if not isinstance(n, Source | Sink) and n.inputs]

    def _kernel(self, node: Any) -> Kernel:
        if node.kind == "join":
            return JoinKernel(node, self.graph.output(node.inputs[0]).schema, self.tables(node.table))
        return kernel_of(node, self.graph)

    def _state(self, step: str) -> MemoryState:
        return self.states.setdefault(step, MemoryState())

    def push(self, source: str, record: Any) -> None:
        """One record, through the whole graph."""
        node = self.graph.by_name.get(source)
        if not isinstance(node, Source):
            known = [s.name for s in self.graph.sources]
            raise UnknownName(f"flow {self.graph.name!r} has no source {source!r}; {nearest(source, known)}")
        self.offsets[source] = self.offsets.get(source, 0) + 1
        self._push(Port(source), self._chunk(node, record), f"record {self.offsets[source]} of {source!r}")

    def _chunk(self, node: Source, record: Any) -> Chunk:
        if node.endpoint.kind != "spout":
            return self._checked(node, record)
        full = completed(node, record, self.offsets[node.name] - 1)
        return TaskChunk(node.output().schema, full.emitter, Chunk.of(node.output().schema, [full]).columns())

    def _checked(self, node: Source, record: Any) -> Chunk:
        try:
            return Chunk.of(node.output().schema, [record])
        except BadRecord as error:
            position = f"record {self.offsets[node.name]} of {node.name!r}"
            raise StepError(RecordFailed(node, record, 0, error).failure(position)) from None

    def _push(self, port: Port, chunk: Chunk, position: str) -> None:
        self._deliver(port, chunk)
        try:
            for out, made in self.pipeline.take(port, chunk):
                self._deliver(out, made)
        except RecordFailed as failed:
            raise StepError(failed.failure(position)) from failed.error

    def _deliver(self, port: Port, chunk: Chunk) -> None:
        for node in self.graph.readers(port):
            if isinstance(node, Sink):
                self.results[node.name] += chunk.plain_rows()
        for loop in self.graph.loops:
            if loop.fed_by == port:
                self.looped.setdefault(loop.name, []).extend(chunk.rows())

    def barrier(self, limit: int = 10_000) -> None:
        """Ends a batch: held results come out, loops run until they are quiet, and all is committed."""
        self._flush()
        for _ in range(limit):
            if not any(self.looped.values()):
                return self._commit()
            fed, self.looped = self.looped, {}
            for name, rows in fed.items():
                schema = self.graph.node(name).output().schema
                self._push(Port(name), Chunk(schema, rows=rows), f"the loop {name!r}")
            self._flush()
        raise Impossible(f"flow {self.graph.name!r}: its loop went round {limit} times and did not come to rest")

    def _flush(self) -> None:
        try:
            for out, made in self.pipeline.barrier():
                self._deliver(out, made)
        except RecordFailed as failed:
            raise StepError(failed.failure("the end of a batch")) from failed.error

    def _commit(self) -> None:
        done = {s: [*self.committed.results.get(s, []), *rows] for s, rows in self.results.items()}
        states = pickle.dumps({step: self._pickled(step, state) for step, state in self.states.items()})
        self.committed = Committed(states, dict(self.offsets), done, {n: list(r) for n, r in self.looped.items()})
        self.results = {s: [] for s in self.results}

    def _pickled(self, step: str, state: MemoryState) -> bytes:
        try:
            return pickle.dumps(state.kept)
        except Exception as error:
            if not isinstance(self.graph.node(step), Bolt):
                raise
            raise unsaved(step, state.kept.values(), error, pickle.dumps) from error

    def crash(self) -> None:
        """Loses all that was not committed, as a killed process does, and starts again from what was."""
        self._start()

    def close(self) -> None:
        """Ends the run."""
        self.pipeline.close()
