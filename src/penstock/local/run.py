"""The local runtime: the whole graph in this process, without a JVM.

Records go in one at a time, in order; a barrier ends a batch. What is committed at a barrier survives a crash; what
came after it is replayed from the sources, as on Spark.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from penstock.compiler.times import Timeline
from penstock.errors import Failure, Impossible, StepError, UnknownName, nearest
from penstock.graph.endpoints.parsing import keeps_unread
from penstock.graph.graph import Graph
from penstock.graph.nodes import DEAD_LETTER, Bolt, DeadLetters, Port, Sink, Source
from penstock.graph.times import NEVER
from penstock.kernels.base import Context, Kernel, RecordFailed
from penstock.kernels.build import kernel_of
from penstock.kernels.errors.dead_letters import letter_rows, unread_letter
from penstock.kernels.errors.guard import Letter
from penstock.kernels.joins.static import JoinKernel
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.records.reading import Unread
from penstock.kernels.records.records import BadRecord
from penstock.kernels.state import MemoryState
from penstock.kernels.tables import MemoryTable
from penstock.kernels.time import EventTimeKernel
from penstock.kernels.topology.bolts import TaskChunk, unsaved
from penstock.kernels.topology.spout import completed
from penstock.kernels.watermarks import Watermarks


@dataclass
class Clock:
    """A clock that stands still until it is moved."""

    time: float = field(default_factory=time.time)

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
    tables: bytes = field(default_factory=lambda: pickle.dumps({}))
    watermarks: dict[str, Any] = field(default_factory=dict)
    late: dict[str, int] = field(default_factory=dict)
    before: int = NEVER


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
        self.timeline = Timeline(graph)
        self.batches = 0
        self._start()

    def _start(self) -> None:
        self.states: dict[str, MemoryState] = {
            step: MemoryState(pickle.loads(kept)) for step, kept in pickle.loads(self.committed.states).items()
        }
        self.tables_kept: dict[str, MemoryTable] = pickle.loads(self.committed.tables)
        self.marks = Watermarks.of(self.committed.watermarks)
        self.late = dict(self.committed.late)
        self.before = self.committed.before
        self.offsets = dict(self.committed.offsets)
        self.results: dict[str, list[Any]] = {s.name: [] for s in self.graph.sinks}
        self.unread: list[Letter] = []
        self.looped: dict[str, list[Any]] = {n: list(rows) for n, rows in self.committed.looped.items()}
        ports = [p for s in self.graph.sinks for p in s.inputs] + [n.fed_by for n in self.graph.loops if n.fed_by]
        self.pipeline = Pipeline([self._kernel(n) for n in self._working()], ports)
        try:
            self.pipeline.open(Context(now=self.clock, state=self._state, table=self._table))
        except RecordFailed as failed:
            raise StepError(failed.failure("before the first record")) from failed.error
        self._begin()

    @property
    def now(self) -> int:
        """The clock, in microseconds."""
        return round(self.clock() * 1_000_000)

    def _begin(self, *, ended: bool = False) -> None:
        """A batch begins: event time will move to where the records before it have brought it."""
        self.began = self.now
        self.marks.move(self.timeline.inputs, self.now)
        times = self.timeline.times(self.late, self.marks.at, self.before, self.now, ended=ended)
        self.pipeline.begin(times.__getitem__)

    def _working(self) -> list[Any]:
        return [n for n in self.graph.ordered if not isinstance(n, Source | Sink) and n.inputs]

    def _kernel(self, node: Any) -> Kernel:
        if node.kind == "join":
            return JoinKernel(node, self.graph.output(node.inputs[0]).schema, lambda: self.tables(node.table))
        return kernel_of(node, self.graph)

    def _state(self, step: str) -> MemoryState:
        return self.states.setdefault(step, MemoryState())

    def _table(self, name: str) -> MemoryTable:
        return self.tables_kept.setdefault(name, MemoryTable())

    def push(self, source: str, record: Any) -> None:
        """One record, through the whole graph."""
        node = self.graph.by_name.get(source)
        if not isinstance(node, Source):
            known = [s.name for s in self.graph.sources]
            raise UnknownName(f"flow {self.graph.name!r} has no source {source!r}; {nearest(source, known)}")
        if self.now != self.began:
            self._begin()
        self.offsets[source] = self.offsets.get(source, 0) + 1
        chunk = self._chunk(node, record)
        if chunk is not None:
            self._push(Port(source), chunk, f"record {self.offsets[source]} of {source!r}")

    def _chunk(self, node: Source, record: Any) -> Chunk | None:
        if node.endpoint.kind != "spout":
            return self._checked(node, record)
        full = completed(node, record, self.offsets[node.name] - 1)
        return TaskChunk(node.output().schema, full.emitter, Chunk.of(node.output().schema, [full]).columns())

    def _checked(self, node: Source, record: Any) -> Chunk | None:
        if isinstance(record, Unread):
            return self._unread(node, record)
        try:
            return Chunk.of(node.output().schema, [record])
        except BadRecord as error:
            position = f"record {self.offsets[node.name]} of {node.name!r}"
            if keeps_unread(node):
                return self._unread(node, Unread(repr(record).encode(), position, str(error)))
            raise StepError(RecordFailed(node, record, 0, error).failure(position)) from None

    def _unread(self, node: Source, unread: Unread) -> Chunk | None:
        """A record that could not be read stops the flow, is put aside or left out, as the source says."""
        if not keeps_unread(node):
            raise StepError(Failure(node.name, unread.cause, unread.text, unread.position, "", node.line))
        if node.on_error.action == DEAD_LETTER:
            self.unread.append(unread_letter(node.name, unread))
        return None

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

    def barrier(self, *, end: bool = False) -> None:
        """Ends a batch; if its records moved event time, or the input is over (`end`), another one without records follows."""
        self._begin()
        self._batch()
        if end:
            self.marks.end(self.timeline.inputs)
        if end or self.marks.at != self.late:
            self._begin(ended=end)
            self._batch()
        self._begin()

    def history(self) -> None:
        """Ends the only batch of a run over what is past. Its records move no time: what they open is for the flow to end."""
        self._begin()
        self._batch()

    def _batch(self, limit: int = 10_000) -> None:
        """Held results come out, loops run until they are quiet, time moves, and all is committed."""
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
            self._deliver_letters()
        except RecordFailed as failed:
            raise StepError(failed.failure("the end of a batch")) from failed.error

    def _move(self) -> None:
        """Event time has moved as the batch said; its records say how far it moves in the next."""
        self.late, self.before = dict(self.marks.at), self.now
        for kernel in self.pipeline.kernels:
            if isinstance(kernel, EventTimeKernel):
                self.marks.note(kernel.node.name, kernel.highs, self.now)
                kernel.highs = {}
        self.marks.move(self.timeline.inputs, self.now)
        for table in self.tables_kept.values():
            table.settle()

    def _deliver_letters(self) -> None:
        letters, self.unread = [*self.unread, *self.pipeline.letters()], []
        rows = letter_rows(letters, self.graph.name, "local", self.batches, self.now)
        for node in self.graph.sinks:
            if isinstance(self.graph.node(node.inputs[0].step), DeadLetters):
                self.results[node.name] += rows

    def _commit(self) -> None:
        self.batches += 1
        self._move()
        done = {s: [*self.committed.results.get(s, []), *rows] for s, rows in self.results.items()}
        states = pickle.dumps({step: self._pickled(step, state) for step, state in self.states.items()})
        looped = {n: list(r) for n, r in self.looped.items()}
        times = (self.marks.as_dict(), dict(self.late), self.before)
        self.committed = Committed(states, dict(self.offsets), done, looped, pickle.dumps(self.tables_kept), *times)
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
