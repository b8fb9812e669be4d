"""What runs in a Python worker: a fused stage, as the function of a `mapInArrow`.

The steps travel as one pickle, unpacked once per worker and kept; what changes from batch to batch travels beside it.
"""

from __future__ import annotations

import contextlib
import faulthandler
import gc
import pickle
import signal
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import Failure
from penstock.graph.graph import Graph
from penstock.graph.multilang.pool import POOL
from penstock.graph.nodes import Bolt, MapAsync, Node, Port
from penstock.graph.schema import Schema
from penstock.graph.state.timers import CLOCKS, Timers
from penstock.graph.times import Times
from penstock.kernels.base import Context, RecordFailed, short
from penstock.kernels.build import kernel_of
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.errors.marks import MARK, encode
from penstock.kernels.errors.payload import columns_of
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.quiet import quiet
from penstock.kernels.records.arrow import arrow_schema, declared, to_columns
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.topology.bolts import unsaved
from penstock.spark.tasks.gather import gathered
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
        self.stage, self.work = stage, _unpacked(stage)
        self.partition = context.partitionId() if context else 0
        self.stores = {name: kind for n in self.work.nodes for name, kind in n.stores.items()}
        self.states: dict[str, Any] = {s: self._opened(s, f) for s, f in stage.states.items()}
        self.seen = 0
        self.batch: pa.RecordBatch | None = None
        self.pipeline = Pipeline([kernel_of(n, self.work.graph) for n in self.work.nodes], self.work.outputs)

    def run(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The batches that come out."""
        try:
            yield from gathered(self._run(batches))
        except RecordFailed as failed:
            raise WorkerFailure(MARK + encode(self._failure(failed).as_dict())) from None
        finally:
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
            reuses=True,
        )
        self.pipeline.open(made)
        self.pipeline.begin(lambda step: self.stage.times.get(step, Times()))
        for port, data in self.stage.whole:
            rows = pa.ipc.open_stream(data).read_all().combine_chunks()
            list(self.pipeline.take(port, Chunk(self.work.graph.output(port).schema, columns=to_columns(rows))))
        if self.partition == 0 or not self.stage.numbered:
            yield from self._replayed()
        for batch in batches:
            self.batch = batch
            for port, chunk in self._chunks(batch):
                yield from map(self._out, self.pipeline.take(port, chunk))
            self.seen += batch.num_rows
        yield from map(self._out, self.pipeline.barrier())
        self.pipeline.close()
        notes = {
            (files.folder, self.partition): self._save(store, self._wakes(store))
            for store, files in self.stage.states.items()
        }
        self.stage.counts.add(replace(self.pipeline.counts(), dead_letters=self._dead_letters(), notes=notes))

    def _replayed(self) -> Iterator[pa.RecordBatch]:
        for step, rows in self.stage.replays.items():
            port = self.work.graph.node(step).inputs[0]
            schema = self.work.graph.output(port).schema
            chunk = Chunk(schema, columns=columns_of(rows, schema.names))
            yield from map(self._out, self.pipeline.take_at(step, chunk))

    def _dead_letters(self) -> list[DeadLetter]:
        """The records put aside, each with a number by which one that comes twice is known."""
        first = self.work.nodes[0].name
        return [
            replace(made, number=f"partition {self.partition} of {first}, dead letter {at}")
            for at, made in enumerate(self.pipeline.dead_letters())
        ]

    def _wakes(self, store: str) -> TaskWakes:
        """When the step that keeps a store next has work."""
        kernel = next((k for k in self.pipeline.kernels if store in k.node.stores), None)
        return {} if kernel is None else {clock: kernel.wake(clock) for clock in CLOCKS}

    def _save(self, step: str, wakes: TaskWakes) -> TaskNote:
        """Writes what changed in a state; returns what the driver must know of it."""
        from pyspark import cloudpickle

        state = self.states[step]
        try:
            with quiet():
                note: TaskNote = state.save(wakes)
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
        if len(self.work.inputs) == 1:
            yield self.work.inputs[0], self._chunk(self.work.inputs[0], batch)
            return
        for at, port in enumerate(self.work.inputs):
            part = batch.column(1 + at).filter(pc.equal(batch.column(0), at))
            if len(part):
                yield port, self._chunk(port, pa.RecordBatch.from_struct_array(part))

    def _out(self, given: tuple[Port, Chunk]) -> pa.RecordBatch:
        port, chunk = given
        if len(self.work.outputs) == 1:
            return chunk.batch()
        return tagged(self.work, port, chunk.batch())

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
    """A schema with only these fields."""
    if schema.names == names:
        return schema
    return Schema(tuple(f for f in schema.fields if f.name in names), internal=True)


def tagged(work: Work, port: Port, batch: pa.RecordBatch) -> pa.RecordBatch:
    """A batch of one output among several: `__out` says which, and a struct per output holds its records."""
    columns: list[Any] = [pa.array([work.outputs.index(port)] * batch.num_rows, pa.int32())]
    for each in work.outputs:
        kind = pa.struct(list(arrow_schema(work.graph.output(each).schema)))
        columns.append(batch.to_struct_array() if each == port else pa.nulls(batch.num_rows, kind))
    names = ["__out", *(f"__o{i}" for i in range(len(work.outputs)))]
    return pa.RecordBatch.from_arrays(columns, names)
