"""One task of a bolt: the user's instance, the tuples it gets, and what it emits, acks and fails."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from sys import getrefcount
from typing import Any

from penstock.errors import CaptureError, UnknownName, nearest
from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.logic.topology.acks import AckReport, FailedException, ReportedFailedException
from penstock.graph.logic.topology.bolts import KeyValueState, WindowedBolt
from penstock.graph.logic.topology.collector import Collector, RootRuns, Sizes
from penstock.graph.logic.topology.components import kept_attributes, task_of
from penstock.graph.logic.topology.coordinated import Coordinated
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.logic.topology.tuples import DEFAULT, joined_roots, tick_tuple
from penstock.graph.nodes import Bolt
from penstock.graph.nodes.topology import ROOTS, SOURCE, TASK
from penstock.graph.state.keyed import KeyedState
from penstock.graph.times import FOREVER, Times
from penstock.kernels.base import RecordFailed
from penstock.kernels.quiet import quiet
from penstock.kernels.records.chunk import Chunk, CountedChunk
from penstock.kernels.records.records import BadRecord
from penstock.kernels.topology.moments import MomentGuard
from penstock.kernels.topology.readers import Readers
from penstock.kernels.topology.task_chunks import EmittedStream, TaskChunk, emitted_stream, task_chunk, visible_fields
from penstock.kernels.topology.task_reports import call_hooks, observed_add, taken_metrics
from penstock.kernels.topology.task_state import TaskState
from penstock.kernels.topology.task_tuples import (
    ALONE,
    CurrentTuple,
    Tuples,
    as_it_is,
    keep_nothing,
    roots_column,
    roots_of,
)
from penstock.kernels.topology.tuple_uses import only_reads_fields, records_given
from penstock.kernels.topology.windows import TupleWindows, late_record

log = logging.getLogger("penstock")
HELD, TICK_AT, WINDOWS = "__held", "__tick", "__windows"
"""What is saved of a task beside the attributes of its instance."""
OWN = frozenset({HELD, TICK_AT, WINDOWS})
SECOND = 1_000_000


class Task:
    """One task of a bolt: the user's instance, and what it emits."""

    def __init__(self, node: Bolt, number: int, unread: frozenset[str] = frozenset()) -> None:
        self.node, self.number = node, number
        shown = [o for o in node.outputs if visible_fields(o.schema)]
        self.streams = {DEFAULT if o.name == "out" else o.name: emitted_stream(o) for o in shown}
        direct = [s for s, g in self.streams.items() if TASK.name in g.beside]
        rooted = any(ROOTS.name in g.beside for g in self.streams.values())
        self.collector = Collector(self.streams, direct, rooted)
        self.plain = DEFAULT in self.streams and not direct and (len(self.streams) == 1 or not rooted)
        self.keeps_none = False
        self.gives: int | None = None
        """How many records the instance gives for each tuple, where that shows."""
        self.unread = unread
        self.unkept = 0
        """How many records of a stream that nobody reads were given and not kept."""
        self.has_checked = False
        self.touched = False
        self.logic = self._copy()
        if isinstance(self.logic, Coordinated):
            self.logic._task = self
        self.context = TaskContext(node.name, number, node.tasks, dict(node.peers), node.layout, dict(node.config))
        fields = {stream: emitted.fields for stream, emitted in self.streams.items()}
        self.readers = Readers(self.context, fields, self.collector)
        self.windows = TupleWindows(self.logic, len(node.inputs)) if isinstance(self.logic, WindowedBolt) else None
        self.times = Times()
        self.tick_at: int | None = None
        self.moments: MomentGuard | None = None
        self.entries: TaskState | None = None
        self.values: KeyValueState | None = None

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
        self.keeps_none, self.gives = only_reads_fields(self.logic.process), records_given(self.logic.process)
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
            self.windows.restore(windows)
        vars(self.logic).update(kept)
        self.logic.restored()

    def open_state(self, state: KeyedState) -> None:
        """Hands the instance its key-value state."""
        self.entries = TaskState(state, self.number)
        self.values = KeyValueState(self.entries)
        if self.windows is not None:
            self.windows.open(TaskState(state, self.number, apart=True))
        try:
            self.logic.init_state(self.values)
        except Exception as error:
            raise RecordFailed(self.node, f"init_state of task {self.number}", 0, error) from error

    def roll_back(self) -> None:
        """A batch failed: the instance hears of it, and its changes do not count."""
        if self.values is not None:
            try:
                self.logic.pre_rollback()
            except Exception:
                log.warning("bolt %r: pre_rollback of task %d failed", self.node.name, self.number, exc_info=True)
            self.values.rollback()

    def merge(self, former: int, kept: dict[str, Any]) -> None:
        """Takes over what a task that is no more has kept: its entries, the tuples it holds, and its attributes."""
        self.touched = True
        self.collector.open.held |= kept.pop(HELD, {})
        kept.pop(TICK_AT, None)
        windows = kept.pop(WINDOWS, None)
        if self.windows is not None and windows is not None:
            self.windows.take_over(windows, self._pages_of(former))
        if self.entries is not None:
            self.entries.take_over(former)
        if kept:
            self.logic.merge(kept)

    def _pages_of(self, former: int) -> dict[int, list[Any]]:
        """The pages of tuples of a task that is no more."""
        if self.entries is None:
            return {}
        return self.entries.taken_from(TaskState(self.entries.state, former, apart=True))

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
        if self.windows is not None:
            self.windows.begin()
        if self.node.tick is not None and self.tick_at is None:
            self.tick_at = times.now + round(self.node.tick * SECOND)
            self.touched = True

    def advance(self, times: Times) -> None:
        """Time has moved: the instance gets a tick tuple, and windows, when they are due."""
        self.times = times
        if self.tick_at is not None and self.node.tick is not None and times.now >= self.tick_at:
            self.tick_at = times.now + round(self.node.tick * SECOND)
            tick = tick_tuple(self.node.tick)
            self._guarded(lambda: self.run([tick], lambda: 0))
        if self.windows is not None:
            self._activate(self.windows.advance(times.now, ended=times.watermark == FOREVER))

    def wake(self) -> int:
        """When processing time next has work for the task."""
        window = self.windows.wake() if self.windows is not None else FOREVER
        return min(window, FOREVER if self.tick_at is None else self.tick_at)

    def end(self, batch: int) -> None:
        """Tells the instance that the batch is over."""
        self.touched = True
        self._guarded(lambda: self._end(batch))

    def _guarded(self, work: Callable[[], None]) -> None:
        work() if self.moments is None else self.moments.moment(self, work)

    def _end(self, batch: int) -> None:
        self.collector.anchor(None)
        try:
            self._emit(self.logic.end_batch(batch))
        except Exception as error:
            raise RecordFailed(self.node, f"the end of batch {batch} in task {self.number}", None, error) from error

    def finish(self, batch: int) -> AckReport:
        """Ends a batch; returns what there is to say of the messages of spouts."""
        if self.values is not None and (self.touched or self.values.is_changed):
            self.logic.pre_prepare(batch)
            self.logic.pre_commit(batch)
            self.values.commit()
        if self.collector.open.taken or self.collector.open.held:
            self.touched = True
        return self.collector.open.finish(saved=self.windows is not None and self.windows.is_saved)

    def taken_metrics(self) -> dict[str, Any]:
        """The values of the task's metrics, which start over."""
        return taken_metrics(self.context.metrics)

    def run(self, tuples: Iterable[Any], at: Callable[[], int]) -> None:
        """Hands tuples to the instance; `at` says the index of the one at hand, should it fail."""
        self.touched = True
        seen = CurrentTuple()
        try:
            with quiet():
                self._loop()(tuples, seen)
        except RecordFailed as failed:
            raise RecordFailed(self.node, failed.record, at(), failed.error) from failed.error
        except Exception as error:
            raise RecordFailed(self.node, seen.tup, at(), error) from error

    def check(self, before: Sizes, tup: Any, at: int | None) -> None:
        """Blames a tuple for what was emitted since then and does not fit its stream."""
        for stream, given in self.streams.items():
            try:
                self._checked(given, False, self.collector.records[stream][before[stream].records :])
            except RecordFailed as failed:
                raise RecordFailed(self.node, tup, at, failed.error) from failed.error

    def tried(self, work: Callable[[], Iterable[Any] | None]) -> Exception | None:
        """Does work of the instance and takes what it gives; where that fails, or does not fit its stream, takes it back and returns why."""
        before = self.collector.sizes()
        try:
            self._emit(work())
            self.check(before, None, 0)
        except RecordFailed as failed:
            self.forget(before)
            return failed.error if isinstance(failed.error, Exception) else failed
        except Exception as error:
            self.forget(before)
            return error
        return None

    def forget(self, before: Sizes, tup: Any = None) -> None:
        """Takes back what was emitted since then, for a tuple that failed."""
        self.collector.cut(before, tup)
        for stream, choices in self.readers.choices.items():
            for chosen in choices.values():
                del chosen[before[stream].records :]

    def _loop(self) -> Callable[[Iterable[Any], CurrentTuple], None]:
        """The quickest loop that does what the bolt needs."""
        if self.context.hooks:
            self.collector.add = observed_add(self.collector, self.context.hooks)  # type: ignore[method-assign]  # others pay nothing for hooks
        if self.context.hooks or not self.logic.auto_ack:
            return self._run_open
        if self.is_unread and not self.collector.rooted:
            return self._run_unread if self.gives is None or not self.keeps_none else self._run_blind
        return self._run_plain if self.plain and self.logic.auto_anchor else self._run

    @property
    def is_unread(self) -> bool:
        """Whether records need not be kept: nobody reads the only stream, and those of the first chunk were checked."""
        return (
            self.has_checked and len(self.streams) == 1 and all(s.output in self.unread for s in self.streams.values())
        )

    def _given(self, tuples: Iterable[Any]) -> tuple[Iterable[Any], Callable[[Any], None], Callable[[Any], Any]]:
        """The tuples as the bolt needs them, what gives one its roots that is kept, and what makes one whole that failed."""
        if not isinstance(tuples, Tuples):
            return tuples, keep_nothing, as_it_is
        return tuples.bare() if self.keeps_none else tuples.unrooted(), tuples.keep_roots, tuples.whole

    def _run_unread(self, tuples: Iterable[Any], seen: CurrentTuple) -> None:
        """For a bolt whose records nobody reads: they are counted."""
        process, may_keep, many = self.logic.process, not self.keeps_none, 0
        given, keep_roots, whole = self._given(tuples)
        tup = None
        try:
            for tup in given:
                try:
                    made = process(tup)
                    kind = made.__class__
                    if kind is tuple or kind is list:
                        many += len(made)
                    elif made is not None:
                        many += sum(1 for _ in made)
                except FailedException as error:
                    self._fail(whole(tup), error)
                if may_keep and getrefcount(tup) > ALONE:
                    keep_roots(tup)
        finally:
            seen.tup = tup
            self.unkept += many

    def _run_blind(self, tuples: Iterable[Any], seen: CurrentTuple) -> None:
        """The same where it shows before how many records there are, and that no tuple is kept: nothing is looked at."""
        if not isinstance(tuples, Tuples):
            self._run_unread(tuples, seen)
            return
        process, failed, tup = self.logic.process, 0, None
        try:
            for tup in tuples.bare():
                try:
                    process(tup)
                except FailedException as error:
                    failed += 1
                    self._fail(tuples.whole(tup), error)
        finally:
            seen.tup = tup
            self.unkept += (self.gives or 0) * (tuples.at + 1 - failed)

    def _run_plain(self, tuples: Iterable[Any], seen: CurrentTuple) -> None:
        """The quick way, when nothing but records of one stream must be kept apart.

        Which roots the records have is worked out for all together, and a tuple gets its own only when it is asked for them, or kept.
        """
        collector = self.collector
        process, records, may_keep = self.logic.process, collector.records[DEFAULT], not self.keeps_none
        extend, mark, alone, rooted = records.extend, collector.ends.append, len(self.streams) == 1, collector.rooted
        given, keep_roots, whole = self._given(tuples)
        if rooted:
            collector.begin_run(roots_of(tuples))
        tup = None
        try:
            for tup in given:
                try:
                    made = process(tup)
                    kind = type(made)
                    if alone and (kind is tuple or kind is list):
                        extend(made)
                    elif made is not None:
                        self._append_all(made, records)
                except FailedException as error:
                    self._fail(whole(tup), error)
                if rooted:
                    mark(len(records))
                if may_keep and getrefcount(tup) > ALONE:
                    keep_roots(tup)
        finally:
            seen.tup = tup
        if rooted:
            collector.end_run()

    def _append_all(self, made: Iterable[Any], records: list[Any]) -> None:
        for record in made:
            if type(record) is TaggedRecord:
                self.collector.add(record.record, record.output, None, None)
            else:
                records.append(record)

    def _run(self, tuples: Iterable[Any], seen: CurrentTuple) -> None:
        collector = self.collector
        process, anchored = self.logic.process, self.logic.auto_anchor
        for seen.tup in tuples:
            collector.anchor(seen.tup._roots if anchored else None)
            try:
                self._emit(process(seen.tup))
            except FailedException as error:
                self._fail(seen.tup, error)
        collector.anchor(None)

    def _run_open(self, tuples: Iterable[Any], seen: CurrentTuple) -> None:
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
                    call_hooks(self.context.hooks, "acked", tup)
            except FailedException as error:
                if not auto_ack:
                    raise
                self._fail(tup, error)
            call_hooks(self.context.hooks, "executed", tup, time.perf_counter() - began)
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
        """A tuple that is too late for its windows goes to the stream for such, if there is one, and is done."""
        if self.logic.late_stream is not None:
            late = self.logic.late_stream
            self.collector.add(late_record(tup, self.streams[late].fields), late, (tup,), None)
        self.logic.ack(tup)

    def _activate(self, windows: Iterable[Any]) -> None:
        assert self.windows is not None, "windows come from there"
        has_acks = self.windows.kept.has_roots or bool(self.context.hooks)
        for window in windows:
            self.touched = True
            if window.tuples and self.moments is None:
                self._process_window(window)
            elif window.tuples and self.moments is not None:
                self.moments.window(self, window, partial(self._process_window, window))
            for tup in window.expired if has_acks else ():
                self.logic.ack(tup)
        self.collector.anchor(None)

    def _process_window(self, window: Any) -> None:
        holding = self.windows.holding(window) if self.windows is not None else ()
        anchored = self.collector.rooted and self.logic.auto_anchor
        self.collector.anchor(joined_roots(holding) if anchored else None)
        try:
            self._emit(self.logic.process_window(window))
        except FailedException as error:
            for tup in holding:
                self.logic.fail(tup)
            self._report(error)
        except Exception as error:
            raise RecordFailed(self.node, f"a window of {len(window)} tuples", None, error) from error

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

    def out(self, leaving: bool) -> Iterator[tuple[str, Chunk]]:
        """What was emitted since the last time, by output; `leaving` when it leaves Python next."""
        self.collector.anchor(None)
        for stream, given in self.streams.items():
            if self.is_unread:
                yield given.output, CountedChunk(given.schema, self.unkept + len(self.collector.taken(stream)[0]))
                self.unkept = 0
            elif self.collector.records[stream]:
                self.has_checked = True
                choices = self.readers.taken_choices(stream)
                made = self._chunk(given, leaving, *self.collector.taken(stream))
                if choices and isinstance(made, TaskChunk):
                    made.choices = choices
                yield given.output, made

    def _checked(self, given: EmittedStream, leaving: bool, records: list[Any]) -> Chunk:
        try:
            return Chunk.of(given.fields, records, leaving=leaving)
        except BadRecord as error:
            if any(type(record) is TaggedRecord for record in records):
                return self._checked(given, leaving, [self._untagged(r, at) for at, r in enumerate(records)])
            raise RecordFailed(self.node, records[error.at], error.at, error) from error

    def _untagged(self, record: Any, at: int) -> Any:
        """A record that a bolt with one stream returned with the name of the stream."""
        if type(record) is not TaggedRecord:
            return record
        if record.output not in self.streams:
            error = UnknownName(f"no stream {record.output!r}; {nearest(record.output, self.streams)}")
            raise RecordFailed(self.node, record.record, at, error)
        return record.record

    def _chunk(
        self,
        given: EmittedStream,
        leaving: bool,
        records: list[Any],
        tasks: list[int],
        roots: list[bytes | None] | RootRuns,
    ) -> Chunk:
        made = self._checked(given, leaving, records)
        if leaving and not given.beside:
            return made
        in_arrow = leaving and made.is_arrow
        beside: dict[str, Any] = {TASK.name: tasks, ROOTS.name: roots_column(roots, in_arrow=in_arrow)}
        if SOURCE.name in given.beside:
            beside[SOURCE.name] = [self.number] * len(records)
        return task_chunk(given, self.number, made, [beside[n] for n in given.beside], in_arrow=in_arrow)
