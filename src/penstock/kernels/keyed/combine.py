"""Kernels of the half of an aggregate or reduce that runs before the shuffle."""

from __future__ import annotations

import pickle
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa

from penstock.graph.aggregates.aggregate import Aggregator
from penstock.graph.nodes import AggregateStep, Combine, Reduce
from penstock.graph.schema import Schema
from penstock.graph.state.layout import ABSENT
from penstock.graph.times import Times
from penstock.graph.types import BINARY, INTEGERS, STRING
from penstock.kernels.base import Context, Kernel, Out, RecordFailed
from penstock.kernels.keyed.keyed import AggregateKernel, KeyedKernel
from penstock.kernels.keyed.own import Taken, own_of, taken_of
from penstock.kernels.keyed.reduce import ReduceKernel
from penstock.kernels.quiet import quiet
from penstock.kernels.records.chunk import Chunk, Walk, shape_of

TOGETHER = 1_000_000
"""Alike records that are counted in one go."""
GATHERED = 100_000
"""Alike records that are given to `add_all` at once."""


class CombineKernel(AggregateKernel):
    """The half of an aggregate that runs before the shuffle: emits keys with their parts, and forgets them."""

    def open(self, context: Context) -> None:
        """Its state is its own and lives for a batch."""
        self.scratch = context.scratch
        self.state = context.scratch()

    def advance(self, times: Times) -> Out:
        """The parts of each key, pickled into one field."""
        self.move(times)
        made = [(*key, pickle.dumps(self.state.get(key))) for key in self.touched]
        self.touched, self.state = {}, self.scratch()
        yield "out", Chunk.of(self.node.output().schema, made)


class ArgumentWalk:
    """Goes over what an aggregate takes in of the rows of a chunk: the values of its arguments."""

    def __init__(self, chunk: Chunk, taken: Taken) -> None:
        self.chunk, self.taken, self.at = chunk, taken, -1

    def __iter__(self) -> Iterator[Any]:
        for values in self.chunk.values():
            self.at += 1
            yield self.taken(values, None)


class CombineOwnKernel(CombineKernel):
    """The same for one aggregate of the user's own: each record goes straight into the part of its key.

    Where the user says how to add several records, those of a key and chunk are gathered first; unless the step goes on without the
    records it fails on, and must know which one failed.
    """

    def __init__(self, node: AggregateStep, schema: Schema) -> None:
        super().__init__(node, schema)
        only = node.aggregates[0]
        self.own = own_of(only)
        self.taken = taken_of(only, schema) if only.written else None

    def open(self, context: Context) -> None:
        """Begins with nothing."""
        super().open(context)
        self.made: dict[Any, Any] = {}

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Adds the records."""
        columns = chunk.columns()
        walk = chunk.walk() if self.taken is None else ArgumentWalk(chunk, self.taken)
        single = len(self.key_indexes) == 1
        keys = columns[self.key_indexes[0]] if single else zip(*(columns[at] for at in self.key_indexes), strict=True)
        with quiet():
            add = self._add_all if gathers(self.own) and not self.guarded else self._add
            add(walk, keys)
        return ()

    def _add_all(self, walk: Walk | ArgumentWalk, keys: Iterable[Any]) -> None:
        groups: dict[Any, list[Any]] = defaultdict(list)
        for row, key in zip(walk, keys, strict=True):
            groups[key].append(row)
        for key, rows in groups.items():
            self.made[key] = self._added(self.made.get(key, ABSENT), rows)

    def _added(self, so_far: object, rows: Sequence[Any]) -> object:
        """What stands after several records of one key; which of them it fails on is not known."""
        try:
            return self.own.add_all(self.own.init() if so_far is ABSENT else so_far, rows)
        except Exception as error:
            raise RecordFailed(self.node, rows[0], None, error) from error

    def _add(self, walk: Walk | ArgumentWalk, keys: Iterable[Any]) -> None:
        made = self.made
        get, add, init, row = made.get, self.own.add, self.own.init, None
        try:
            for row, key in zip(walk, keys, strict=True):
                so_far = get(key, ABSENT)
                made[key] = add(init() if so_far is ABSENT else so_far, row)
        except Exception as error:
            raise RecordFailed(self.node, row, walk.at, error) from error

    def advance(self, times: Times) -> Out:
        """The parts of each key, pickled into one field."""
        self.move(times)
        single = len(self.key_indexes) == 1
        rows = [(*((key,) if single else key), pickle.dumps((part,))) for key, part in self.made.items()]
        self.made = {}
        yield "out", Chunk.of(self.node.output().schema, rows)


class CombineAlikeKernel(CombineOwnKernel):
    """The same for records that are nothing but their key: those of a key are all alike.

    Arrow counts them, and each is added at the end of the batch, one key after the other. A step that goes on without
    the records it fails on adds them as they come, so that it knows which one failed.
    """

    arrow = True

    def __init__(self, node: AggregateStep, schema: Schema) -> None:
        super().__init__(node, schema)
        self.make = shape_of(schema).make
        self.counted: Counter[Any] = Counter()
        self.waiting: list[pa.Array] = []
        self.many = 0

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Counts the records."""
        if self.guarded:
            return super().take(chunk, source)
        self.waiting.append(chunk.batch().column(0))
        self.many += len(chunk)
        if self.many > TOGETHER:
            self._count()
        return ()

    def _count(self) -> None:
        keys, times = pa.chunked_array(self.waiting).value_counts().flatten()
        self.counted.update(dict(zip(keys.to_pylist(), times.to_pylist(), strict=True)))
        self.waiting, self.many = [], 0

    def advance(self, times: Times) -> Out:
        """Adds the records, and emits the parts of each key."""
        if self.waiting:
            self._count()
        for key, many in self.counted.items():
            row = self.make((key,))
            for at in range(0, many, GATHERED):
                self.made[key] = self._added(self.made.get(key, ABSENT), [row] * min(GATHERED, many - at))
        self.counted = Counter()
        return super().advance(times)


class CombineReduceKernel(ReduceKernel):
    """The half of a reduce that runs before the shuffle."""

    def open(self, context: Context) -> None:
        """Its state is its own and lives until it is emitted."""
        self.scratch = context.scratch
        super().open(replace(context, state=lambda store: context.scratch()))

    def advance(self, times: Times) -> Out:
        """The folded records, which are forgotten: the other half folds them into what is kept."""
        yield from super().advance(times)
        self.state = self.scratch()


def gathers(own: Aggregator) -> bool:
    """Whether the user says how to add several records."""
    return type(own).add_all is not Aggregator.add_all


def only_key(schema: Schema) -> bool:
    """Whether equal keys mean equal records: one field, of a type in which equal values cannot be distinguished."""
    return len(schema.fields) == 1 and schema.record is None and schema.fields[0].type in (*INTEGERS, STRING, BINARY)


def combine_kernel(node: Combine, schema: Schema) -> Kernel:
    """The kernel of the half before the shuffle; it counts and fails under the combine step's name."""
    made = _kernel(node, schema)(node.of, schema)
    made.node = node
    made.of = node.of
    return made


def _kernel(node: Combine, schema: Schema) -> Callable[[Any, Schema], KeyedKernel]:
    if isinstance(node.of, Reduce):
        return CombineReduceKernel
    alone = len(node.of.aggregates) == 1 and node.of.aggregates[0].own is not None
    if not alone or node.of.aggregates[0].condition is not None:
        return CombineKernel
    alike = only_key(schema) and not node.of.aggregates[0].written
    return CombineAlikeKernel if alike else CombineOwnKernel
