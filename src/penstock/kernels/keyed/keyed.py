"""Kernels of the steps that keep something per key: what they share, and running aggregates."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Collection
from dataclasses import replace
from operator import itemgetter
from typing import Any

import pyarrow as pa

from penstock.graph import types as t
from penstock.graph.aggregates.aggregate import Aggregate
from penstock.graph.expr import lit
from penstock.graph.expr.model import Literal
from penstock.graph.nodes import AggregateBy, AggregateStep, Keyed
from penstock.graph.nodes.base import ALL
from penstock.graph.schema import Schema
from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.timers import PROCESSING, Timers
from penstock.graph.times import FOREVER, Times
from penstock.kernels.base import Context, Kernel, Out, RecordFailed
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.keyed.aggregates import begins, finish, merges
from penstock.kernels.records.arrow import arrow_type
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import shaped

Key = tuple[Any, ...]


def key_getter(names: tuple[str, ...], keys: tuple[str, ...]) -> Callable[[Any], Key]:
    """A function from a plain tuple of values to its key, always a tuple."""
    indexes = [names.index(k) for k in keys]
    if len(indexes) == 1:
        at = indexes[0]
        return lambda values: (values[at],)
    return itemgetter(*indexes) if indexes else lambda values: ()


def hashes_of(keys: list[Key], columns: tuple[Column, ...]) -> list[int]:
    """The hashes of keys whose parts are kept in these columns."""
    arrays = [pa.array(part, column.type) for part, column in zip(zip(*keys, strict=True), columns, strict=True)]
    return list(key_hashes(arrays, len(keys)).tolist())


def prefetch(state: KeyedState, keys: list[Key], hashes: list[int] | None, columns: tuple[Column, ...]) -> None:
    """Prefetches keys. Records of a step in the same pass have no hashes from the host; a state that needs them gets them from here."""
    if hashes is None and state.is_columnar:
        hashes = hashes_of(keys, columns) if keys else []
    state.prefetch(keys, hashes)


class KeyedKernel(Kernel):
    """The base of keyed kernels: finds the keys and their state."""

    state: KeyedState
    of: Keyed
    is_alone = True
    """Whether the step has one task, which has all keys."""

    def __init__(self, node: Keyed, schema: Schema) -> None:
        super().__init__(node)
        self.of = node
        self.key_of = key_getter(schema.names, node.keys)
        self.key_indexes = [schema.names.index(k) for k in node.keys]
        self.key_columns = tuple(Column(k, arrow_type(schema.field(k).type)) for k in node.keys)

    def open(self, context: Context) -> None:
        """Finds the step's state."""
        self.state = context.state(self.node.name)
        self.is_alone = context.tasks == 1
        self.state.describe(self.layout() if self.ttl is None else replace(self.layout(), timers=True))
        if self.ttl is not None:
            self.timers = self.timers_of(context)

    def begin(self, times: Times) -> None:
        """Forgets idle keys before records come for them."""
        super().begin(times)
        self.forget_idle(())

    @property
    def ttl(self) -> int | None:
        """After how long a key that does not change is forgotten."""
        span: int | None = getattr(self.of, "ttl", None)
        return span

    def forget_idle(self, touched: Collection[Key]) -> None:
        """Forgets the keys that have not changed for their time to live; those that have just changed live on from now."""
        if self.ttl is None or self.timers is None:
            return
        for due in self.timers.due(PROCESSING, self.times.now):
            if due.key not in touched:
                self.state.delete(due.key)
        for key in touched:
            self.timers.set(key, PROCESSING, self.times.now + self.ttl)

    def timers_of(self, context: Context) -> Timers:
        """The timers of the step, which order keys by their hash."""
        made = context.timers(self.node.name)
        made.hash_with(self.hashes_of)
        return made

    def hashes_of(self, keys: list[Any]) -> list[int]:
        """The hashes of keys."""
        return hashes_of([(key,) for key in keys] if self.layout().bare else keys, self.key_columns)

    def layout(self) -> Layout:
        """How the keys and values of its state look: a Python object for each key, unless the kernel knows better."""
        return Layout(self.key_columns, (Column("value"),), single=True)

    def keys(self, chunk: Chunk) -> list[Key]:
        """The key of each record, prefetched."""
        columns = chunk.columns()
        keys: list[Key] = list(zip(*(columns[at] for at in self.key_indexes), strict=True)) or [()] * len(chunk)
        prefetch(self.state, keys, chunk.key_hashes, self.key_columns)
        return keys


class RunningTotals(KeyedKernel):
    """The base of running totals: what changed is emitted when the host advances, once per key."""

    def __init__(self, node: Keyed, schema: Schema) -> None:
        super().__init__(node, schema)
        self.touched: dict[Key, Any] = {}
        self.of_all = isinstance(node, AggregateBy) and node.always and all(a.own is None for a in node.aggregates)
        self.is_signed: bool = getattr(node, "counted", False)
        if self.is_signed:
            self.fold = self.fold_signed  # type: ignore[method-assign]  # chosen once, not for each record

    def fold_signed(self, key: Key, part: tuple[Any, ...]) -> None:
        """The same, with the total from before the batch noted: it is taken back when the batch ends."""
        kept = self.state.get(key)
        if key not in self.touched:
            self.touched[key] = None if kept is None else self.record(key, kept)
        self.state.put(key, part if kept is None else self.together(kept, part))

    def fold(self, key: Key, part: tuple[Any, ...]) -> None:
        """Puts a part together with what is kept for its key."""
        kept = self.state.get(key)
        self.state.put(key, part if kept is None else self.together(kept, part))
        self.touched[key] = None

    def together(self, kept: tuple[Any, ...], part: tuple[Any, ...]) -> tuple[Any, ...]:
        """What two parts give."""
        raise NotImplementedError

    def record(self, key: Key, kept: tuple[Any, ...]) -> tuple[Any, ...]:
        """The record that stands for what is kept."""
        raise NotImplementedError

    def advance(self, times: Times) -> Out:
        """The new totals of the keys that changed; as signed rows with the old ones, where these are asked for."""
        self.move(times)
        self.begin_total(times)
        made = self._signed() if self.is_signed else [self.record(key, self.state.get(key)) for key in self.touched]
        self.forget_idle(self.touched)
        self.touched = {}
        if made:
            yield "out", shaped(self, "out", made)

    def begin_total(self, times: Times) -> None:
        """Makes the total over no rows, where that is a row, when the input is over."""
        if self.of_all and times.watermark == FOREVER and self.is_alone and self.state.get(TOTAL) is None:
            self.fold(TOTAL, self.nothing())

    def nothing(self) -> tuple[Any, ...]:
        """The parts of no rows."""
        raise NotImplementedError

    def _signed(self) -> list[Any]:
        made: list[Any] = []
        for key, before in self.touched.items():
            after = self.record(key, self.state.get(key))
            if before is None:
                made.append((*after, 1))
            elif before != after and repr(before) != repr(after):
                made += [(*before, -1), (*after, 1)]
        return made


TOTAL: Key = (0,)
"""The key of a total over all rows."""
_TOTAL_SCHEMA = Schema((t.Field(ALL, t.INT),), internal=True)


class MergeKernel(RunningTotals):
    """Running totals from parts that were made before the shuffle: (keys, parts of each aggregate)."""

    node: AggregateBy
    of: AggregateStep

    def __init__(self, node: AggregateStep, schema: Schema) -> None:
        super().__init__(node, schema)
        self.parts = [merge for a in node.aggregates for merge in merges(a)]
        self.widths = [(a, len(merges(a))) for a in node.aggregates]
        self.width = len(node.keys)

    def layout(self) -> Layout:
        """A column for each part; the parts of a user's own aggregate are pickled."""
        return Layout(self.key_columns, tuple(c for a in self.of.aggregates for c in part_columns(a)))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Folds the parts into what is kept."""
        for at, (row, key) in enumerate(zip(chunk.values(), self.keys(chunk), strict=True)):
            try:
                self.fold(key, row[self.width : -1])
                self.counters.native += row[-1]
            except Exception as error:
                raise RecordFailed(self.node, row, at, error) from error
        return ()

    def nothing(self) -> tuple[Any, ...]:
        """The parts of rows that no aggregate counts."""
        none = map(_of_nothing, self.of.aggregates)
        return tuple(begin((0,), (0,)) for a in none for begin in begins(a, _TOTAL_SCHEMA))

    def together(self, kept: tuple[Any, ...], part: tuple[Any, ...]) -> tuple[Any, ...]:
        """Each part with its own kind."""
        return tuple(p(a, b) for p, a, b in zip(self.parts, kept, part, strict=True))

    def record(self, key: Key, kept: tuple[Any, ...]) -> tuple[Any, ...]:
        """The key and the results."""
        made, at = [*key], 0
        for aggregate, width in self.widths:
            made.append(finish(aggregate, kept[at : at + width]))
            at += width
        return tuple(made)


def _of_nothing(aggregate: Aggregate) -> Aggregate:
    """An aggregate that counts no row, whatever the row."""
    if not aggregate.written:
        return replace(aggregate, condition=lit(False))
    return replace(aggregate, written=tuple(Literal(None, kind) for kind in aggregate.kinds), condition=None)


def part_columns(aggregate: Aggregate) -> list[Column]:
    """How each part of an aggregate is kept."""
    if aggregate.own is not None:
        return [Column(aggregate.name)]
    return [Column(f"{aggregate.name}.{at}", arrow_type(f.type)) for at, f in enumerate(aggregate.part_fields)]


class AggregateKernel(MergeKernel):
    """Running totals straight from records; for hosts without a JVM, and for aggregates of the user's own."""

    def __init__(self, node: AggregateStep, schema: Schema) -> None:
        super().__init__(node, schema)
        self.starts = [begin for a in node.aggregates for begin in begins(a, schema)]

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Turns each record into parts and folds them."""
        rows = chunk.rows()
        for at, (values, key) in enumerate(zip(chunk.values(), self.keys(chunk), strict=True)):
            try:
                self.fold(key, tuple(start(values, rows[at]) for start in self.starts))
            except Exception as error:
                raise RecordFailed(self.node, rows[at], at, error) from error
        return ()


class MergePickledKernel(MergeKernel):
    """The half of an aggregate that runs after the shuffle, for parts that come pickled."""

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Folds the parts into what is kept."""
        for row, key in zip(chunk.values(), self.keys(chunk), strict=True):
            try:
                self.fold(key, pickle.loads(row[-1]))
            except Exception as error:
                raise RecordFailed(self.node, f"the parts of key {key}", 0, error) from error
        return ()
