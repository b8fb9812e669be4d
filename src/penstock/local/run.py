"""The local runtime: a flow in this process, without a JVM.

Records go in by chunks, in order; a barrier ends a batch. What is committed at a barrier survives a crash; the records
after it are replayed, as the sources would on Spark.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import attrgetter
from typing import TypeAlias

from penstock.compiler.capture import check_capture
from penstock.compiler.forgetting import owned_stores
from penstock.compiler.times import Timeline
from penstock.errors import Failure, Impossible, StepError, UnknownName, nearest
from penstock.graph.endpoints.parsing import keeps_malformed
from penstock.graph.graph import Graph
from penstock.graph.nodes import (
    DEAD_LETTER,
    Bolt,
    DeadLetters,
    Endpoint,
    JoinStatic,
    MapAsync,
    Node,
    Port,
    Sink,
    Source,
)
from penstock.graph.row import Row
from penstock.graph.state.timers import EVENT, PROCESSING
from penstock.graph.state.times import StoredTimes, Wakes
from penstock.graph.times import FOREVER
from penstock.kernels.base import Context, Kernel, RecordFailed
from penstock.kernels.build import kernel_of
from penstock.kernels.counts import PassCounts
from penstock.kernels.errors.dead_letters import dead_letter_rows, malformed_dead_letter
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.joins.static import JoinKernel
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.records.reading import MalformedRecord
from penstock.kernels.records.records import BadRecord
from penstock.kernels.time import EventTimeKernel
from penstock.kernels.topology.bolts import unsaved
from penstock.kernels.topology.pending import AckLedger, merged
from penstock.kernels.topology.spout_records import SpoutRecord, completed
from penstock.kernels.topology.task_chunks import TaskChunk
from penstock.kernels.topology.task_reports import log_errors
from penstock.kernels.watermarks import Timekeeper
from penstock.local.clock import Clock
from penstock.local.oracle import direct
from penstock.local.program import Program, compiled
from penstock.state.memory import MemoryState, MemoryTable
from penstock.state.memory_timers import MemoryTimers

Record: TypeAlias = object
"""A record of a user may be anything that fits the schema."""
Tables = Callable[[Endpoint], Iterable[Record]]
Snapshots = dict[str, bytes]
ROUNDS = 10_000
"""How often a loop may go round in a batch."""


@dataclass
class CommittedState:
    """What a barrier made safe: the state of every step, how far each source was read, what each sink holds."""

    states: Snapshots = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    results: dict[str, list[Row]] = field(default_factory=dict)
    tables: Snapshots = field(default_factory=dict)
    times: StoredTimes = field(default_factory=StoredTimes)
    timers: Snapshots = field(default_factory=dict)
    ledger: AckLedger = field(default_factory=AckLedger)


class LocalRun:
    """A flow running in this process.

    `program` says what is executed: the compiled plan, unless the oracle is asked for.
    """

    def __init__(
        self,
        graph: Graph,
        tables: Tables,
        clock: Callable[[], float] | None = None,
        committed: CommittedState | None = None,
        program: Callable[[Graph], Program] = compiled,
    ) -> None:
        check_capture(graph)
        self.graph, self.tables = graph, tables
        self.clock = clock or Clock()
        self.committed = committed or CommittedState()
        self.program = program(graph)
        self.timeline, self.owned = Timeline(self.program.graph), owned_stores(self.program.graph)
        self.keeper = Timekeeper(self.timeline.inputs)
        self.batches = 0
        self.renewed: frozenset[int] = frozenset()
        self.reported = PassCounts()
        self.pending: list[tuple[str, Sequence[Record]]] = []
        self.pipeline = Pipeline([], ())
        self._start()

    def _start(self) -> None:
        self.abandon()
        kept = self.committed
        self.states: dict[str, MemoryState] = {}
        self.tables_kept: dict[str, MemoryTable] = {}
        self.timers: dict[str, MemoryTimers] = {}
        for step, snapshot in kept.states.items():
            self._state(step).restore(snapshot)
        for name, snapshot in kept.tables.items():
            self._table(name).restore(snapshot)
        for step, snapshot in kept.timers.items():
            self._timers(step).restore(snapshot)
        self.keeper.restore(kept.times)
        self.offsets = dict(kept.offsets)
        self.results: dict[str, list[Row]] = {s.name: [] for s in self.graph.sinks}
        self.malformed: list[DeadLetter] = []
        self.dead_letters: list[Row] = []
        self.looped: dict[str, list[Record]] = {}
        self.pipeline = self._opened()
        self._begin()

    def _opened(self) -> Pipeline:
        graph = self.program.graph
        ports = [p for s in graph.sinks for p in s.inputs] + [n.fed_by for n in graph.loops if n.fed_by]
        made = Pipeline([self._kernel(n) for n in self.program.steps], ports)
        try:
            made.open(self._context())
        except RecordFailed as failed:
            raise StepError(failed.failure("before the first record")) from failed.error
        return made

    def _context(self) -> Context:
        kept = (self._state, self._table, self._timers)
        return Context(0, 1, self.clock, *kept, scratch=MemoryState, batch=lambda: self.batches, forget=self._forget)

    def _forget(self, rules: str, gone: frozenset[object]) -> None:
        """Rules are gone: what is kept for them goes too."""
        for store, owned in self.owned.items():
            if owned.rules == rules:
                state = self._state(store)
                for key in [key for key, _ in state.items() if key[owned.part] in gone]:
                    state.delete(key)
                    self._timers(store).clear(key)

    def _kernel(self, node: Node) -> Kernel:
        graph = self.program.graph
        if isinstance(node, JoinStatic):
            return JoinKernel(node, graph.output(node.inputs[0]).schema, lambda: self.tables(node.table))
        return kernel_of(node, graph)

    def _state(self, step: str) -> MemoryState:
        return self.states.setdefault(step, MemoryState())

    def _table(self, name: str) -> MemoryTable:
        return self.tables_kept.setdefault(name, MemoryTable())

    def _timers(self, step: str) -> MemoryTimers:
        return self.timers.setdefault(step, MemoryTimers())

    @property
    def now(self) -> int:
        """Processing time, in microseconds."""
        return round(self.clock() * 1_000_000)

    def _begin(self, *, ended: bool = False) -> None:
        """A batch begins: event time will move to where the records before it have brought it."""
        self.began, self.ended = self.now, ended
        if not self.pending:
            self.keeper.nothing_waits(self.now)
        batch = self.keeper.begin(self.now, ended=ended)
        times = self.timeline.times(batch.previous, batch.watermark, batch.before, batch.now, ended=ended)
        self.pipeline.begin(times.__getitem__)

    def push(self, source: str, *records: Record) -> None:
        """Sends records in; they go through all steps before this returns.

        Raises UnknownName when the flow has no such source, and StepError, with the position of the record, when a step
        fails on one.
        """
        node = self._source(source)
        if self.now != self.began:
            self._begin()
        for at in range(0, len(records), self.program.chunk):
            piece = records[at : at + self.program.chunk]
            self.pending.append((source, piece))
            self._take(node, piece)

    def _source(self, name: str) -> Source:
        node = self.graph.by_name.get(name)
        if not isinstance(node, Source):
            known = [s.name for s in self.graph.sources]
            raise UnknownName(f"flow {self.graph.name!r} has no source {name!r}; {nearest(name, known)}")
        return node

    def _take(self, node: Source, records: Sequence[Record]) -> None:
        try:
            self._through(node, records)
        except RecordFailed as failed:
            position, up_to = (
                f"{what} {self.offsets[node.name]} of {node.name!r}" for what in ("record", "a record up to")
            )
            if failed.at is None:
                position = up_to
            elif len(records) > 1:
                position = self._found(up_to)
            raise StepError(_failure(failed, position)) from failed.error

    def _found(self, otherwise: str) -> str:
        """Goes over the pending records again one by one, from the last barrier on: the failure then names its record."""
        self._start()
        for source, records in self.pending:
            for record in records:
                self._take(self._source(source), (record,))
        return otherwise

    def _through(self, node: Source, records: Sequence[Record]) -> None:
        before = self.offsets.get(node.name, 0)
        self.offsets[node.name] = before + len(records)
        for chunk in self._chunks(node, records, before):
            self._deliver(Port(node.name), chunk)
            self._pass(Port(node.name), chunk)

    def _pass(self, port: Port, chunk: Chunk) -> None:
        for out, made in self.pipeline.take(port, chunk):
            self._deliver(out, made)

    def _chunks(self, node: Source, records: Sequence[Record], before: int) -> Iterator[Chunk]:
        """The records as chunks: one of all, where nothing is the matter with any."""
        schema = node.output().schema
        if node.endpoint.capabilities.emits_tuples:
            emitted = self._tuples(node, records, before)
            for emitter, some in groupby(emitted, attrgetter("emitter")):
                yield TaskChunk(schema, emitter, Chunk.of(schema, list(some)).columns())
        elif (whole := _whole(node, records)) is not None:
            yield whole
        else:
            for at, record in enumerate(records):
                yield from self._readable(node, record, before + at + 1)

    def _tuples(self, node: Source, records: Sequence[Record], before: int) -> Iterator[SpoutRecord]:
        """The tuples of a spout that fit their streams."""
        for at, record in enumerate(records):
            if isinstance(record, MalformedRecord):
                self._set_aside(node, record)
            else:
                yield completed(node, record, before + at)

    def _readable(self, node: Source, record: Record, number: int) -> Iterator[Chunk]:
        """A record that fits the schema; another stops the flow, or becomes a dead letter, as the source says."""
        if isinstance(record, MalformedRecord):
            self._set_aside(node, record)
            return
        try:
            made = Chunk.of(node.output().schema, [record])
        except BadRecord as error:
            position = f"record {number} of {node.name!r}"
            if not keeps_malformed(node):
                raise StepError(RecordFailed(node, record, 0, error).failure(position)) from None
            self._set_aside(node, MalformedRecord(repr(record).encode(), position, str(error)))
        else:
            yield made

    def _set_aside(self, node: Source, malformed: MalformedRecord) -> None:
        if not keeps_malformed(node):
            raise StepError(Failure(node.name, malformed.cause, malformed.text, malformed.position, "", node.line))
        if node.error_action == DEAD_LETTER:
            self.malformed.append(malformed_dead_letter(node, malformed))

    def _deliver(self, port: Port, chunk: Chunk) -> None:
        graph = self.program.graph
        for node in graph.readers(port):
            if isinstance(node, Sink):
                self.results[node.name] += chunk.plain_rows()
        for loop in graph.loops:
            if loop.fed_by == port:
                self.looped.setdefault(loop.name, []).extend(chunk.rows())

    def barrier(self, *, end: bool = False, waiting: bool = False) -> None:
        """Ends a batch. As in a live run one without records follows if a step has work at the time that has been reached.

        While records wait (`waiting`) none does: the next batch is theirs. When the input is over (`end`) one does, in which all
        time passes.
        """
        self._begin()
        self._batch()
        if end or (not waiting and self._is_due()):
            self._begin(ended=end)
            self._batch()
        self._begin()

    def _is_due(self) -> bool:
        wakes = Wakes(self._wakes(EVENT), self._wakes(PROCESSING))
        return self.keeper.is_due(wakes, self.now, self.timeline.store_watermark)

    def _wakes(self, clock: str) -> dict[str, int]:
        """When the step of each store next has work."""
        times = {store: k.wake(clock) for k in self.pipeline.kernels for store in k.node.stores}
        return {store: time for store, time in times.items() if time < FOREVER}

    def history(self) -> None:
        """Ends the only batch of a run over what is past. Its records move no time: what they open is for the flow to end."""
        self._begin()
        self._batch()

    def _batch(self) -> None:
        """Results that were held come out, loops run until they are quiet, time moves, and all is committed."""
        self._flush()
        for _ in range(ROUNDS):
            if not any(self.looped.values()):
                return self._commit()
            self._round()
        raise Impossible(f"flow {self.graph.name!r}: its loop went round {ROUNDS} times and did not come to rest")

    def _round(self) -> None:
        """What was fed back goes in: a batch of its own, as on Spark."""
        fed, self.looped = self.looped, {}
        self._settle() if self.ended else self._move()
        self._begin(ended=self.ended)
        for name, rows in fed.items():
            schema = self.graph.node(name).output().schema
            try:
                self._pass(Port(name), Chunk(schema, rows=rows))
            except RecordFailed as failed:
                raise StepError(_failure(failed, f"the loop {name!r}")) from failed.error
        self._flush()

    def _flush(self) -> None:
        try:
            for out, made in self.pipeline.barrier():
                self._deliver(out, made)
        except RecordFailed as failed:
            raise StepError(_failure(failed, self._located(_step(failed).name))) from failed.error
        self._deliver_dead_letters()

    def _located(self, step: str) -> str:
        """The position of the record on which a step failed at the end of a batch: the oracle takes the pending ones one by one."""
        if self.program.chunk > 1 and not isinstance(self.graph.by_name.get(step), MapAsync):
            before = CommittedState(offsets=dict(self.committed.offsets))
            oracle = LocalRun(self.graph, self.tables, self.clock, before, direct)
            try:
                for source, records in self.pending:
                    oracle.push(source, *records)
            except StepError as error:
                if error.failure.step == step:
                    return error.failure.position
        return "the end of a batch"

    def _deliver_dead_letters(self) -> None:
        dead_letters, self.malformed = [*self.malformed, *self.pipeline.dead_letters()], []
        rows = dead_letter_rows(dead_letters, self.graph.name, "local", self.batches, self.now)
        self.dead_letters += rows
        for node in self.graph.sinks:
            if isinstance(self.graph.node(node.inputs[0].step), DeadLetters):
                self.results[node.name] += rows

    def _move(self) -> None:
        """Event time has moved as the batch said; its records say how far it moves in the next."""
        highs: dict[str, dict[str, int]] = {}
        for kernel in self.pipeline.kernels:
            if isinstance(kernel, EventTimeKernel):
                highs[kernel.node.name], kernel.highs = kernel.highs, {}
        self.times = self.keeper.finish(highs)
        self._settle()

    def _settle(self) -> None:
        for table in self.tables_kept.values():
            table.settle()

    def _commit(self) -> None:
        self.batches += 1
        self._move()
        done = {s: [*self.committed.results.get(s, []), *rows] for s, rows in self.results.items()}
        states = {step: self._snapshot(step, state) for step, state in self.states.items()}
        tables = {name: table.snapshot() for name, table in self.tables_kept.items()}
        timers = {step: each.snapshot() for step, each in self.timers.items()}
        ledger = self._settled()
        self.committed = CommittedState(states, dict(self.offsets), done, tables, self.times, timers, ledger)
        self.results = {s: [] for s in self.results}
        self.pending = []

    def _settled(self) -> AckLedger:
        """What is known of the messages of spouts after the batch."""
        self.reported = self.pipeline.counts()
        report, ledger = merged(self.reported.acks), self.committed.ledger.copy()
        ledger.add(self.batches, report)
        self.renewed = frozenset(report.renewed)
        for (step, task), errors in self.reported.bolt_errors.items():
            log_errors("bolt", step, task, errors)
        return ledger

    def _snapshot(self, step: str, state: MemoryState) -> bytes:
        try:
            return state.snapshot()
        except Exception as error:
            if not isinstance(self.graph.by_name.get(step), Bolt):
                raise
            raise unsaved(step, state.kept.values(), error, pickle.dumps) from error

    def crash(self) -> None:
        """Loses all that was not committed, as a killed process does, starts again, and replays the pending records."""
        self._start()
        for source, records in self.pending:
            self._take(self._source(source), records)

    def close(self) -> None:
        """Ends the run."""
        self.pipeline.close()

    def abandon(self) -> None:
        """Lets go of threads and connections of a run that ends early."""
        self.pipeline.abandon()


def _step(failed: RecordFailed) -> Node:
    """The user's step that failed; the compiler may have made several of it."""
    of = getattr(failed.node, "of", None)
    return of if isinstance(of, Node) else failed.node


def _failure(failed: RecordFailed, position: str) -> Failure:
    return replace(failed.failure(position), step=_step(failed).name)


def _whole(node: Source, records: Sequence[Record]) -> Chunk | None:
    """All records as one chunk; None when one of them is malformed."""
    if any(isinstance(r, MalformedRecord) for r in records):
        return None
    try:
        return Chunk.of(node.output().schema, list(records))
    except BadRecord:
        return None
