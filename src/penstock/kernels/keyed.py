"""Kernels of the steps that keep something per key."""

from __future__ import annotations

import copy
import decimal
import math
import pickle
from collections.abc import Callable
from operator import itemgetter
from typing import Any

from penstock.graph.aggregates import Aggregate, Part
from penstock.graph.nodes import AggregateBy, Combine, Process, Reduce
from penstock.graph.schema import Schema
from penstock.kernels.base import Context, Kernel, Out, RecordFailed
from penstock.kernels.chunk import Chunk
from penstock.kernels.expr import compile_expr
from penstock.kernels.state import KeyedState, MemoryState
from penstock.kernels.stateless import by_output, shaped

Key = tuple[Any, ...]


def key_getter(names: tuple[str, ...], keys: tuple[str, ...]) -> Callable[[Any], Key]:
    """A function from a plain tuple of values to its key, always a tuple."""
    places = [names.index(k) for k in keys]
    if len(places) == 1:
        at = places[0]
        return lambda values: (values[at],)
    return itemgetter(*places)


class KeyedKernel(Kernel):
    """The base of keyed kernels: finds the keys and their state."""

    state: KeyedState

    def __init__(self, node: Any, schema: Any) -> None:
        super().__init__(node)
        self.of = node
        self.key_of = key_getter(schema.names, node.keys)

    def open(self, context: Context) -> None:
        """Finds the step's state."""
        self.state = context.state(self.node.name)

    def keys(self, chunk: Chunk) -> list[Key]:
        """The key of each record, brought near."""
        keys = list(map(self.key_of, chunk.values()))
        self.state.prepare(keys, chunk.places)
        return keys


class ProcessKernel(KeyedKernel):
    """The user's own class."""

    node: Process

    def open(self, context: Context) -> None:
        """Makes an instance of its own."""
        super().open(context)
        self.logic = copy.copy(self.node.logic)
        self.logic._cells = {}
        self._call("on_open")

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The records the class gives for these."""
        made: list[Any] = []
        for at, (row, key) in enumerate(zip(chunk.rows(), self.keys(chunk), strict=True)):
            try:
                self._one(row, key, made)
            except Exception as error:
                raise RecordFailed(self.node, row, at, error) from error
        if len(self.node.outputs) == 1:
            yield "out", shaped(self, "out", made)
        else:
            yield from by_output(self, made)

    def _one(self, row: Any, key: Key, made: list[Any]) -> None:
        logic, kept = self.logic, self.state.get(key)
        logic._cells = kept if kept is not None else {}
        logic.key = key[0] if len(key) == 1 else key
        made += logic.on_event(row) or ()
        if logic._cells:
            self.state.put(key, logic._cells)
        elif kept is not None:
            self.state.delete(key)

    def close(self) -> None:
        """Tells the class that it is over."""
        self._call("on_close")

    def _call(self, method: str) -> None:
        try:
            getattr(self.logic, method)()
        except Exception as error:
            raise RecordFailed(self.node, f"none: it was {method} that failed", 0, error) from error


class Running(KeyedKernel):
    """The base of running totals: what changed is given at the barrier, once per key."""

    def __init__(self, node: Any, schema: Any) -> None:
        super().__init__(node, schema)
        self.touched: dict[Key, None] = {}

    def fold(self, key: Key, part: Any) -> None:
        """Puts a part together with what is kept for its key."""
        kept = self.state.get(key)
        self.state.put(key, part if kept is None else self.together(kept, part))
        self.touched[key] = None

    def together(self, kept: Any, part: Any) -> Any:
        """What two parts give."""
        raise NotImplementedError

    def record(self, key: Key, kept: Any) -> Any:
        """The record that stands for what is kept."""
        raise NotImplementedError

    def barrier(self) -> Out:
        """The new totals of the keys that changed."""
        made = [self.record(key, self.state.get(key)) for key in self.touched]
        self.touched = {}
        if made:
            yield "out", shaped(self, "out", made)


class ReduceKernel(Running):
    """A function of two records."""

    node: Reduce

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Folds the records into what is kept; nothing comes out before the barrier."""
        for at, (row, key) in enumerate(zip(chunk.values(), self.keys(chunk), strict=True)):
            try:
                self.fold(key, row)
            except Exception as error:
                raise RecordFailed(self.node, chunk.rows()[at], at, error) from error
        return ()

    def together(self, kept: Any, part: Any) -> Any:
        """The function's record, as plain values."""
        shape = self.shape
        made = shape.values(self.of.function(shape.make(kept), shape.make(part)))
        values = tuple(c[0] for c in shape.checked([[v] for v in made]))
        if self.key_of(values) != self.key_of(kept):
            raise ValueError(f"reduce must keep the key fields ({', '.join(self.of.keys)}) as they are; {made!r} came")
        return values

    def open(self, context: Context) -> None:
        """Finds the shape of the records."""
        super().open(context)
        self.shape = Chunk(self.node.output().schema, rows=[]).shape

    def record(self, key: Key, kept: Any) -> Any:
        """The folded record."""
        return kept


_EXACT = decimal.Context(prec=76)


def _sum(one: Any, other: Any) -> Any:
    return _EXACT.add(one, other) if isinstance(one, decimal.Decimal) else one + other


def _nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _least(one: Any, other: Any) -> Any:
    """The smaller; as in Spark, not-a-number is the largest of all."""
    if _nan(one) or _nan(other):
        return other if _nan(one) else one
    return min(one, other)


def _greatest(one: Any, other: Any) -> Any:
    """The larger; as in Spark, not-a-number is the largest of all."""
    if _nan(one) or _nan(other):
        return one if _nan(one) else other
    return max(one, other)


_MERGES: dict[str, Callable[[Any, Any], Any]] = {
    "add": _sum,
    "least": _least,
    "greatest": _greatest,
    "unite": lambda one, other: sorted({*one, *other}),
}


def merge_part(part: Part, one: Any, other: Any) -> Any:
    """Two parts together; null is nothing."""
    if one is None or other is None:
        return other if one is None else one
    return _MERGES[part.merge](one, other)


def finish(aggregate: Aggregate, parts: tuple[Any, ...]) -> Any:
    """The result that the parts stand for."""
    if aggregate.own is not None:
        return aggregate.own.result(parts[0])
    if aggregate.recipe.finish == "ratio":
        return parts[0] / parts[1] if parts[1] else None
    return parts[0]


class MergeKernel(Running):
    """Running totals from parts that were made before the shuffle: (keys, parts of each aggregate)."""

    node: AggregateBy

    def __init__(self, node: Any, schema: Any) -> None:
        super().__init__(node, schema)
        self.parts = [p for a in node.aggregates for p in parts_of(a)]
        self.widths = [(a, len(parts_of(a))) for a in node.aggregates]
        self.width = len(node.keys)
        self.rows = 0

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Folds the parts into what is kept."""
        for at, (row, key) in enumerate(zip(chunk.values(), self.keys(chunk), strict=True)):
            try:
                self.fold(key, row[self.width : -1])
                self.rows += row[-1]
            except Exception as error:
                raise RecordFailed(self.node, row, at, error) from error
        return ()

    def together(self, kept: Any, part: Any) -> Any:
        """Each part with its own kind."""
        return tuple(p(a, b) for p, a, b in zip(self.parts, kept, part, strict=True))

    def record(self, key: Key, kept: Any) -> Any:
        """The key and the results."""
        made, at = [*key], 0
        for aggregate, width in self.widths:
            made.append(finish(aggregate, kept[at : at + width]))
            at += width
        return tuple(made)


def parts_of(aggregate: Aggregate) -> list[Callable[[Any, Any], Any]]:
    """How each part of an aggregate merges."""
    if aggregate.own is not None:
        return [aggregate.own.merge]
    return [_merger(part) for part in aggregate.recipe.parts]


def _merger(part: Part) -> Callable[[Any, Any], Any]:
    return lambda one, other: merge_part(part, one, other)


class AggregateKernel(MergeKernel):
    """Running totals straight from records; for hosts without a JVM, and for aggregates of the user's own."""

    def __init__(self, node: Any, schema: Any) -> None:
        super().__init__(node, schema)
        self.starts = [s for a in node.aggregates for s in _starts(a, schema)]

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Turns each record into parts and folds them."""
        rows = chunk.rows()
        for at, (values, key) in enumerate(zip(chunk.values(), self.keys(chunk), strict=True)):
            try:
                self.fold(key, tuple(start(values, rows[at]) for start in self.starts))
            except Exception as error:
                raise RecordFailed(self.node, rows[at], at, error) from error
        return ()


class CombineKernel(AggregateKernel):
    """The half of an aggregate that runs before the shuffle: gives keys with their parts, and forgets them."""

    def open(self, context: Context) -> None:
        """Its state is its own and lives for a batch."""
        self.state = MemoryState()

    def barrier(self) -> Out:
        """The parts of each key, pickled into one field."""
        made = [(*key, pickle.dumps(self.state.get(key))) for key in self.touched]
        self.touched, self.state = {}, MemoryState()
        yield "out", Chunk.of(self.node.output().schema, made)


class CombineReduceKernel(ReduceKernel):
    """The half of a reduce that runs before the shuffle."""

    def open(self, context: Context) -> None:
        """Its state is its own and lives for a batch."""
        super().open(Context())


class MergePickledKernel(MergeKernel):
    """The half of an aggregate that runs behind the shuffle, for parts that come pickled."""

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Folds the parts into what is kept."""
        for row, key in zip(chunk.values(), self.keys(chunk), strict=True):
            try:
                self.fold(key, pickle.loads(row[-1]))
            except Exception as error:
                raise RecordFailed(self.node, f"the parts of key {key}", 0, error) from error
        return ()


def aggregate_kernel(node: AggregateBy, schema: Schema) -> Kernel:
    """The kernel of an aggregate: over records, or over the parts that a combine step made of them."""
    kernels = {"": AggregateKernel, "pickled": MergePickledKernel, "columns": MergeKernel}
    return kernels[node.combined](node, schema)


def combine_kernel(node: Combine, schema: Schema) -> Kernel:
    """The kernel of the half before the shuffle; it counts and fails under the combine step's name."""
    kernel = CombineReduceKernel if isinstance(node.of, Reduce) else CombineKernel
    made = kernel(node.of, schema)
    made.node = node  # type: ignore[assignment]  # same outputs, its own name
    made.of = node.of
    return made


def _starts(aggregate: Aggregate, schema: Any) -> list[Callable[[Any, Any], Any]]:
    own = aggregate.own
    if own is not None:
        return [lambda values, row: own.add(own.init(), row)]
    if aggregate.argument is None:
        return [lambda values, row: 1]
    of = compile_expr(aggregate.argument, schema)
    return [_start(part, of) for part in aggregate.recipe.parts]


def _start(part: Part, of: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    if part.sql.startswith("count_if"):
        return lambda values, row: int(of(values) is True)
    if part.sql.startswith("count"):
        return lambda values, row: int(of(values) is not None)
    if "as double" in part.sql:
        return lambda values, row: _as_double(of(values))
    if "collect_set" in part.sql:
        return lambda values, row: [] if of(values) is None else [of(values)]
    return lambda values, row: of(values)


def _as_double(value: Any) -> float | None:
    return None if value is None else float(value)
