"""One task of a bolt: the user's instance, the tuples it gets, and what it emits, acks and fails."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import CaptureError
from penstock.graph.logic.acks import AckReport, FailedException, ReportedFailedException
from penstock.graph.logic.bolts import KeyValueState, StatefulBolt, WindowedBolt
from penstock.graph.logic.collector import Collector
from penstock.graph.logic.components import kept_attributes, task_of
from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.logic.task_context import TaskContext
from penstock.graph.logic.tuples import DEFAULT, joined_roots, tick_tuple
from penstock.graph.nodes import Bolt, Output
from penstock.graph.nodes.topology import ROOTS, TASK, visible
from penstock.graph.schema import Schema
from penstock.graph.state.keyed import KeyedState
from penstock.graph.times import FOREVER, Times
from penstock.kernels.base import RecordFailed
from penstock.kernels.records.arrow import with_columns
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.records.records import BadRecord
from penstock.kernels.topology.task_state import TaskState
from penstock.kernels.topology.windows import TupleWindows

if TYPE_CHECKING:
    import pyarrow as pa

HELD, TICK_AT, WINDOWS = "__held", "__tick", "__windows"
"""What is saved of a task beside the attributes of its instance."""
SECOND = 1_000_000


class TaskChunk(Chunk):
    """A chunk that knows the task it comes from."""

    __slots__ = ("emitter",)

    def __init__(
        self, schema: Schema, emitter: int, columns: list[list[Any]], batch: pa.RecordBatch | None = None
    ) -> None:
        super().__init__(schema, columns=columns, batch=batch)
        self.emitter = emitter


class EmittedStream(NamedTuple):
    """A stream that a bolt emits: its output, the user's part of the schema, and the columns of Penstock's own."""

    output: str
    schema: Schema
    fields: Schema
    beside: tuple[str, ...]


def _emitted_stream(output: Output) -> EmittedStream:
    fields = visible(output.schema)
    return EmittedStream(output.name, output.schema, fields, output.schema.names[len(fields.names) :])


class Task:
    """One task of a bolt: the user's instance, and what it emits."""

    def __init__(self, node: Bolt, number: int) -> None:
        self.node, self.number = node, number
        shown = [o for o in node.outputs if visible_fields(o.schema)]
        self.streams = {DEFAULT if o.name == "out" else o.name: _emitted_stream(o) for o in shown}
        direct = [s for s, g in self.streams.items() if TASK.name in g.beside]
        rooted = any(ROOTS.name in g.beside for g in self.streams.values())
        self.collector = Collector(self.streams, direct, rooted)
        self.plain = DEFAULT in self.streams and not direct and (len(self.streams) == 1 or not rooted)
        self.touched = False
        self.logic = self._copy()
        self.context = TaskContext(node.name, number, node.tasks, dict(node.peers), node.layout, dict(node.config))
        self.windows = TupleWindows(self.logic, len(node.inputs)) if isinstance(self.logic, WindowedBolt) else None
        self.times = Times()
        self.tick_at: int | None = None
        self.entries: TaskState | None = None

    def _copy(self) -> Any:
        try:
            return task_of(self.node.logic, self.collector)
        except Exception as error:
            raise CaptureError(
                f"bolt {self.node.name!r} ({self.node.line}) cannot be copied for its tasks: {error}. "
                f"Make such things in prepare(self, context)"
            ) from error

    def prepare(self) -> None:
        """Tells the instance where it stands."""
        self.logic._context = self.context
        try:
            self.logic.prepare(self.context)
        except Exception as error:
            raise RecordFailed(self.node, f"prepare of task {self.number}", 0, error) from error

    def restore(self, kept: dict[str, Any]) -> None:
        """Puts back what was saved."""
        self.collector.open.held = kept.pop(HELD, {})
        self.tick_at = kept.pop(TICK_AT, None)
        windows = kept.pop(WINDOWS, None)
        if self.windows is not None and windows is not None:
            self.windows.kept = windows
        vars(self.logic).update(kept)
        self.logic.restored()

    def open_state(self, state: KeyedState) -> None:
        """Hands the instance its key-value state."""
        self.entries = TaskState(state, self.number)
        try:
            self.logic.init_state(KeyValueState(self.entries))
        except Exception as error:
            raise RecordFailed(self.node, f"init_state of task {self.number}", 0, error) from error

    def merge(self, former: int, kept: dict[str, Any]) -> None:
        """Takes over what a task that is no more has kept: its entries, the tuples it holds, and its attributes."""
        self.touched = True
        self.collector.open.held |= kept.pop(HELD, {})
        for name in (TICK_AT, WINDOWS):
            kept.pop(name, None)
        if self.entries is not None:
            self.entries.take_over(former)
        if kept:
            self.logic.merge(kept)

    def kept(self) -> dict[str, Any]:
        """What is to be saved."""
        made = kept_attributes(self.logic, self.node.logic) if self.node.logic.stateful else {}
        beside = {
            HELD: self.collector.open.held,
            TICK_AT: self.tick_at,
            WINDOWS: self.windows.kept if self.windows is not None else None,
        }
        return made | {name: value for name, value in beside.items() if value}

    def begin(self, times: Times) -> None:
        """A batch begins at these times."""
        self.times = times
        if self.node.tick is not None and self.tick_at is None:
            self.tick_at = times.now + round(self.node.tick * SECOND)
            self.touched = True

    def advance(self, times: Times) -> None:
        """Time has moved: the instance gets a tick tuple, and windows, when they are due."""
        self.times = times
        if self.tick_at is not None and self.node.tick is not None and times.now >= self.tick_at:
            self.tick_at = times.now + round(self.node.tick * SECOND)
            self.run([tick_tuple(self.node.tick)], lambda: 0)
        if self.windows is not None:
            self._activate(self.windows.advance(times.now, ended=times.watermark == FOREVER))

    def wake(self) -> int:
        """When processing time next has work for the task."""
        window = self.windows.wake() if self.windows is not None else FOREVER
        return min(window, FOREVER if self.tick_at is None else self.tick_at)

    def end(self, batch: int) -> None:
        """Tells the instance that the batch is over."""
        self.touched = True
        self.collector.anchor(None)
        try:
            self._emit(self.logic.end_batch(batch))
        except Exception as error:
            raise RecordFailed(self.node, f"the end of batch {batch} in task {self.number}", None, error) from error

    def finish(self, batch: int) -> AckReport:
        """Ends a batch; returns what there is to say of the messages of spouts."""
        if isinstance(self.logic, StatefulBolt) and self.touched:
            self.logic.pre_prepare(batch)
            self.logic.pre_commit(batch)
        if self.collector.open.taken or self.collector.open.held:
            self.touched = True
        return self.collector.open.finish()

    def taken_metrics(self) -> dict[str, Any]:
        """The values of the task's metrics, which start over."""
        found = {name: metric.value() for name, metric in self.context.metrics.items()}
        for metric in self.context.metrics.values():
            metric.reset()
        return {name: value for name, value in found.items() if value is not None}

    def run(self, tuples: Iterable[Any], at: Callable[[], int]) -> None:
        """Hands tuples to the instance; `at` says the index of the one at hand, should it fail."""
        self.touched = True
        seen = _CurrentTuple()
        try:
            self._loop()(tuples, seen)
        except Exception as error:
            raise RecordFailed(self.node, seen.tup, at(), error) from error

    def _loop(self) -> Callable[[Iterable[Any], _CurrentTuple], None]:
        """The quickest loop that does what the bolt needs."""
        if self.context.hooks or not self.logic.auto_ack:
            return self._run_open
        return self._run_plain if self.plain and self.logic.auto_anchor else self._run

    def _run_plain(self, tuples: Iterable[Any], seen: _CurrentTuple) -> None:
        """The quick way, when nothing but records of one stream must be kept apart."""
        collector = self.collector
        process, records, add = self.logic.process, collector.records[DEFAULT], collector.add
        append, rooted, roots = records.append, collector.rooted, collector.roots.get(DEFAULT, [])
        for seen.tup in tuples:
            if rooted:
                collector.current = seen.tup._roots
            try:
                made = process(seen.tup)
                if made is not None:
                    for record in made:
                        if type(record) is TaggedRecord:
                            add(record.record, record.output, None, None)
                        else:
                            append(record)
            except FailedException as error:
                self._fail(seen.tup, error)
            if rooted and len(records) > len(roots):
                roots.extend(repeat(collector.current, len(records) - len(roots)))

    def _run(self, tuples: Iterable[Any], seen: _CurrentTuple) -> None:
        collector = self.collector
        process, anchored = self.logic.process, self.logic.auto_anchor
        for seen.tup in tuples:
            collector.anchor(seen.tup._roots if anchored else None)
            try:
                self._emit(process(seen.tup))
            except FailedException as error:
                self._fail(seen.tup, error)
        collector.anchor(None)

    def _run_open(self, tuples: Iterable[Any], seen: _CurrentTuple) -> None:
        """For bolts that ack by themselves, and for those with hooks."""
        collector, auto_ack, anchored = self.collector, self.logic.auto_ack, self.logic.auto_anchor
        taken = collector.open.taken
        for seen.tup in tuples:
            tup = seen.tup
            if tup._roots is not None and not auto_ack:
                tup._edge = random.getrandbits(63)
                taken[tup._edge] = tup._roots
            collector.anchor(tup._roots if anchored else None)
            began = time.perf_counter()
            try:
                self._process(tup)
                if auto_ack:
                    self._told("acked", tup)
            except FailedException as error:
                if not auto_ack:
                    raise
                self._fail(tup, error)
            self._told("executed", tup, time.perf_counter() - began)
        collector.anchor(None)

    def _process(self, tup: Any) -> None:
        if self.windows is None:
            self._emit(self.logic.process(tup))
        elif tup.is_tick:
            return
        elif self.windows.add(tup, self.times.now):
            self._activate(self.windows.counted())
        else:
            self._late(tup)

    def _late(self, tup: Any) -> None:
        """A tuple that came too late for its windows goes to the stream for such, if there is one, and is done."""
        if self.logic.late_stream is not None:
            self.collector.add(tup.values, self.logic.late_stream, (tup,), None)
        self.logic.ack(tup)

    def _activate(self, windows: Iterable[Any]) -> None:
        for window in windows:
            self.touched = True
            if window.tuples:
                self.collector.anchor(joined_roots(window.tuples) if self.logic.auto_anchor else None)
                try:
                    self._emit(self.logic.process_window(window))
                except FailedException as error:
                    self._failed_window(window, error)
                except Exception as error:
                    raise RecordFailed(self.node, f"a window of {len(window)} tuples", None, error) from error
            for tup in window.expired:
                self.logic.ack(tup)
        self.collector.anchor(None)

    def _failed_window(self, window: Any, error: FailedException) -> None:
        for tup in window.tuples:
            self.logic.fail(tup)
        self._report(error)

    def _emit(self, made: Iterable[Any] | None) -> None:
        add = self.collector.add
        for record in made if made is not None else ():
            if type(record) is TaggedRecord:
                add(record.record, record.output, None, None)
            else:
                add(record, DEFAULT, None, None)

    def _fail(self, tup: Any, error: FailedException) -> None:
        self.logic.fail(tup)
        self._report(error)

    def _report(self, error: FailedException) -> None:
        if isinstance(error, ReportedFailedException):
            self.logic.report_error(error)

    def _told(self, what: str, *about: Any) -> None:
        for hook in self.context.hooks:
            getattr(hook, what)(*about)

    def out(self, leaving: bool) -> Iterator[tuple[str, Chunk]]:
        """What was emitted since the last time, by output; `leaving` when it leaves Python next."""
        self.collector.anchor(None)
        for stream, given in self.streams.items():
            if self.collector.records[stream]:
                yield given.output, self._chunk(given, leaving, *self.collector.taken(stream))

    def _chunk(
        self, given: EmittedStream, leaving: bool, records: list[Any], tasks: list[int], roots: list[bytes | None]
    ) -> Chunk:
        try:
            made = Chunk.of(given.fields, records, leaving=leaving)
        except BadRecord as error:
            raise RecordFailed(self.node, records[error.at], error.at, error) from error
        if leaving and not given.beside:
            return made
        beside: dict[str, list[Any]] = {TASK.name: tasks, ROOTS.name: roots}
        columns = [*made.columns(), *(beside[n] for n in given.beside)]
        batch = with_columns(made.batch(), columns, given.schema) if leaving and made.is_arrow else None
        return TaskChunk(given.schema, self.number, columns, batch)


class _CurrentTuple:
    """The tuple at hand."""

    __slots__ = ("tup",)

    def __init__(self) -> None:
        self.tup: Any = None


def visible_fields(schema: Schema) -> bool:
    """Whether a stream has any field of the user's; that of a bolt which emits nothing has none."""
    return any(not n.startswith("__") for n in schema.names)
