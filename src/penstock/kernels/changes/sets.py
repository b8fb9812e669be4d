"""The kernel of set operations: how often each row is there, in one input or in two."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pyarrow as pa

from penstock.graph.graph import Graph
from penstock.graph.nodes.relational.sets import DISTINCT, EXCEPT, SetOperation
from penstock.graph.state.layout import Column, Layout
from penstock.graph.times import Times
from penstock.kernels.base import Out
from penstock.kernels.changes.bags import bag_columns, bag_of, checkpoint_content_of
from penstock.kernels.changes.base import ChangesKernel, Signed, negative, signed_rows
from penstock.kernels.changes.rows import Bag, NegativeCount
from penstock.kernels.keyed.keyed import Key, key_getter, prefetch
from penstock.kernels.records.chunk import Chunk

Counted = Callable[[int, int], int]
"""From how often a row is there on both sides to how often it is in the result."""


def counting(node: SetOperation) -> Counted:
    """How often a row is in the result."""
    if node.operation == DISTINCT:
        return lambda one, other: int(one > 0)
    if node.operation == EXCEPT:
        return (lambda one, other: max(one - other, 0)) if node.every else (lambda one, other: int(one > 0 >= other))
    return min if node.every else (lambda one, other: int(one > 0 and other > 0))


class SetKernel(ChangesKernel):
    """Of the rows with the same plain fields it keeps how often each is there, on each side."""

    node: SetOperation

    def __init__(self, node: SetOperation, graph: Graph) -> None:
        schemas = [graph.output(port).schema for port in node.inputs]
        super().__init__(node, schemas[0])
        self.count = counting(node)
        self.width = len(self.visible.fields)
        self.key_at = key_getter(self.visible.names, node.keys)
        self.key_columns = self.key_columns or (Column("all", pa.int64()),)
        self.new: list[dict[Key, Bag]] = [{} for _ in schemas]

    def layout(self) -> Layout:
        """The rows of each side."""
        sides = ("left.", "right.")[: len(self.new)]
        return Layout(self.key_columns, tuple(column for side in sides for column in bag_columns(side, self.visible)))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers what comes and goes."""
        rows = list(signed_rows(chunk))
        keys = [self.key_at(row) or (0,) for row, _ in rows]
        prefetch(self.state, keys, chunk.key_hashes, self.key_columns)
        for key, (row, count) in zip(keys, rows, strict=True):
            self.new[source].setdefault(key, Bag(self.identity)).add(row, count)
        return ()

    def advance(self, times: Times) -> Out:
        """The rows that are there more often or less often than before."""
        self.move(times)
        touched = dict.fromkeys(key for side in self.new for key, bag in side.items() if len(bag))
        made = [change for key in touched for change in self._changes(key)]
        self.new = [{} for _ in self.new]
        yield from self.emit(made)

    def _changes(self, key: Key) -> Iterable[Signed]:
        kept, width = self.state.get(key), self.width + 1
        before = [
            bag_of(None if kept is None else kept[at * width : (at + 1) * width], self.identity)
            for at in range(len(self.new))
        ]
        after = [bag.copy() for bag in before]
        rows = Bag(self.identity)
        for bag, new in zip(after, self.new, strict=True):
            changes = new.get(key, ())
            bag.update(changes)
            rows.update((row, 1) for row, _ in changes)
            self._check(key, bag)
        self._keep(key, after)
        made = ((row, self._times(row, after) - self._times(row, before)) for row, _ in rows)
        return sorted((change for change in made if change[1]), key=lambda change: change[1])

    def _times(self, row: tuple[object, ...], sides: list[Bag]) -> int:
        return self.count(sides[0].count(row), sides[1].count(row) if len(sides) > 1 else 0)

    def _check(self, key: Key, rows: Bag) -> None:
        try:
            rows.check("the rows of a side")
        except NegativeCount as error:
            raise negative(self, key, error) from error

    def _keep(self, key: Key, after: list[Bag]) -> None:
        if any(map(len, after)):
            self.state.put(key, tuple(part for bag in after for part in checkpoint_content_of(bag, self.width)))
        else:
            self.state.delete(key)
