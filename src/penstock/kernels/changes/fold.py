"""The kernel of reduce and fold over a table that changes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import reduce
from typing import Any

from penstock.graph.nodes import Reduce
from penstock.graph.nodes.changes import FoldChanges, visible
from penstock.graph.schema import Schema
from penstock.graph.state.layout import Column, Layout
from penstock.kernels.base import RecordFailed
from penstock.kernels.changes.bags import bag_columns, bag_of, checkpoint_content_of
from penstock.kernels.changes.base import Signed
from penstock.kernels.changes.rows import Bag, Row
from penstock.kernels.changes.top import KeptRowsKernel
from penstock.kernels.keyed.keyed import Key
from penstock.kernels.keyed.reduce import FoldKernel, ReduceKernel
from penstock.kernels.ordering.order import in_order
from penstock.kernels.ordering.ranking import same
from penstock.kernels.records.arrow import arrow_type
from penstock.kernels.records.chunk import shape_of


class FoldChangesKernel(KeptRowsKernel):
    """Keeps the rows of a key and what the function made of them; when a row goes, the rest is folded anew, in the order of its values."""

    node: FoldChanges

    def __init__(self, node: FoldChanges, schema: Schema) -> None:
        super().__init__(node, schema)
        self.result = visible(node.output().schema)
        of = replace(node.of, outputs=(replace(node.output(), schema=self.result),))
        self.only_adds = isinstance(of, Reduce)
        self.inner = ReduceKernel(of, self.visible) if isinstance(of, Reduce) else FoldKernel(of, self.visible)
        self.inner.shape = self.inner.shape if isinstance(self.inner, FoldKernel) else shape_of(self.result)
        self.make = shape_of(self.visible).make

    def layout(self) -> Layout:
        """The rows of a key, then the result."""
        result = (Column(f"result.{f.name}", arrow_type(f.type)) for f in self.result.fields)
        return Layout(self.key_columns, (*bag_columns("row.", self.visible), *result))

    def _changes(self, key: Key, new: Bag) -> Iterable[Signed]:
        kept = self.state.get(key)
        rows = bag_of(None if kept is None else kept[: self.width + 1], self.identity)
        before = None if kept is None else kept[self.width + 1 :]
        rows.update(new)
        self.check(key, rows)
        if not len(rows):
            self.state.delete(key)
            return [] if before is None else [(before, -1)]
        grows = self.only_adds and before is not None and all(count > 0 for _, count in new)
        after = self._folded(key, new, before) if grows else self._folded(key, rows, None)
        self.state.put(key, (*checkpoint_content_of(rows, self.width), *after))
        if same(before, after):
            return []
        return [*([(before, -1)] if before is not None else []), (after, 1)]

    def _folded(self, key: Key, rows: Bag, so_far: Row | None) -> Row:
        every = in_order((row for row, count in rows for _ in range(count)), (), self.visible.names)
        if isinstance(self.inner, FoldKernel):
            kept: Any = reduce(self._next, every, None)
            return self.inner.record(key, kept)
        return reduce(self._together, every if so_far is None else [so_far, *every])

    def _together(self, one: Row, other: Row) -> Row:
        assert isinstance(self.inner, ReduceKernel)
        try:
            return self.inner.together(one, other)
        except Exception as error:
            raise RecordFailed(self.node, self.make(other), None, error) from error

    def _next(self, kept: Any, row: Row) -> Any:
        assert isinstance(self.inner, FoldKernel)
        try:
            return self.inner.next(kept, self.make(row))
        except Exception as error:
            raise RecordFailed(self.node, self.make(row), None, error) from error
