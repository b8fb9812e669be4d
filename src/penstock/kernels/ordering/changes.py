"""Kernels of tables that change: their changes as records, a table from changes, and aggregates over changes."""

from __future__ import annotations

import decimal
from typing import Any

import pyarrow as pa

from penstock.graph.nodes import AsTable, Changelog, Net
from penstock.graph.nodes.ordering import AFTER, BEFORE, DELETE, INSERT, OP
from penstock.graph.state.layout import Column, Layout
from penstock.graph.times import Times
from penstock.kernels.base import Kernel, Out, RecordFailed
from penstock.kernels.keyed.aggregates import begins, finish
from penstock.kernels.keyed.keyed import Key, KeyedKernel, key_getter
from penstock.kernels.ordering.ranking import Values, same
from penstock.kernels.records.arrow import arrow_type
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.records.records import BadRecord

_EXACT = decimal.Context(prec=76)


class ChangelogKernel(KeyedKernel):
    """What happened to the row of each key."""

    node: Changelog

    def __init__(self, node: Any, schema: Any) -> None:
        super().__init__(node, schema)
        self.removed = schema.names.index(node.removed) if node.removed else None

    def layout(self) -> Layout:
        """The fields of the row."""
        fields = self.node.output().schema.fields[1:]
        return Layout(self.key_columns, tuple(Column(f.name, arrow_type(f.type)) for f in fields))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The changes that these rows are."""
        made: list[Values] = []
        for key, values in zip(self.keys(chunk), chunk.values(), strict=True):
            row, gone = self._row(values)
            before = self.state.get(key)
            if gone:
                self._delete(key, before, made)
            elif not same(before, row):
                self._put(key, before, row, made)
        if made:
            yield "out", Chunk.of(self.node.output().schema, made)

    def _row(self, values: Values) -> tuple[Values, bool]:
        at = self.removed
        return (values, False) if at is None else ((*values[:at], *values[at + 1 :]), bool(values[at]))

    def _delete(self, key: Key, before: Values | None, made: list[Values]) -> None:
        if before is not None:
            made.append((DELETE, *before))
            self.state.delete(key)

    def _put(self, key: Key, before: Values | None, row: Values, made: list[Values]) -> None:
        if before is not None and self.node.before:
            made.append((BEFORE, *before))
        made.append((INSERT if before is None else AFTER, *row))
        self.state.put(key, row)


class AsTableKernel(Kernel):
    """The last change of each key, once a batch."""

    node: AsTable

    def __init__(self, node: Any, schema: Any) -> None:
        super().__init__(node)
        self.key_of = key_getter(schema.names, node.keys)
        self.op = schema.names.index(node.op)
        self.last: dict[Key, Values] = {}

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Notes the changes; old rows say nothing."""
        for at, values in enumerate(chunk.values()):
            op = values[self.op]
            if op not in (INSERT, BEFORE, AFTER, DELETE):
                wrong = BadRecord(f"{self.node.op} is insert, update_before, update_after or delete, got {op!r}", at)
                raise RecordFailed(self.node, chunk.rows()[at], at, wrong)
            if op != BEFORE:
                row = (*values[: self.op], *values[self.op + 1 :], op == DELETE)
                self.last[self.key_of(values)] = row
        return ()

    def advance(self, times: Times) -> Out:
        """The rows that changed."""
        self.move(times)
        made, self.last = list(self.last.values()), {}
        if made:
            yield "out", Chunk.of(self.node.output().schema, made)


class NetKernel(KeyedKernel):
    """Sums and counts over changes. Of a key it keeps the number of rows, and of each part the sum and how many went into it."""

    node: Net

    def __init__(self, node: Any, schema: Any) -> None:
        super().__init__(node, schema)
        self.op = schema.names.index(OP)
        self.begins = [b for a in node.aggregates for b in begins(a, schema)]
        self.counts = [p.begin in ("known", "true") for a in node.aggregates for p in a.recipe.parts]
        self.before: dict[Key, bool] = {}

    def layout(self) -> Layout:
        """The number of rows, and the parts as one object."""
        return Layout(self.key_columns, (Column("rows", pa.int64()), Column("parts")))

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Adds what is new and takes back what is old."""
        empty = (0, [(0, 0)] * len(self.begins))
        rows = chunk.rows()
        for at, (key, values) in enumerate(zip(self.keys(chunk), chunk.values(), strict=True)):
            kept = self.state.get(key)
            self.before.setdefault(key, kept is not None)
            sign = 1 if values[self.op] in (INSERT, AFTER) else -1
            many, parts = kept or empty
            given = [begin(values, rows[at]) for begin in self.begins]
            self.state.put(key, (many + sign, [_added(p, v, sign) for p, v in zip(parts, given, strict=True)]))
        return ()

    def advance(self, times: Times) -> Out:
        """The keys that changed; those without rows are removed."""
        self.move(times)
        made: list[Values] = []
        for key, known in self.before.items():
            many, parts = self.state.get(key)
            if many:
                made.append(self._row(key, parts, removed=False))
                continue
            self.state.delete(key)
            if known:
                made.append(self._row(key, parts, removed=True))
        self.before = {}
        if made:
            yield "out", Chunk.of(self.node.output().schema, made)

    def _row(self, key: Key, parts: list[Any], *, removed: bool) -> Values:
        made, at = [*key], 0
        totals = [t if many or count else None for (t, many), count in zip(parts, self.counts, strict=True)]
        for aggregate in self.node.aggregates:
            width = len(aggregate.recipe.parts)
            made.append(finish(aggregate, tuple(totals[at : at + width])))
            at += width
        return (*made, removed)


def _added(part: tuple[Any, int], value: Any, sign: int) -> tuple[Any, int]:
    """A sum with one more value, or one less, and how many values are in it; null is nothing."""
    if value is None:
        return part
    total, many = part
    if isinstance(value, decimal.Decimal):
        move = _EXACT.add if sign > 0 else _EXACT.subtract
        return move(decimal.Decimal(total), value), many + sign
    return total + value * sign, many + sign
