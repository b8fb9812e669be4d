"""Events of a step that looks at them in the order of event time: those that are late, those that wait, and those that are due."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.base import LATE
from penstock.graph.nodes.patterns.match import Match
from penstock.graph.nodes.patterns.match_patterns import MatchPatterns
from penstock.graph.schema import Schema
from penstock.graph.state.table import TimeTable, some, times_of
from penstock.graph.state.timers import EVENT, PROCESSING
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.base import Context, Out, RecordFailed
from penstock.kernels.keyed.keyed import Key, KeyedKernel
from penstock.kernels.ordering.sort import with_key_hashes
from penstock.kernels.quiet import quiet
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk

ARRIVAL, BATCH = "__arrival", "__batch"
"""The hidden fields of an event that say in which order it arrived: in its batch, and when that was."""


class EventKernel(KeyedKernel):
    """The base of kernels that find matches: keeps events until event time has passed them."""

    node: Match | MatchPatterns
    arrow = True
    handles_errors = True

    def __init__(self, node: Match | MatchPatterns, schema: Schema) -> None:
        super().__init__(node, schema)
        self.event = node.event_schema(schema)
        self.clock = PROCESSING if node.time is None else EVENT
        self.fresh: list[pa.RecordBatch] = []
        self.taken = 0
        self.tasks = 1
        self.waits_until = FOREVER

    def open(self, context: Context) -> None:
        """Finds the runs, their timers, and the events that wait."""
        super().open(context)
        self.tasks = context.tasks
        self.waits = self.timers = self.timers_of(context)
        self.waiting: TimeTable | None = None if self.node.time is None else context.table(self.node.waiting)

    def begin(self, times: Times) -> None:
        """A batch begins, in which no run has changed yet."""
        super().begin(times)
        self.run_changes = {}

    def wake(self, clock: str) -> int:
        """When the time of a run is up, or an event that waits is due."""
        first = self.waits.next(clock)
        return min(first, self.waits_until) if clock == EVENT else first

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Keeps what is not late."""
        rows: Any = with_key_hashes(chunk, self.node.keys, self.node.time)
        if self.node.time is not None:
            on_time = times_of(rows) >= max(self.times.previous, NEVER + 1)
            if not on_time.all():
                late = rows.filter(pa.array(~on_time))
                yield LATE, Chunk(self.event, batch=late.select(self.event.names).cast(arrow_schema(self.event)))
            rows = some(rows, on_time)
        if rows is not None and rows.num_rows:
            rows = self.prepared(rows)
            self.fresh += [rows] if rows.num_rows else []

    def prepared(self, rows: Any) -> Any:
        """Events as they are to wait."""
        raise NotImplementedError

    def _put_aside(self, events: pa.RecordBatch | pa.Table, at: int, failed: RecordFailed) -> None:
        """Does what the policy says with an event on which a condition fails."""
        assert self.guard is not None, "events are put aside where the step has a policy"
        one = (
            pa.Table.from_batches([events.slice(at, 1)]) if isinstance(events, pa.RecordBatch) else events.slice(at, 1)
        )
        batch = one.cast(arrow_schema(self.event)).combine_chunks().to_batches()[0]
        self.guard.give_up(self, Chunk(self.event, batch=batch), 0, failed)

    def advance(self, times: Times) -> Out:
        """The matches that the events up to now complete, and what the movement of time decides."""
        self.move(times)
        try:
            with quiet():
                return self._advanced(times)
        except RecordFailed:
            raise
        except Exception as error:
            what = "none: it was a match, or what is made of one, that failed"
            raise RecordFailed(self.node, what, None, error) from error

    def _advanced(self, times: Times) -> list[tuple[str, Chunk]]:
        due, until = self.due(times), self.until(times)
        timed = [each.key for each in self.waits.due(self.clock, until)]
        keys = list(dict.fromkeys([*timed, *(self.unfinished() if until >= FOREVER else ())]))
        return [] if due is None and not keys else list(self.walked(due, keys, until))

    def until(self, times: Times) -> int:
        """To where time has moved; all of it has passed when the input is over."""
        return times.now if self.node.time is None and times.watermark < FOREVER else times.watermark

    def unfinished(self) -> Iterable[Key]:
        """The keys for which the end of the input decides something that time does not."""
        return ()

    def due(self, times: Times) -> pa.Table | None:
        """The events to look at now, and the waiting ones put aside."""
        new = pa.Table.from_batches(self.fresh) if self.fresh else None
        self.fresh = []
        if self.waiting is None:
            return new
        if new is not None:
            arrival = np.arange(self.taken, self.taken + new.num_rows)
            self.taken += new.num_rows
            new = new.append_column(ARRIVAL, pa.array(arrival)).append_column(
                BATCH, pa.array(np.full(len(arrival), times.now))
            )
        edge = times.watermark
        old = self.waiting.span(NEVER, edge)
        passed = None if new is None else times_of(new) < edge
        for batch in (
            () if new is None or passed is None or passed.all() else new.filter(pa.array(~passed)).to_batches()
        ):
            self.waiting.add(batch)
        if edge > NEVER:
            self.waiting.forget(edge)
        first = self.waiting.first(edge)
        self.waits_until = first + 1 if first < FOREVER else FOREVER
        due = [rows for rows in (old, None if new is None or passed is None else some(new, passed)) if rows is not None]
        return pa.concat_tables(due, promote_options="default") if due else None

    def walked(self, due: pa.Table | None, timed: list[Key], until: int) -> Out:
        """What the events that are due complete, and what time decides for the keys that have none."""
        raise NotImplementedError
