"""What runs in a Python worker: a fused stage, as the function of a `mapInArrow`.

The steps travel as one pickle, unpacked once per worker and kept; what changes from batch to batch travels beside it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import pickle
import signal
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from time import perf_counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.connectors.process.followed import StoredBlocks, blocks_at
from penstock.errors import Failure
from penstock.graph.graph import Graph
from penstock.graph.multilang.pool import POOL
from penstock.graph.nodes import Bolt, MapAsync, Node, Port
from penstock.graph.nodes.topology import SOURCE
from penstock.graph.schema import Schema
from penstock.graph.state.active_runs import RunChanges
from penstock.graph.state.timers import CLOCKS, Timers
from penstock.graph.times import Times
from penstock.kernels.base import Context, Kernel, RecordFailed, short
from penstock.kernels.build import kernel_of
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.errors.marks import MARK, encode
from penstock.kernels.errors.payload import columns_of
from penstock.kernels.log_levels import set_levels
from penstock.kernels.looks import NOTHING, Looks
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.quiet import quiet
from penstock.kernels.records.arrow import arrow_schema, declared, to_columns
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.records.gather import gathered
from penstock.kernels.sampling import SampledPipeline
from penstock.kernels.stacks import StackSampler
from penstock.kernels.topology.blocks import BLOCK, BlockWriter, TupleRoute, kept_fields, read_block
from penstock.kernels.topology.bolts import unsaved
from penstock.kernels.tracing import Tracer
from penstock.spark.tasks.lazy_pandas import put_off_pandas
from penstock.state.chain import StepFiles, TaskNote
from penstock.state.memory import MemoryState, MemoryTable
from penstock.state.memory_timers import MemoryTimers
from penstock.state.notes import TaskWakes
from penstock.state.tables import FileTable
from penstock.state.values import FileState

_KEPT: OrderedDict[str, Any] = OrderedDict()


class WorkerFailure(Exception):
    """A failure on its way to the driver, as one line of text."""


@dataclass(frozen=True)
class Work:
    """A stage as it travels: its steps, the graph they stand in, the streams that go in and come out."""

    graph: Graph
    nodes: tuple[Node, ...]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]


@dataclass(frozen=True)
class Stage:
    """The function of a `mapInArrow`: packed work, and what is new in this batch."""

    digest: str
    packed: bytes = field(repr=False)
    counts: Any
    grouped: bool = False
    routed: bool = False
    states: dict[str, StepFiles] = field(default_factory=dict)
    times: dict[str, Times] = field(default_factory=dict)
    replays: dict[str, list[Any]] = field(default_factory=dict)
    """Dead letters that go to steps inside the stage again; of a stage without numbers only one task has any."""
    whole: tuple[tuple[Port, bytes], ...] = ()
    """Streams that every task gets as a whole, before its own records, as Arrow's bytes."""
    batch: int = 0
    """The id of the batch."""
    looks: Looks = NOTHING
    """What somebody looks at in the stage."""
    forgets: dict[str, tuple[int, frozenset[object]]] = field(default_factory=dict)
    """Of stores that belong to rules: which part of a key names the rule, and which rules are gone."""
    reads_blocks: bool = False
    """Whether tuples for the bolt come in blocks."""
    unread: frozenset[Port] = frozenset()
    """The outputs that nobody reads: they are counted, the first records of each task are checked, and all stay here."""
    routes: dict[Port, tuple[TupleRoute, ...]] = field(default_factory=dict)
    """The outputs that bolts read and that go to them in blocks, with the way to each of them."""
    blocks_in: str = ""
    """The folder of this machine in which such blocks wait to be read; empty where Spark moves them."""

    @property
    def numbered(self) -> bool:
        """Whether tasks are known by their number, because each has a state or is a task of a bolt."""
        return bool(self.states) or self.routed

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Runs the stage over the batches of a partition."""
        return _Task(self).run(batches)


@lru_cache(maxsize=1)
def freeze() -> None:
    """Takes what the first task has imported out of the sight of the garbage collector.

    Spark has it go over all objects after each task, and the next task waits for that: 25 ms for what is never garbage.
    """
    gc.collect()
    gc.freeze()


@lru_cache(maxsize=1)
def prepare() -> None:
    """Makes this process a worker: without pandas until a step wants it, with programs of bolts that stay over batches, and one that shows where it
    is when it is asked.

    It writes its Python stacks to standard error when it gets SIGUSR1, which the driver sends where nothing moves.
    """
    put_off_pandas()
    POOL.keeps = True
    with contextlib.suppress(AttributeError, OSError, ValueError):
        faulthandler.register(signal.SIGUSR1, all_threads=True)


def _unpacked(stage: Stage) -> Work:
    if stage.digest not in _KEPT:
        _KEPT[stage.digest] = pickle.loads(stage.packed)
        if len(_KEPT) > 64:
            _KEPT.popitem(last=False)
    made: Work = _KEPT[stage.digest]
    return made


class _Task:
    """One partition of a stage."""

    def __init__(self, stage: Stage) -> None:
        from pyspark import TaskContext

        context = TaskContext.get()
        if context:
            if prepare.cache_info().currsize:
                freeze()
            prepare()
            set_levels(dict(stage.looks.levels))
        self.stage, self.work = stage, _unpacked(stage)
        self.partition = context.partitionId() if context else 0
        self.stores = {name: kind for n in self.work.nodes for name, kind in n.stores.items()}
        self.states: dict[str, Any] = {s: self._opened(s, f) for s, f in stage.states.items()}
        self.seen = 0
        self.gone: dict[str, frozenset[object]] = {}
        self.batch: pa.RecordBatch | None = None
        kernels, outputs = [kernel_of(n, self.work.graph) for n in self.work.nodes], self.work.outputs
        self.pipeline = (
            SampledPipeline(kernels, outputs, self.work.graph, stage.looks, Tracer(stage.batch, self.partition))
            if stage.looks
            else Pipeline(kernels, outputs)
        )
        unread = stage.unread - {port for port, _ in stage.looks.streams}
        for kernel in self.pipeline.kernels:
            kernel.unread = frozenset(port.name for port in unread if port.step == kernel.node.name)
            kernel.leaving &= not kernel.unread
        self.writers = {port: BlockWriter(routes, self.partition) for port, routes in stage.routes.items()}
        self.stored = StoredBlocks(stage.blocks_in) if stage.blocks_in and stage.routes else None

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches that come out."""
        self.stacks = StackSampler([threading.get_ident()]).start() if self.stage.looks.profiles else None
        try:
            yield from gathered(self._run(batches))
        except RecordFailed as failed:
            raise WorkerFailure(MARK + encode(self._failure(failed).as_dict())) from None
        finally:
            if self.stacks is not None:
                self.stacks.stop()
            self.pipeline.abandon()

    def _run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        made = Context(
            self.partition,
            self._tasks(),
            state=self._state,
            table=self._table,
            timers=self._timers,
            scratch=MemoryState,
            batch=lambda: self.stage.batch,
            forget=self.gone.__setitem__,
            reuses=True,
        )
        self.pipeline.open(made)
        self._forget()
        self.pipeline.begin(lambda step: self.stage.times.get(step, Times()))
        for port, data in self.stage.whole:
            rows = pa.ipc.open_stream(data).read_all().combine_chunks()
            list(self.pipeline.take(port, Chunk(self.work.graph.output(port).schema, columns=to_columns(rows))))
        if self.partition == 0 or not self.stage.numbered:
            yield from self._replayed()
        for batch in batches:
            self.batch = batch
            for port, chunk in self._chunks(batch):
                yield from self._out(self.pipeline.take(port, chunk))
                self.seen += len(chunk) if self.stage.reads_blocks else 0
            self.seen += 0 if self.stage.reads_blocks else batch.num_rows
        yield from self._out(self.pipeline.barrier())
        for port, writer in self.writers.items():
            yield from self._tagged(port, self._placed(writer.flush()))
        if self.stored is not None:
            self.stored.close()
        self.pipeline.close()
        notes = {(files.folder, self.partition): self._noted(store) for store, files in self.stage.states.items()}
        made_counts = replace(self.pipeline.counts(), dead_letters=self._dead_letters(), notes=notes, gone=self.gone)
        if self.stacks is not None:
            made_counts.stacks = self.stacks.stop()
        self.stage.counts.add(made_counts)

    def _forget(self) -> None:
        """Drops what is kept for rules that are gone, before the first record of the batch."""
        for store, (part, gone) in self.stage.forgets.items():
            state = self._state(store)
            for key in [key for key, _ in state.items() if key[part] in gone]:
                state.delete(key)
                if isinstance(state, FileState) and state.waits is not None:
                    state.waits.clear(key)

    def _replayed(self) -> Iterator[pa.RecordBatch]:
        for step, rows in self.stage.replays.items():
            port = self.work.graph.node(step).inputs[0]
            schema = self.work.graph.output(port).schema
            chunk = Chunk(schema, columns=columns_of(rows, schema.names))
            yield from self._out(self.pipeline.take_at(step, chunk))

    def _dead_letters(self) -> list[DeadLetter]:
        """The records put aside, each with a number by which one that comes twice is known."""
        first = self.work.nodes[0].name
        return [
            replace(made, number=f"partition {self.partition} of {first}, dead letter {at}")
            for at, made in enumerate(self.pipeline.dead_letters())
        ]

    def _noted(self, store: str) -> TaskNote:
        """Saves a store; its time, and the timers in it, are those of the step that keeps it."""
        kernel, began = self._keeper(store), perf_counter()
        wakes = self._wakes(kernel)
        state = self.states[store]
        timers = state.waits.count() if isinstance(state, FileState) and state.waits is not None else 0
        note = self._save(store, wakes, self._run_changes(store))
        if kernel is not None:
            kernel.counters.timers += timers
            kernel.counters.seconds += perf_counter() - began
        return note

    def _keeper(self, store: str) -> Kernel | None:
        return next((k for k in self.pipeline.kernels if store in k.node.stores), None)

    def _wakes(self, kernel: Kernel | None) -> TaskWakes:
        """When a step next has work."""
        return {} if kernel is None else {clock: kernel.wake(clock) for clock in CLOCKS}

    def _run_changes(self, store: str) -> dict[str, RunChanges]:
        """What has changed of the runs of patterns that a store keeps."""
        return next((k.run_changes for k in self.pipeline.kernels if store == k.node.name), {})

    def _save(self, step: str, wakes: TaskWakes, runs: dict[str, RunChanges]) -> TaskNote:
        """Writes what changed in a state; returns what the driver must know of it."""
        from pyspark import cloudpickle

        state = self.states[step]
        try:
            with quiet():
                note: TaskNote = state.save(wakes, runs)
                return note
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            if not isinstance(self.work.graph.by_name.get(step), Bolt):
                raise
            raise unsaved(step, state.cache.values(), error, cloudpickle.dumps) from None

    def _tasks(self) -> int:
        first = self.work.nodes[0]
        if isinstance(first, Bolt):
            return first.tasks
        return next((f.tasks for f in self.stage.states.values()), 1)

    def _opened(self, store: str, files: StepFiles) -> Any:
        if self.stores[store] == "rows":
            return FileTable(files, self.partition)
        return FileState(files, self.partition, by_value)

    def _state(self, step: str) -> Any:
        return self.states.setdefault(step, MemoryState())

    def _table(self, name: str) -> Any:
        return self.states.setdefault(name, MemoryTable())

    def _timers(self, step: str) -> Timers:
        state = self.states.get(step)
        return state.timers(self.stage.times.get(step, Times())) if isinstance(state, FileState) else MemoryTimers()

    def _chunks(self, batch: pa.RecordBatch) -> Iterator[tuple[Port, Chunk]]:
        if self.stage.routed:
            yield from self._routed(batch)
            return
        if self.stage.grouped and len(self._moved) > 1:
            yield from self._several(batch)
            return
        port = self.work.inputs[0]
        hashes = None
        if self.stage.grouped:
            hashes = batch.column(batch.num_columns - 1).to_pylist()
            batch = batch.select(range(batch.num_columns - 1))
        yield port, self._chunk(port, batch, hashes)

    @property
    def _moved(self) -> list[Port]:
        """The inputs whose records come to the task that owns them; others come as a whole to every task."""
        whole = {port for port, _ in self.stage.whole}
        return [port for port in self.work.inputs if port not in whole]

    def _chunk(self, port: Port, batch: pa.RecordBatch, hashes: list[int] | None = None) -> Chunk:
        """The records of an input as a chunk; columns that have served their purpose are not among them."""
        schema = fitting(self.work.graph.output(port).schema, tuple(batch.schema.names))
        return Chunk(schema, batch=declared(batch, schema), key_hashes=hashes)

    def _several(self, batch: pa.RecordBatch) -> Iterator[tuple[Port, Chunk]]:
        """Records of several inputs, by key: `__input` says which, a struct holds each, and the key hash comes last."""
        for at, port in enumerate(self._moved):
            mine = batch.filter(pc.equal(batch.column(0), at))
            if mine.num_rows:
                records = pa.RecordBatch.from_struct_array(mine.column(1 + at))
                hashes = mine.column(mine.num_columns - 1).to_pylist()
                yield port, self._chunk(port, records, hashes)

    def _routed(self, batch: pa.RecordBatch) -> Iterator[tuple[Port, Chunk]]:
        """Tuples for a bolt, all for this task. Of several inputs `__input` says which, and a struct holds each."""
        if self.stage.reads_blocks:
            yield from self._in_blocks(batch)
            return
        if len(self.work.inputs) == 1:
            yield self.work.inputs[0], self._chunk(self.work.inputs[0], batch)
            return
        for at, port in enumerate(self.work.inputs):
            part = batch.column(1 + at).filter(pc.equal(batch.column(0), at))
            if len(part):
                yield port, self._chunk(port, pa.RecordBatch.from_struct_array(part))

    def _in_blocks(self, batch: pa.RecordBatch) -> Iterator[tuple[Port, Chunk]]:
        """Tuples that come in blocks, of the input whose number stands beside each."""
        first = self.work.nodes[0]
        assert isinstance(first, Bolt), "only bolts read blocks"
        for at, emitter, data in zip(*(column.to_pylist() for column in batch.columns), strict=True):
            port = first.inputs[at]
            schema = self.work.graph.output(port).schema
            kept = fitting(schema, tuple(kept_fields(schema, first.groupings[at])))
            yield from ((port, chunk) for block in blocks_at(data) for chunk in read_block(block, kept, emitter))

    def _out(self, given: Iterable[tuple[Port, Chunk]]) -> Iterator[pa.RecordBatch]:
        for port, chunk in given:
            if port in self.stage.unread:
                continue
            writer = self.writers.get(port)
            made = [chunk.batch()] if writer is None else self._placed(writer.add(chunk.by_number()))
            yield from self._tagged(port, made)

    def _placed(self, blocks: Iterable[pa.RecordBatch]) -> Iterable[pa.RecordBatch]:
        """Blocks as they move: themselves, or where they are."""
        return blocks if self.stored is None else map(self.stored.placed, blocks)

    def _tagged(self, port: Port, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        if len(self.work.outputs) == 1:
            yield from batches
            return
        schemas = [
            BLOCK if p in self.writers else arrow_schema(self.work.graph.output(p).schema) for p in self.work.outputs
        ]
        yield from (tagged(schemas, self.work.outputs.index(port), batch) for batch in batches)

    def _failure(self, failed: RecordFailed) -> Failure:
        first = self.work.nodes[0].name
        at = failed.at if failed.node.name == first else self._search()
        if at is None:
            return failed.failure(f"partition {self.partition}, after record {self.seen} of the input of {first!r}")
        number = self.seen + at
        made = failed.failure(f"partition {self.partition}, record {number + 1} of the input of {first!r}")
        if self.stage.routed:
            return made
        origin = self._origin(at)
        return replace(made, stream=str(self.work.inputs[0]), partition=self.partition, number=number, origin=origin)

    def _origin(self, at: int) -> str:
        if self.batch is None or at >= self.batch.num_rows:
            return ""
        _, chunk = next(self._chunks(self.batch.slice(at, 1)))
        return short(chunk.rows()[0])

    def _calls_services(self) -> bool:
        """Whether a step of the pass calls a service, which is not to be called again to find out where a record was."""
        return any(isinstance(node, MapAsync) for node in self.work.nodes)

    def _search(self) -> int | None:
        """Which record of the batch at hand broke a later step of the pass: they go through again, one by one."""
        if self.batch is None or self.stage.states or self.stage.routed or self._calls_services():
            return None
        again = Pipeline([kernel_of(n, self.work.graph) for n in self.work.nodes], self.work.outputs)
        again.open(in_memory(self.partition))
        for at in range(self.batch.num_rows):
            try:
                for port, chunk in self._chunks(self.batch.slice(at, 1)):
                    list(again.take(port, chunk))
            except RecordFailed:
                return at
        return None


def in_memory(task: int) -> Context:
    """A context whose state lives as long as the kernels."""
    return Context(
        task,
        state=lambda _: MemoryState(),
        table=lambda _: MemoryTable(),
        timers=lambda _: MemoryTimers(),
        scratch=MemoryState,
    )


def by_value(value: object) -> bytes:
    """A value as bytes; one whose class travelled by value takes the longer way."""
    from pyspark import cloudpickle

    try:
        return pickle.dumps(value, 5)
    except (pickle.PicklingError, AttributeError, ImportError, TypeError):
        return bytes(cloudpickle.dumps(value, 5))


@lru_cache(maxsize=256)
def fitting(schema: Schema, names: tuple[str, ...]) -> Schema:
    """A schema with only these fields, and with the task a tuple comes from where that has been added on its way."""
    if schema.names == names:
        return schema
    added = (SOURCE,) if SOURCE.name in names and SOURCE.name not in schema else ()
    return Schema((*(f for f in schema.fields if f.name in names), *added), internal=True)


def tagged(schemas: list[pa.Schema], output: int, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of one output among several: `__out` says which, and a struct per output holds its records."""
    columns: list[Any] = [pa.array([output] * batch.num_rows, pa.int32())]
    for at, schema in enumerate(schemas):
        columns.append(batch.to_struct_array() if at == output else pa.nulls(batch.num_rows, pa.struct(list(schema))))
    names = ["__out", *(f"__o{i}" for i in range(len(schemas)))]
    return pa.RecordBatch.from_arrays(columns, names)
