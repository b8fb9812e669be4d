"""The kernel of a pattern of operators: events in order of time, a machine for each key, and timers."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import pyarrow as pa

from penstock.errors import RunError
from penstock.graph.nodes import LATE, OperatorMatch, Term
from penstock.graph.nodes.patterns.operator_match import event_schema
from penstock.graph.patterns.operator_conditions import over_match
from penstock.graph.patterns.operators import has_recurring_timer, waits_for_events
from penstock.graph.patterns.pattern import Overflow, RunLimit
from penstock.graph.schema import Schema
from penstock.graph.state.active_runs import REST, RunChanges
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.table import TIME, TimeTable, key_hashes_of, some, times_of
from penstock.graph.state.timers import EVENT, PROCESSING
from penstock.graph.times import FOREVER, NEVER, Times, to_moment
from penstock.kernels.base import Context, Out, RecordFailed
from penstock.kernels.keyed.keyed import Key, KeyedKernel, prefetch
from penstock.kernels.ordering.order import sorted_by
from penstock.kernels.ordering.sort import given, keys_in, with_key_hashes
from penstock.kernels.patterns.operators.build import running
from penstock.kernels.patterns.operators.hits import Hits
from penstock.kernels.patterns.operators.looks import compile_looks
from penstock.kernels.patterns.operators.machine import Found, Held, Machine
from penstock.kernels.records.arrow import to_columns
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import shaped

BATCH, ARRIVAL = "__batch", "__arrival"
"""Hidden fields of an event that waits: the processing time of its batch, and its number there. They order events of the same time."""


class OperatorKernel(KeyedKernel):
    """A machine for each key. State is a text for each: the machine as JSON."""

    node: OperatorMatch
    handles_errors = True

    def __init__(self, node: OperatorMatch, schema: Schema) -> None:
        super().__init__(node, schema)
        self.schema = schema
        self.events = event_schema(schema)
        self.running = running(node.pattern, self.events)
        self.hits = Hits(self.running.filters, self.events)
        self.select = [
            compile_looks(over_match(e, self.events, node.pattern, node.keys), self.events)
            for _, e in node.select or ()
        ]
        self.machines: dict[Key, Machine] = {}
        self.waits_for_events = waits_for_events(node.pattern.root)
        self.has_recurring_timer = has_recurring_timer(node.pattern.root)
        self.idle = self._idle() if self.waits_for_events else None
        self.fresh: list[pa.RecordBatch] = []
        self.arrived = 0
        self.first_waiting = FOREVER
        self.clock = PROCESSING if node.time is None else EVENT

    def _idle(self) -> object:
        """The state of a pattern that has just started, which is that of every key nothing has happened to."""
        machine = Machine(self.node.pattern, self.running, self.events)
        machine.take(0, (None,) * len(self.events.fields), 0)
        return machine.kept_state()

    def layout(self) -> Layout:
        """The machine of a key as JSON text, and its timer."""
        return Layout(self.key_columns, (Column("pattern", pa.string(), str),), single=True, timers=True)

    def open(self, context: Context) -> None:
        """Finds the machines and the events that wait."""
        super().open(context)
        self.waits = self.timers = self.timers_of(context)
        self.waiting: TimeTable | None = None if self.node.time is None else context.table(self.node.waiting)

    def begin(self, times: Times) -> None:
        """A batch begins, in which nothing has changed yet."""
        super().begin(times)
        self.run_changes = {}

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Keeps events until time has passed them; without event time they count at once."""
        if not len(chunk):
            return
        rows = self._numbered(with_key_hashes(chunk, self.node.keys, self.node.time))
        if self.node.time is None:
            yield from self._made(self._taken(pa.Table.from_batches([rows])))
            return
        on_time = times_of(rows) >= max(self.times.previous, NEVER + 1)
        if not on_time.all():
            yield LATE, given(some(rows, ~on_time), self.events)
        kept = some(rows, on_time)
        if kept is not None:
            self.fresh.append(kept)

    def _numbered(self, rows: pa.RecordBatch) -> pa.RecordBatch:
        """Rows with where they stand among those of the same time."""
        count = rows.num_rows
        batch = pa.array(np.full(count, self.times.now, np.int64))
        number = pa.array(np.arange(self.arrived, self.arrived + count, dtype=np.int64))
        self.arrived += count
        return rows.append_column(BATCH, batch).append_column(ARRIVAL, number)

    def advance(self, times: Times) -> Out:
        """Takes the events that time has passed, in order; then the timers that are due."""
        self.move(times)
        made = [] if self.node.time is None else self._passed(times.watermark)
        until = times.watermark if self.clock == EVENT else times.now
        if times.watermark >= FOREVER:
            until = FOREVER
        for due in self.waits.due(self.clock, until):
            made += self._fired(due.key, until)
        yield from self._made(made)

    def walked(self, due: pa.Table | None, keys: Collection[Key], until: int) -> list[tuple[Key, Found]]:
        """What events complete, and then the time of some keys; for a step that has the events and the state of several patterns."""
        found = [] if due is None else self._taken(due)
        for key in (*keys, *[each for each in self.machines if each not in keys]):
            if self._machine(key).due <= until:
                found += self._fired(key, until)
        list(self.barrier())
        return found

    def _passed(self, edge: int) -> list[tuple[Key, Found]]:
        """Takes the events before a time."""
        assert self.waiting is not None
        old = self.waiting.span(NEVER, edge)
        new = pa.Table.from_batches(self.fresh) if self.fresh else None
        self.fresh = []
        passed = None if new is None else times_of(new) < edge
        rest = None if new is None or passed is None else some(new, ~passed)
        for batch in rest.to_batches() if rest is not None else ():
            self.waiting.add(batch)
        self.first_waiting = self.waiting.first(edge)
        if edge > NEVER:
            self.waiting.forget(edge)
        due = [rows for rows in (old, None if new is None or passed is None else some(new, passed)) if rows is not None]
        return self._taken(pa.concat_tables(due, promote_options="default")) if due else []

    def _taken(self, rows: pa.Table) -> list[tuple[Key, Found]]:
        """Gives events to the machines of their keys, in order."""
        order = (Term(TIME), *self.node.pattern.order, Term(BATCH), Term(ARRIVAL))
        rows = sorted_by(rows, order, ()).combine_chunks()
        keys = keys_in(rows, self.node.keys)
        prefetch(self.state, keys, key_hashes_of(rows).tolist(), self.key_columns)
        batch = rows.select(list(self.events.names)).to_batches()[0]
        values = list(zip(*to_columns(batch), strict=True))
        times = [self.times.now] * len(values) if self.node.time is None else times_of(rows).tolist()
        aside: set[int] = set()

        def fails(at: int, error: Exception) -> None:
            if at not in aside:
                aside.add(at)
                self._put_aside(values[at], error)

        hits = self.hits.of(batch, values, fails)
        made: list[tuple[Key, Found]] = []
        for at, (key, time, row, bits) in enumerate(zip(keys, times, values, hits, strict=True)):
            made += [] if at in aside else self._event(key, time, row, bits)
        for key in dict.fromkeys(keys):
            if key in self.machines:
                self._set_timer(key)
        return made

    def _event(self, key: Key, time: int, row: tuple[object, ...], bits: int) -> list[tuple[Key, Found]]:
        if not bits and self.waits_for_events and not self._is_running(key):
            return []
        machine = self._machine(key)
        if not bits and machine.has_started and not self.has_recurring_timer:
            return []
        before = machine.dump() if self.guard is not None and machine.has_started else None
        try:
            made = [(key, found) for found in machine.take(time, row, bits)]
        except Exception as error:
            self._put_aside(row, error)
            self._restore(key, before)
            return []
        if bits and self.node.pattern.limit is not None:
            self._limit(machine, self.node.pattern.limit, time)
        return made

    def _limit(self, machine: Machine, limit: RunLimit, time: int) -> None:
        """Drops the oldest of too many matches that are begun, or ends the run."""
        if limit.overflow is Overflow.FAIL:
            count = len(machine.begun())
            if count > limit.runs:
                raise RunError(
                    f"a key has begun {count:,} matches, and may have begun {limit.runs:,}; end them with timer:within(...), allow more, or drop "
                    f"the oldest with limit={limit.runs}"
                )
        self.count_ended("dropped", machine.keep(limit.runs, time))

    def count_ended(self, how: str, many: int) -> None:
        """Counts what has ended, by how."""
        if many:
            self.counters.runs[how] = self.counters.runs.get(how, 0) + many

    def _is_running(self, key: Key) -> bool:
        """Whether an event that fits nothing tells a key that time has passed."""
        return self.has_recurring_timer and (key in self.machines or self.state.get(key) is not None)

    def _put_aside(self, row: tuple[object, ...], error: Exception) -> None:
        """Does what the policy says with an event on which a condition fails; without one that ends the pass."""
        failed = RecordFailed(self.node, row, None, error)
        if self.guard is None:
            raise failed from error
        self.guard.give_up(self, Chunk(self.events, rows=[row]), 0, failed)

    def _restore(self, key: Key, before: str | None) -> None:
        """The machine of a key as it was before an event that was put aside."""
        machine = self.machines[key] = Machine(self.node.pattern, self.running, self.events)
        if before is not None:
            machine.load(before)

    def _machine(self, key: Key) -> Machine:
        made = self.machines.get(key)
        if made is None:
            made = self.machines[key] = Machine(self.node.pattern, self.running, self.events)
            kept = self.state.get(key)
            if kept is not None:
                made.load(kept)
                self._changes.take_out(*counted(made.held))
        return made

    @property
    def _changes(self) -> RunChanges:
        return self.changes_of(self.node.name)

    def _fired(self, key: Key, until: int) -> list[tuple[Key, Found]]:
        machine = self._machine(key)
        try:
            found = [(key, each) for each in machine.move(until)]
        except Exception as error:
            raise RecordFailed(self.node, f"none: a timer of key {key!r}", None, error) from error
        self._set_timer(key)
        return found

    def _set_timer(self, key: Key) -> None:
        due = self.machines[key].due
        if due < FOREVER:
            self.waits.set(key, self.clock, due)
        else:
            self.waits.delete(key, self.clock)

    def _made(self, found: list[tuple[Key, Found]]) -> Out:
        if found:
            self.count_ended("matches", len(found))
            yield "out", shaped(self, "out", [self._record(key, each) for key, each in found])

    def _record(self, key: Key, found: Found) -> tuple[object, ...]:
        if self.node.select is None:
            return self._whole(key, found)
        shared = dict(zip(self.node.keys, key, strict=True))
        row = tuple(shared.get(name) for name in self.events.names)
        try:
            return tuple(run(found.match, row) for run in self.select)
        except Exception as error:
            raise RecordFailed(self.node, found.match, None, error) from error

    def _whole(self, key: Key, found: Found) -> tuple[object, ...]:
        """The key, from when to when, and the events of each tag."""
        names, match = self.events.names, found.match
        begin = min((event.time for events in match.values() for event in events), default=found.time)
        keys = [each for name, each in zip(self.node.keys, key, strict=True) if not name.startswith("__")]
        tagged = [
            [dict(zip(names, e.values, strict=True)) for e in match.get(tag, ())] for tag in self.node.pattern.tags
        ]
        return (*keys, to_moment(begin), to_moment(found.time), *tagged)

    def barrier(self) -> Out:
        """Puts what the machines hold into the state."""
        for key, machine in self.machines.items():
            if self.idle is not None and machine.kept_state() == self.idle:
                self.state.delete(key)
            else:
                self.state.put(key, machine.dump())
                self._changes.put(*counted(machine.held))
        self.machines = {}
        return ()

    def wake(self, clock: str) -> int:
        """When a timer is due, or an event that waits."""
        timers = super().wake(clock)
        if clock != EVENT or self.first_waiting >= FOREVER:
            return timers
        return min(timers, self.first_waiting + 1)


def counted(held: Held) -> tuple[dict[str, int], list[int], int]:
    """The figures of a key: how many matches it has begun, when each of them, and how many events it holds."""
    return {REST: len(held.began)}, sorted(held.began), held.events
