"""The kernel of a step that finds matches: puts events in order, brings the runs of their keys, walks the automaton, and keeps what is left."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.errors import RunError
from penstock.graph.arrays import IntArray
from penstock.graph.nodes.base import OUT
from penstock.graph.nodes.patterns.match import DROPPED, MASK, TIMED_OUT, Match
from penstock.graph.order import Term
from penstock.graph.patterns.pattern import Overflow, RunLimit, Skip
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import values_of
from penstock.graph.state.layout import Layout
from penstock.graph.state.table import TIME, column, key_hashes_of, times_of
from penstock.graph.times import FOREVER
from penstock.kernels.base import Out
from penstock.kernels.keyed.key_columns import numbered
from penstock.kernels.keyed.keyed import Key, prefetch
from penstock.kernels.ordering.order import sorted_by
from penstock.kernels.ordering.sort import keys_in
from penstock.kernels.patterns.active import count_put, count_taken_out
from penstock.kernels.patterns.chains import Chains, is_chain
from penstock.kernels.patterns.events import ARRIVAL, BATCH, EventKernel
from penstock.kernels.patterns.masks import Failures, Masks, RunTests
from penstock.kernels.patterns.queue import MatchQueue, Run, RunQueue
from penstock.kernels.patterns.selection import ChainEvents, Events, MatchEvents, Selection
from penstock.kernels.patterns.stored import RunPacker, StoredRuns, columns_of, unpacked
from penstock.kernels.patterns.transitions import Transitions
from penstock.kernels.patterns.walk import Aside, Deadlines, RunEvents, Walk, first_run
from penstock.kernels.records.arrow import arrow_schema, arrow_type
from penstock.kernels.records.chunk import Chunk


@dataclass(frozen=True, eq=False)
class _Pass:
    """The events of keys, and what is kept of them: first the `before` events that the runs of the keys hold, then those that are due."""

    events: Events
    masks: IntArray
    ids: IntArray
    spans: dict[Key, tuple[int, int]]
    kept: dict[Key, StoredRuns]
    bases: dict[Key, int]
    until: int
    before: int

    def runs(self, key: Key) -> tuple[list[Run], list[Run]]:
        """The runs of a key of which some are kept, and its matches that wait."""
        return unpacked(self.kept[key], self.bases[key])


class MatchKernel(EventKernel):
    """Finds matches of a pattern."""

    node: Match
    begins = True
    """Whether events begin runs; a pattern that has been replaced may let its runs come to their end."""
    sees_all = True
    """Whether its state has the runs of all keys of the task, and not only of those at hand."""

    def __init__(self, node: Match, schema: Schema) -> None:
        super().__init__(node, schema)
        self.fields = tuple(n for n in node.stored_fields(self.event) if n in self.event)
        self.masks = Masks(node, self.event)
        self.asking = RunTests(node, self.event, self.masks.plain)
        self.transitions = Transitions(node.automaton, self.masks.plain)
        self.selection = Selection(node, self.event)
        self.deadlines = Deadlines(node.automaton)
        self.is_chain = is_chain(node, self.masks.plain)
        self.labels = [node.automaton.waits_for(at) for at in range(len(node.automaton.states))]
        self.left: list[tuple[Key, list[int], Any, Any, Any]] = []
        self.aside: Aside | None = None

    def layout(self) -> Layout:
        """The events, links and runs of each key."""
        return Layout(self.key_columns, columns_of(self.event, self.fields), timers=True)

    def prepared(self, rows: Any) -> Any:
        """Events with the conditions that they satisfy, without those on which one fails."""
        if self.node.masked is not None:
            return rows
        events = rows.select(self.event.names).cast(arrow_schema(self.event))
        failures: Failures | None = None if self.guard is None else {}
        masks = self.masks.of(events, failures, None if self.guard is None else self.guard.called)
        rows = rows.append_column(MASK, pa.array(masks))
        if not failures:
            return rows
        for at, failed in failures.items():
            self._put_aside(events, at, failed)
        return rows.filter(pa.array([at not in failures for at in range(len(masks))]))

    def _numbered(self, due: pa.Table) -> tuple[IntArray, IntArray]:
        """The number of the key of each event, and a row with each key."""
        keys = numbered([_one(due.column(k)) for k in self.node.keys], key_hashes_of(due))
        if keys is not None:
            return keys.ids, keys.first
        ids, first = _by_value(keys_in(due, self.node.keys))
        return np.array(ids), np.array(first)

    def _order(self, due: pa.Table, ids: IntArray) -> IntArray:
        """The numbers of the rows, by key, then time, then the order that was asked for, then arrival."""
        sorts: list[Any] = []
        if self.node.time is not None:
            sorts += [column(due, ARRIVAL), column(due, BATCH)]
            sorts += [_rank(due, term) for term in reversed(self.node.pattern.order)]
            sorts.append(times_of(due))
        order: IntArray = np.arange(due.num_rows)
        for values in (*sorts, ids):
            if not (values[order][1:] >= values[order][:-1]).all():
                order = order[np.argsort(values[order], kind="stable")]
        return order

    def walked(self, due: pa.Table | None, timed: list[Key], until: int) -> Out:
        """Walks over the events that are due, and lets time end runs of the keys that have none."""
        spans: dict[Key, tuple[int, int]] = {}
        ids: IntArray = np.zeros(0, np.int64)
        if due is not None:
            numbers, first = self._numbered(due)
            keys = due.select(list(self.node.keys)).take(pa.array(first))
            named = keys_in(keys, self.node.keys)
            prefetch(self.state, named, key_hashes_of(due)[first].tolist(), self.key_columns)
            order = self._order(due, numbers)
            due, ids = due.take(pa.array(order)), numbers[order]
            ids = _rising(ids)
            edges = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(ids)]
            spans = {named[numbers[order[begin]]]: (begin, end) for begin, end in pairwise(edges)}
        spans |= {key: (0, 0) for key in timed if key not in spans}
        return self._over(due, ids, spans, until)

    def _over(self, due: pa.Table | None, ids: IntArray, spans: dict[Key, tuple[int, int]], until: int) -> Out:
        """Goes over the events of keys and what is kept of them, and emits what is found."""
        get = self.state.get
        kept = {key: value for key in spans if (value := get(key)) is not None}
        self._take_out(kept.values())
        events, bases = self._events(kept, due)
        before = len(events.times) - (0 if due is None else due.num_rows)
        masks = np.zeros(0, np.int64) if due is None else column(due, MASK)
        self.aside = None if self.guard is None or due is None else self._aside(due.select(self.event.names), before)
        walk = self._chained if self.is_chain else self._walked_over
        made = walk(_Pass(events, masks, ids, spans, kept, bases, until, before))
        self._store(events)
        yield from self._emitted(made, events)
        limit = self.node.pattern.limit
        if limit is not None and limit.is_shared and self.sees_all:
            yield from self.limited(limit)

    def _emitted(self, made: dict[str, MatchEvents], events: Events) -> Out:
        for port, taken in made.items():
            if len(taken):
                schema = self.node.output(port).schema
                yield port, Chunk(schema, batch=self.selection.batch(taken, events, schema))

    def limited(self, limit: RunLimit) -> Out:
        """Drops the oldest runs of all keys above the share of the task. Each key has one run that has taken nothing, which does not count."""
        share = -(-limit.runs // self.tasks)
        keys, runs = self.state.sizes("runs")
        many = runs - keys - share
        if many <= 0:
            return
        if limit.overflow is Overflow.FAIL:
            raise RunError(
                f"the pattern has {runs - keys:,} runs in a task, and may have {share:,} of the {limit.runs:,} of all {self.tasks} tasks; "
                f"make it shorter with within, or allow more with .limit(...)"
            )
        yield from self._without_oldest(many)

    def _without_oldest(self, many: int) -> Out:
        kept: dict[Key, StoredRuns] = dict(self.state.items())
        begun = [
            (value[0][run["first"]][TIME], number, at)
            for number, value in enumerate(kept.values())
            for at, run in enumerate(value[2])
            if run["taken"] >= 0
        ]
        gone: dict[int, set[int]] = {}
        for _, number, at in sorted(begun)[:many]:
            gone.setdefault(number, set()).add(at)
        named = list(kept)
        touched = {named[number]: kept[named[number]] for number in gone}
        self._take_out(touched.values())
        events, bases = self._events(touched, None)
        dropped: list[RunEvents] = []
        for number, places in gone.items():
            key = named[number]
            runs, done = unpacked(touched[key], bases[key])
            dropped += [RunEvents(number, taken) for at in sorted(places) if (taken := runs[at][2]) is not None]
            left = [run for at, run in enumerate(runs) if at not in places]
            self._leave(key, left, done, True, events)
        self._store(events)
        self._count(dropped=len(dropped))
        if self.node.sets_aside:
            yield from self._emitted({DROPPED: MatchEvents(dropped, self.node.pattern.stages)}, events)

    def _aside(self, due: pa.Table, before: int) -> Aside:
        """Puts events that are due aside, by their numbers among all events of the pass."""
        return lambda at, failed: self._put_aside(due, at - before, failed)

    def _chained(self, given: _Pass) -> dict[str, MatchEvents]:
        """The quick way for plain sequences."""
        events, kept, before, until = given.events, given.kept, given.before, given.until
        stages = self.node.pattern.stages
        own = [test.own for test in self.node.automaton.tests]
        tests = [own.index(stage) for stage in stages]
        times, within = np.array(events.times, np.int64), self.node.pattern.within
        chains = Chains(given.ids, given.masks, times, before, tests, within, self.begins)
        keys = list(given.spans)
        for number, key in enumerate(keys):
            if key in kept:
                chains.add(number, given.spans[key][0], given.runs(key)[0])
        chains.walk()
        left = chains.left(until)
        for number in left.keys() | {number for number, key in enumerate(keys) if key in kept}:
            self._leave(keys[number], left.get(number, []), [], keys[number] in kept, events)
        made: dict[str, MatchEvents] = {OUT: ChainEvents(chains.paths[chains.is_match], [], stages)}
        over = chains.is_over(until)
        self._count(matches=int(chains.is_match.sum()), timed_out=int(over.sum()))
        if self.node.reports and self.node.automaton.is_timed:
            made[TIMED_OUT] = ChainEvents(chains.paths[over], chains.deadlines()[over].tolist(), stages)
        return made

    def _walked_over(self, given: _Pass) -> dict[str, MatchEvents]:
        """The way for all patterns: run by run."""
        events, before = given.events, given.before
        rows = lambda: Chunk(self.event, columns=_columns(events)).rows()  # noqa: E731 - it is asked for seldom
        called = None if self.guard is None else self.guard.called
        asked = self.asking.over(events.rows, rows, called) if self.asking else None
        seen = [0] * before + given.masks.tolist()
        after = self.node.pattern.after_match
        walk = Walk(
            self.transitions, after, events.times, seen, asked, self.node.reports, limit=self.node.pattern.limit, aside=self.aside, begins=self.begins
        )  # fmt: skip
        for number, (key, (begin, end)) in enumerate(given.spans.items()):
            runs, done = given.runs(key) if key in given.kept else ([], [])
            span = (before + begin, before + end)
            left, waiting = self._key(walk, number, span, runs, done, given.until)
            self._leave(key, left, waiting, key in given.kept, events)
        stages = self.node.pattern.stages
        self._count(matches=len(walk.matches), timed_out=walk.expired, pruned=walk.pruned, dropped=len(walk.dropped))
        made = {OUT: MatchEvents(walk.matches, stages), TIMED_OUT: MatchEvents(walk.timed_out, stages)}
        return made | ({DROPPED: MatchEvents(walk.dropped, stages)} if self.node.sets_aside else {})

    def _count(self, **ends: int) -> None:
        """Counts the runs that have ended, by how."""
        for how, many in ends.items():
            if many:
                self.counters.runs[how] = self.counters.runs.get(how, 0) + many

    def _key(
        self, walk: Walk, number: int, span: tuple[int, int], runs: list[Run], done: list[Run], until: int
    ) -> tuple[list[Run], list[Run]]:
        """Walks over the events of one key; the runs that are left, and the matches that wait for some of them."""
        if walk.is_plain:
            return walk.expire_plain(number, walk.plain(number, *span, runs), until), []
        runs = runs or [first_run(walk.start)]
        queue = RunQueue(runs if self.begins else [run for run in runs if run[2] is not None])
        finished = MatchQueue(done)
        queue = walk.expire(number, walk.key(number, *span, queue, finished), finished, until)
        if until >= FOREVER:
            walk.end(number, queue, finished)
        return list(queue), list(finished)

    def unfinished(self) -> list[Key]:
        """The keys with matches that wait for earlier runs."""
        if self.node.pattern.after_match.skip is Skip.NONE:
            return []
        return [key for key, (*_, waiting) in self.state.items() if waiting]

    def _leave(self, key: Key, runs: list[Run], done: list[Run], was: bool, events: Events) -> None:
        """What is left of a key, to be kept."""
        if done or any(run[2] is not None for run in runs):
            self.left.append((key, *RunPacker().packed(runs, done)))
            self._set_timer(key, runs, events)
        elif was:
            self.state.delete(key)
            self.waits.clear(key)

    def _store(self, events: Events) -> None:
        """Keeps the runs that are left, with their events."""
        left, self.left = self.left, []
        if not left:
            return
        needed = [at for _, numbers, *_ in left for at in numbers]
        table = events.table.select(list(self.fields)).take(pa.array(needed, pa.int64())) if self.fields else None
        columns = {name: values_of(table.column(name)) for name in self.fields} if table is not None else {}
        records = [
            {TIME: events.times[at], **{name: values[position] for name, values in columns.items()}}
            for position, at in enumerate(needed)
        ]
        begin = 0
        kept: list[StoredRuns] = []
        for key, numbers, links, runs, waiting in left:
            kept.append((records[begin : begin + len(numbers)], links, runs, waiting))
            self.state.put(key, kept[-1])
            begin += len(numbers)
        count_put(self.changes_of(self.node.pattern.name), self.labels, kept)

    def _take_out(self, kept: Collection[StoredRuns]) -> None:
        """Counts runs as they were before the events that are looked at now."""
        if kept:
            count_taken_out(self.changes_of(self.node.pattern.name), self.labels, kept)

    def _set_timer(self, key: Key, runs: list[Run], events: Events) -> None:
        at = min((self.deadlines.of(run, events.times) for run in runs), default=FOREVER)
        if at < FOREVER:
            self.waits.set(key, self.clock, at)
        else:
            self.waits.delete(key, self.clock)

    def _events(self, kept: dict[Key, StoredRuns], due: pa.Table | None) -> tuple[Events, dict[Key, int]]:
        """The events of a pass: those that runs hold, then the new ones; and where those of each key begin."""
        old: list[dict[str, Any]] = []
        bases: dict[Key, int] = {}
        for key, value in kept.items():
            bases[key] = len(old)
            old += value[0]
        names = (
            self.fields
            if due is None
            else tuple(n for n in self.event.names if n in due.schema.names and self._is_needed(n))
        )
        schema = pa.schema([pa.field(n, arrow_type(self.event.field(n).type)) for n in names])
        tables = (
            [pa.Table.from_pylist([{n: each.get(n) for n in names} for each in old], schema)]
            if old or due is None
            else []
        )
        tables += [] if due is None else [due.select(list(names)).cast(schema)]
        times = [each[TIME] for each in old]
        if due is not None:
            times += [self.times.now] * due.num_rows if self.node.time is None else times_of(due).tolist()
        return Events(pa.concat_tables(tables), times, self.event), bases

    def _is_needed(self, name: str) -> bool:
        return name in self.fields or bool(self.asking)


def _one(rows: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(rows, pa.ChunkedArray):
        return rows.chunk(0) if rows.num_chunks == 1 else rows.combine_chunks()
    return rows


def _columns(events: Events) -> list[list[Any]]:
    return [list(each) for each in zip(*events.rows, strict=True)] or [[] for _ in events.schema.names]


def _rising(ids: IntArray) -> IntArray:
    """Numbers of keys that stand together, anew from 0 in the order in which they stand."""
    rising: IntArray = np.concatenate([[0], np.cumsum(ids[1:] != ids[:-1])])
    return rising


def _by_value(keys: list[Key]) -> tuple[list[int], list[int]]:
    """The number of each key, and a row with each, where two keys have one hash."""
    known: dict[Key, int] = {}
    first, ids = [], []
    for at, key in enumerate(keys):
        if key not in known:
            known[key] = len(known)
            first.append(at)
        ids.append(known[key])
    return ids, first


def _rank(due: pa.Table, term: Term) -> IntArray:
    """Numbers that rise as a field does, as SQL orders it."""
    at = pa.array(np.arange(due.num_rows))
    table = pa.table({"__at": at, term.column: due.column(term.column)})
    order = column(sorted_by(table, (Term(term.column),), ()), "__at")
    values = due.column(term.column).take(pa.array(order))
    same = np.zeros(len(order), bool)
    if len(order) > 1:
        equal = pc.fill_null(pc.equal(values[1:], values[:-1]), False)
        both = pc.and_(pc.is_null(values[1:]), pc.is_null(values[:-1]))
        same[1:] = pc.or_(equal, both).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.cumsum(~same)
    return -ranks if term.descending else ranks
