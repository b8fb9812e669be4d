"""Kernels that fold the records of a key: two of them into one, or each into a running value."""

from __future__ import annotations

import copy
from typing import Any

from penstock.graph.nodes import Fold, Reduce
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.kernels.base import Context, Out, RecordFailed
from penstock.kernels.keyed.keyed import Key, RunningTotals
from penstock.kernels.records.arrow import arrow_type
from penstock.kernels.records.chunk import Chunk, shape_of


class ReduceKernel(RunningTotals):
    """A function of two records."""

    node: Reduce
    of: Reduce

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Folds the records into what is kept; nothing comes out before the barrier."""
        for at, (row, key) in enumerate(zip(chunk.values(), self.keys(chunk), strict=True)):
            try:
                self.fold(key, row)
            except Exception as error:
                raise RecordFailed(self.node, chunk.rows()[at], at, error) from error
        return ()

    def together(self, kept: tuple[Any, ...], part: tuple[Any, ...]) -> tuple[Any, ...]:
        """The function's record, as plain values."""
        shape = self.shape
        made = shape.values(self.of.function(shape.make(kept), shape.make(part)))
        values = tuple(c[0] for c in shape.checked([[v] for v in made]))
        if self.key_of(values) != self.key_of(kept):
            raise ValueError(f"reduce must keep the key fields ({', '.join(self.of.keys)}) as they are, got {made!r}")
        return values

    def open(self, context: Context) -> None:
        """Finds the shape of the records."""
        super().open(context)
        self.shape = Chunk(self.node.output().schema, rows=[]).shape

    def layout(self) -> Layout:
        """The fields of the record."""
        fields = self.node.output().schema.fields
        return Layout(self.key_columns, tuple(Column(f.name, arrow_type(f.type)) for f in fields))

    def record(self, key: Key, kept: tuple[Any, ...]) -> tuple[Any, ...]:
        """The folded record."""
        return kept


class FoldKernel(RunningTotals):
    """A function of what stands and of a record."""

    node: Fold

    def __init__(self, node: Fold, schema: Schema) -> None:
        super().__init__(node, schema)
        fields = node.output().schema.fields[len(node.keys) :]
        self.shape = shape_of(Schema(fields))

    def layout(self) -> Layout:
        """The fields of the value."""
        fields = self.shape.schema.fields
        return Layout(self.key_columns, tuple(Column(f.name, arrow_type(f.type)) for f in fields))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Takes the records into what stands; nothing comes out before the barrier."""
        walk = chunk.walk()
        row: Any = None
        try:
            for row, key in zip(walk, self.keys(chunk), strict=True):
                kept = self.state.get(key)
                self.state.put(key, self.next(kept, row))
                self.touched[key] = None
        except Exception as error:
            raise RecordFailed(self.node, row, walk.at, error) from error
        return ()

    def next(self, kept: tuple[Any, ...] | None, row: object) -> tuple[Any, ...]:
        """The next value, as a tuple of its fields."""
        if kept is None:
            so_far = copy.deepcopy(self.node.init)
        else:
            so_far = kept[0] if self.shape.single else self.shape.make(kept)
        given = self.node.function(so_far, row)
        made = (given,) if self.shape.single and not isinstance(given, tuple | dict) else self.shape.values(given)
        return tuple(c[0] for c in self.shape.checked([[v] for v in made]))

    def record(self, key: Key, kept: tuple[Any, ...]) -> tuple[Any, ...]:
        """The key and the value."""
        return (*key, *kept)
