"""Many patterns over one stream, which may change from batch to batch: one walk for each, over what is kept of it for each key."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field
from dataclasses import replace as with_changes
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pyarrow as pa

from penstock.graph.nodes.base import ALL, OUT, Output
from penstock.graph.nodes.patterns.match import TIMED_OUT, TIMED_OUT_AT
from penstock.graph.nodes.patterns.match_patterns import STAGE, MatchPatterns
from penstock.graph.nodes.patterns.operator_match import OperatorMatch
from penstock.graph.patterns.pattern import RunLimit
from penstock.graph.rules.changes import KEPT, ChangedRule
from penstock.graph.rules.pattern_changes import ActivePattern
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.table import key_hashes_of
from penstock.graph.times import FOREVER, Times, to_moment
from penstock.kernels.base import Out
from penstock.kernels.keyed.keyed import Key, prefetch
from penstock.kernels.ordering.sort import keys_in
from penstock.kernels.patterns.active import count_taken_out
from penstock.kernels.patterns.events import ARRIVAL, BATCH, EventKernel
from penstock.kernels.patterns.kernel import MatchKernel
from penstock.kernels.patterns.operators.kernel import OperatorKernel, counted
from penstock.kernels.patterns.operators.machine import Found, held_by
from penstock.kernels.patterns.selection import Events, MatchEvents, Selection
from penstock.kernels.patterns.stored import StoredRuns, columns_of
from penstock.kernels.records.arrow import arrow_schema
from penstock.kernels.records.chunk import Chunk

MOST = 256
"""As many compiled patterns as a process remembers."""
Entry = dict[str, Any]
"""What is kept of one pattern for a key: its name and version, the names of its stages and states, and its runs."""
PARTS = ("events", "links", "runs", "matches")
MACHINE = "machine"
"""What is kept of a pattern of operators for a key, as a text."""
AnyKernel: TypeAlias = MatchKernel | OperatorKernel
_compiled: OrderedDict[tuple[object, ...], AnyKernel] = OrderedDict()


@dataclass
class PatternRuns:
    """The runs of one pattern by key, as the kernel of a pattern sees its state and timers; of operators a text for each key."""

    values: dict[Key, Any] = field(default_factory=dict)
    deadlines: dict[Key, int] = field(default_factory=dict)
    is_columnar: ClassVar[bool] = False

    def prefetch(self, keys: list[Key], hashes: list[int] | None) -> None:
        """All runs are here."""

    def get(self, key: Key, default: Any = None) -> Any:
        """The runs of a key."""
        return self.values.get(key, default)

    def items(self) -> Iterable[tuple[Key, Any]]:
        """All runs."""
        return self.values.items()

    def sizes(self, column: str) -> tuple[int, int]:
        """How many keys there are, and how many runs they have."""
        return len(self.values), sum(len(kept[PARTS.index(column)]) for kept in self.values.values())

    def put(self, key: Key, value: Any) -> None:
        """Keeps the runs of a key."""
        self.values[key] = value

    def delete(self, key: Key, clock: str = "") -> None:
        """Forgets the runs of a key; with a clock, its timer."""
        (self.deadlines if clock else self.values).pop(key, None)

    def set(self, key: Key, clock: str, time: int) -> None:
        """Sets when the time of the first run of a key is up."""
        self.deadlines[key] = time

    def clear(self, key: Key) -> None:
        """Forgets the timer of a key."""
        self.deadlines.pop(key, None)


class NamedSelection(Selection):
    """A match of one of several patterns: which, from when to when, and its events with their stages."""

    def __init__(self, kernel: MatchKernel, active: ActivePattern) -> None:
        super().__init__(kernel.node, kernel.event)
        self.active = active

    def batch(self, taken: MatchEvents, events: Events, schema: Schema) -> pa.RecordBatch:
        """Matches as records of a schema, which ends with the time at which time was up if it has that."""
        wanted = arrow_schema(schema)
        arrays = [*self._default(taken, events)[: -len(self.stages)], self._events(taken, events)]
        version, many = self.active.version, len(taken)
        keys = len([key for key in self.node.keys if key != ALL])
        arrays[keys:keys] = [
            pa.repeat(pa.scalar(value, kind), many)
            for value, kind in (
                (self.active.name, pa.string()),
                (version.number, pa.int64()),
                (version.function, pa.string()),
            )
        ]
        if TIMED_OUT_AT in schema:
            arrays.append(pa.array(taken.at, pa.int64()))
        made = [array.cast(field.type) for array, field in zip(arrays, wanted, strict=True)]
        return pa.RecordBatch.from_arrays(made, schema=wanted)

    def _events(self, taken: MatchEvents, events: Events) -> pa.Array:
        flat = [each for path in taken.lists for each in path]
        offsets = np.cumsum([0, *(len(path) for path in taken.lists)])
        numbers = pa.array([at for _, at in flat], pa.int64())
        columns = [events.table.column(name).combine_chunks().take(numbers) for name in self.event.names]
        stages = pa.array([self.stages[stage] for stage, _ in flat], pa.string())
        fields = [pa.field("stage", pa.string()), *arrow_schema(self.event)]
        records = pa.StructArray.from_arrays([stages, *map(_one, columns)], fields=fields)
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), records)


class MatchPatternsKernel(EventKernel):
    """Finds the matches of patterns that may change; those of a batch are known before its events are looked at."""

    node: MatchPatterns

    def __init__(self, node: MatchPatterns, schema: Schema) -> None:
        super().__init__(node, schema)
        self.active: tuple[ActivePattern, ...] | None = None
        self.has_changes = len(node.inputs) > 1

    def layout(self) -> Layout:
        """Two lists for each key: what is kept of each pattern of stages, and of each of operators."""
        columns = columns_of(self.event, self.event.names)
        parts = [pa.field(column.name, column.type) for column in columns]
        kinds = [pa.field("version", pa.int64()), *(pa.field(n, pa.string()) for n in ("pattern", "stages", "states"))]
        texts = pa.list_(pa.struct([*kinds, pa.field(MACHINE, pa.string())]))
        lists = (Column("patterns", pa.list_(pa.struct([*kinds, *parts]))), Column("machines", texts))
        return Layout(self.key_columns, lists, timers=True)

    def begin(self, times: Times) -> None:
        """A batch begins; where patterns change, those of the batch are not known yet."""
        super().begin(times)
        self.active = None if self.has_changes else self.active

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Takes the patterns that changed, or keeps events that are not late."""
        if source == 1:
            self._change(chunk)
            return ()
        return super().take(chunk, source)

    def prepared(self, rows: Any) -> Any:
        """Conditions are asked pattern by pattern."""
        return rows

    def _change(self, chunk: Chunk) -> None:
        """The patterns of this batch are these changes over those of the flow."""
        rows = sorted(chunk.values(), key=lambda row: str(row[0]))
        self.active = self.node.source.after((name, ChangedRule(*rest)) for name, *rest in rows)

    def advance(self, times: Times) -> Out:
        """The matches that the events up to now complete, and what the movement of time decides."""
        if self.active is None:
            self._change(Chunk(KEPT, rows=[]))
        return super().advance(times)

    def walked(self, due: pa.Table | None, timed: list[Key], until: int) -> Out:
        """Walks over the events for each pattern, then keeps what is left. A pattern that pauses sees no events; the time of its runs passes."""
        assert self.active is not None, "advance has made them known"
        keys = dict.fromkeys(timed)
        if due is not None:
            named = keys_in(due, self.node.keys)
            prefetch(self.state, named, key_hashes_of(due).tolist(), self.key_columns)
            keys |= dict.fromkeys(named)
        kernels = [self._kernel(each) for each in self.active]
        runs = self._loaded(list(keys), kernels)
        for active, kernel, mine in zip(self.active, kernels, runs, strict=True):
            kernel.state = kernel.waits = mine  # type: ignore[assignment]  # as far as it asks
            kernel.times, kernel.guard = self.times, self.guard
            kernel.counters, kernel.run_changes = type(self.counters)(), {}
            seen = None if active.is_paused else due
            if isinstance(kernel, MatchKernel):
                yield from self._stages(kernel, seen, mine, until)
            else:
                yield from self._operators(active, kernel, seen, mine, until)
            self._count(kernel)
        self._keep(list(keys), kernels, runs)
        for active, kernel in zip(self.active, kernels, strict=True):
            limit = kernel.node.pattern.limit if isinstance(kernel, MatchKernel) else None
            if isinstance(kernel, MatchKernel) and limit is not None and limit.is_shared:
                self._limit(active, kernel, limit)

    def unfinished(self) -> list[Key]:
        """The keys with matches that wait for earlier runs."""
        return [key for key, (stages, _) in self.state.items() if any(entry[PARTS[-1]] for entry in stages or ())]

    def _limit(self, active: ActivePattern, kernel: MatchKernel, limit: RunLimit) -> None:
        """Drops the oldest runs of a pattern above the share of the task, over all its keys."""
        mine = PatternRuns()
        for key, (stages, _) in self.state.items():
            for entry in stages or ():
                if entry["pattern"] == active.name and active.takes(entry["version"]):
                    mine.values[key] = tuple(entry[part] for part in PARTS)
        before = dict(mine.values)
        kernel.state = kernel.waits = mine  # type: ignore[assignment]  # as far as it asks
        kernel.counters, kernel.run_changes, kernel.tasks = type(self.counters)(), {}, self.tasks
        list(kernel.limited(limit))
        self._count(kernel)
        for key in [key for key, kept in before.items() if mine.values.get(key) is not kept]:
            self._replace(key, active, kernel, mine.values.get(key))

    def _replace(self, key: Key, active: ActivePattern, kernel: MatchKernel, kept: StoredRuns | None) -> None:
        """Keeps other runs of one pattern for a key; None is none."""
        stages, operators = self.state.get(key)
        others = [e for e in stages if e["pattern"] != active.name or not active.takes(e["version"])]
        made = [*others, *([] if kept is None else [_entry(active, kernel, kept)])]
        if made or operators:
            self.state.put(key, (made, operators))
        else:
            self.state.delete(key)

    def _stages(self, kernel: MatchKernel, due: pa.Table | None, mine: PatternRuns, until: int) -> Out:
        """The matches of one pattern of stages."""
        timed = list(mine.values)
        events = None if due is None or (not kernel.begins and not timed) else kernel.prepared(due)
        if events is not None and not events.num_rows:
            events = None
        return list(kernel.walked(events, timed, until)) if events is not None or timed else []

    def _operators(
        self, active: ActivePattern, kernel: OperatorKernel, due: pa.Table | None, mine: PatternRuns, until: int
    ) -> Out:
        """The matches of one pattern of operators."""
        events = due if due is None or ARRIVAL in due.schema.names else _arrived(due, self.times.now)
        end = FOREVER if self.times.watermark >= FOREVER else until
        found = kernel.walked(events, list(mine.values), end)
        kernel.count_ended("matches", len(found))
        if found:
            rows = [self._record(active, key, each) for key, each in found]
            yield OUT, Chunk(self.node.output(OUT).schema, rows=rows)

    def _record(self, active: ActivePattern, key: Key, found: Found) -> tuple[object, ...]:
        """A match of operators: which, from when to when, and its events with their tags, in the order in which they arrived."""
        tagged = sorted((event.number, tag, event) for tag, some in found.match.items() for event in some)
        begin = min((event.time for _, _, event in tagged), default=found.time)
        keys = [each for name, each in zip(self.node.keys, key, strict=True) if name != ALL]
        events = [{STAGE: tag, **dict(zip(self.event.names, event.values, strict=True))} for _, tag, event in tagged]
        version = active.version
        bounds = (to_moment(begin), to_moment(found.time))
        return (*keys, active.name, version.number, version.function, *bounds, events)

    def _count(self, kernel: AnyKernel) -> None:
        """Takes over what the kernel of a pattern has counted."""
        self.counters.skipped += kernel.counters.skipped
        for changes in kernel.run_changes.values():
            self.changes_of(kernel.node.name).add(changes)
        for how, many in kernel.counters.runs.items():
            name = f"{kernel.node.name}: {how}"
            self.counters.runs[name] = self.counters.runs.get(name, 0) + many

    def _loaded(self, keys: list[Key], kernels: list[AnyKernel]) -> list[PatternRuns]:
        """The runs of keys by pattern. Runs of what is not there any more end here."""
        runs = [PatternRuns() for _ in kernels]
        for key in keys:
            stages, operators = self.state.get(key) or ((), ())
            for entry in (*(stages or ()), *(operators or ())):
                at = self._place(entry, kernels)
                if at is None:
                    self._drop(entry)
                else:
                    runs[at].values[key] = entry[MACHINE] if MACHINE in entry else tuple(entry[part] for part in PARTS)
        return runs

    def _place(self, entry: Entry, kernels: list[AnyKernel]) -> int | None:
        """The number of the pattern with which the runs of an entry go on."""
        for at, (active, kernel) in enumerate(zip(self.active or (), kernels, strict=True)):
            if active.name == entry["pattern"] and active.takes(entry["version"]):
                return at if kernel.node.shape == (entry["stages"], entry["states"]) else None
        return None

    def _drop(self, entry: Entry) -> None:
        if MACHINE in entry:
            held = held_by(entry[MACHINE])
            self.changes_of(entry["pattern"]).take_out(*counted(held))
            begun = len(held.began)
        else:
            kept = tuple(entry[part] for part in PARTS)
            count_taken_out(self.changes_of(entry["pattern"]), entry["states"].split(", "), [kept])
            begun = sum(1 for run in entry["runs"] if run["taken"] >= 0)
        if begun:
            name = f"{entry['pattern']}: dropped"
            self.counters.runs[name] = self.counters.runs.get(name, 0) + begun

    def _keep(self, keys: list[Key], kernels: list[AnyKernel], runs: list[PatternRuns]) -> None:
        """Keeps what is left of each key, and sets its timer."""
        each = list(zip(self.active or (), kernels, runs, strict=True))
        for key in keys:
            made = [_entry(active, kernel, mine.values[key]) for active, kernel, mine in each if key in mine.values]
            if made:
                operators = [entry for entry in made if MACHINE in entry]
                self.state.put(key, ([entry for entry in made if MACHINE not in entry], operators))
            elif self.state.get(key) is not None:
                self.state.delete(key)
            at = min((mine.deadlines[key] for mine in runs if key in mine.deadlines), default=FOREVER)
            self.waits.set(key, self.clock, at) if at < FOREVER else self.waits.clear(key)

    def _kernel(self, active: ActivePattern) -> AnyKernel:
        """The kernel of a pattern, made once in a process."""
        version = active.version
        name = (
            self.node.name,
            active.name,
            version.number,
            version.text,
            version.drains,
            str(self.node.source.given.schema),
        )
        key = (*name, None if version.text is not None else id(active.pattern))
        if key not in _compiled:
            _compiled[key] = self._made(active)
            while len(_compiled) > MOST:
                _compiled.popitem(last=False)
        return _compiled[key]

    def _made(self, active: ActivePattern) -> AnyKernel:
        outputs = {output.name: output for output in self.node.outputs}
        match = self.node.source.match_of(active.name, active.pattern)
        if isinstance(match, OperatorMatch):
            return OperatorKernel(match, self.node.source.given.schema)
        ports = tuple(Output(outputs[name].schema, name) for name in (OUT, TIMED_OUT))
        kernel = MatchKernel(with_changes(match, outputs=ports), self.node.source.given.schema)
        kernel.selection = NamedSelection(kernel, active)
        kernel.begins = not active.version.drains
        kernel.sees_all = False
        return kernel


def _entry(active: ActivePattern, kernel: AnyKernel, kept: StoredRuns | str) -> Entry:
    stages, states = kernel.node.shape
    what = {"pattern": active.name, "version": active.version.number, "stages": stages, "states": states}
    return {**what, MACHINE: kept} if isinstance(kept, str) else {**what, **dict(zip(PARTS, kept, strict=True))}


def _arrived(due: pa.Table, now: int) -> pa.Table:
    """Events by processing time with the order in which they arrived."""
    numbers = np.arange(due.num_rows)
    return due.append_column(ARRIVAL, pa.array(numbers)).append_column(BATCH, pa.array(np.full(len(numbers), now)))


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column
