"""The native half of windows for hosts without a JVM: parts by key and pane, or by pieces of sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from penstock.graph.expr import Expr
from penstock.graph.nodes import LATE, Window, WindowParts
from penstock.graph.nodes.window import END, GAP, PANE, RECORD, START
from penstock.graph.schema import Schema
from penstock.graph.times import Times
from penstock.graph.windows import SessionWindow, TimeWindow, gap_expression
from penstock.kernels.base import Kernel, Out
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.keyed.group import PartGroups, grouped
from penstock.kernels.keyed.part_columns import Array, PartColumns
from penstock.kernels.records.arrow import arrow_type
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.stateless import evaluated
from penstock.kernels.windows.window import checked_gap

_BUCKET, _OWN_GAP = "__bucket", "__own_gap"
TimeArray = npt.NDArray[np.int64]


class EventTimes:
    """When records happened, in microseconds: a number for each record, and whether it is known."""

    def __init__(self, of: Window) -> None:
        self.of = of

    def __call__(self, chunk: Chunk, now: int) -> tuple[TimeArray, npt.NDArray[np.bool_]]:
        """The times of a chunk. Windows in processing time take that of the batch."""
        if self.of.time is None:
            return np.full(len(chunk), now, np.int64), np.ones(len(chunk), np.bool_)
        column = chunk.batch().column(self.of.time.column)
        known = np.asarray(column.is_valid())
        times = column.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False) + self.of.time.shift
        return times, known


class PanesGroupKernel(Kernel):
    """Parts by key and pane. Late records are in panes of their own, or have an output where one is read."""

    node: WindowParts
    arrow = True

    def __init__(self, node: WindowParts, schema: Schema, spec: TimeWindow) -> None:
        super().__init__(node)
        self.spec, self.times_of = spec, EventTimes(node.of)
        self.columns = PartColumns(node.of, schema)
        self.groups = PartGroups(node.of, [*node.of.keys, PANE])

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers the parts of records that are not late."""
        times, known = self.times_of(chunk, self.times.now)
        walls = self._walls(times)
        if not self.node.counted:
            late = ~known | (walls < self.spec.late_before(self.times.previous - self.node.of.lateness))
            yield LATE, _some(chunk, self.node.output(LATE).schema, late)
            chunk, walls, known = _some(chunk, chunk.shape.schema, ~late), walls[~late], known[~late]
        panes = walls - (walls - self.spec.offset) % self.spec.pane
        self.groups.add(self.columns.table(chunk).append_column(PANE, pa.array(panes, mask=~known)))

    def _walls(self, times: TimeArray) -> TimeArray:
        """What the clocks of the windows' time zone show."""
        if not self.spec.timezone:
            return times
        each, at = np.unique(times, return_inverse=True)
        return np.array([self.spec.wall(t) for t in each.tolist()], np.int64)[at]

    def advance(self, times: Times) -> Out:
        """The parts of each key and pane."""
        self.move(times)
        yield from grouped(self, self.groups)


class SessionsGroupKernel(Kernel):
    """Parts by key and piece of a session: records so close to each other that they are surely in one."""

    node: WindowParts
    arrow = True

    def __init__(self, node: WindowParts, schema: Schema, spec: SessionWindow) -> None:
        super().__init__(node)
        self.times_of, self.gaps_of = EventTimes(node.of), _gaps_of(node, schema, spec)
        self.columns = PartColumns(node.of, schema)
        by = [*node.of.keys, _BUCKET, _OWN_GAP]
        self.groups = PartGroups(node.of, by, {START: "least", END: "greatest"})

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """Gathers the parts of records."""
        times, known = self.times_of(chunk, self.times.now)
        gaps = self.gaps_of(chunk)
        rows = self.columns.table(chunk)
        if self.node.by_record:
            yield from self._each(chunk, rows, _masked(times, known), _masked(times + gaps, known))
            return
        made = {_BUCKET: times - times % gaps, _OWN_GAP: gaps, START: times, END: times + gaps}
        for name, values in made.items():
            rows = rows.append_column(name, _masked(values, known))
        self.groups.add(rows)

    def _each(self, chunk: Chunk, rows: pa.Table, start: Array, end: Array) -> Out:
        """A piece for each record, with the record."""
        schema = self.node.output().schema
        kind = arrow_type(schema.field(RECORD).type)
        batch = chunk.batch()
        record = pa.StructArray.from_arrays([batch.column(f.name).cast(f.type) for f in kind], fields=list(kind))
        made = rows.append_column(START, start).append_column(END, end).append_column(RECORD, record)
        for part in made.select(list(schema.names)).combine_chunks().to_batches():
            yield "out", Chunk(schema, batch=part)

    def advance(self, times: Times) -> Out:
        """The parts of each key and piece."""
        self.move(times)
        yield from grouped(self, self.groups)


def window_group_kernel(node: WindowParts, schema: Schema) -> Kernel:
    """The kernel of the native half of a window step."""
    if isinstance(node.of.spec, TimeWindow):
        return PanesGroupKernel(node, schema, node.of.spec)
    assert isinstance(node.of.spec, SessionWindow)
    return SessionsGroupKernel(node, schema, node.of.spec)


def _masked(values: TimeArray, known: npt.NDArray[np.bool_]) -> Array:
    return pa.array(values, pa.int64(), mask=~known)


def _some(chunk: Chunk, schema: Schema, flags: npt.NDArray[np.bool_]) -> Chunk:
    return Chunk(schema, batch=chunk.batch().filter(pa.array(flags)))


def _gaps_of(node: WindowParts, schema: Schema, spec: SessionWindow) -> Callable[[Chunk], TimeArray]:
    """The gap after each record, in microseconds."""
    gap = spec.gap
    if isinstance(gap, int):
        return lambda chunk: np.full(len(chunk), gap, np.int64)
    if isinstance(gap, Expr):
        made = compile_expr(gap_expression(gap), schema)
        return lambda chunk: _evaluated(node, lambda values: checked_gap(made(values)), chunk)
    return lambda chunk: chunk.batch().column(GAP).to_numpy(zero_copy_only=False)


def _evaluated(node: WindowParts, make: Callable[[Any], int], chunk: Chunk) -> TimeArray:
    return np.array(evaluated(node.of, make, list(chunk.values())), np.int64)
