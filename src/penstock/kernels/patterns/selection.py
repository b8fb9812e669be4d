"""What a match looks like: its fields, computed by columns where they can be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import IntArray
from penstock.graph.expr import Column, columns_of
from penstock.graph.nodes.base import ALL
from penstock.graph.nodes.patterns.match import TIMED_OUT_AT, Match
from penstock.graph.patterns.conditions import Look, Navigation, NavigationExpr, navigated
from penstock.graph.schema import Schema
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.patterns.looks import position_of, reader_of, simple_field
from penstock.kernels.patterns.walk import RunEvents, events_of
from penstock.kernels.records.arrow import arrow_schema, arrow_type

_MOMENT = pa.timestamp("us", tz="UTC")


@dataclass
class Events:
    """The events of a pass, by number: the fields that are looked at, and the times."""

    table: pa.Table
    times: list[int]
    schema: Schema
    """The fields of an event; those that nobody looks at are not in the table."""

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        """The values of each event, null where a field is not kept."""
        nothing = [None] * self.table.num_rows
        known = set(self.table.schema.names)
        columns = [self.table.column(n).to_pylist() if n in known else nothing for n in self.schema.names]
        return list(zip(*columns, strict=True)) if columns else [()] * self.table.num_rows


class MatchEvents:
    """What several matches have taken."""

    def __init__(self, found: Sequence[RunEvents], stages: tuple[str, ...]) -> None:
        self.lists = [events_of(each.taken) for each in found]
        self.at = [each.at for each in found]
        self.stages = stages

    def __len__(self) -> int:
        return len(self.at)

    @cached_property
    def last(self) -> IntArray:
        """The last event of each."""
        return np.array([each[-1][1] for each in self.lists], np.int64)

    @cached_property
    def first(self) -> IntArray:
        """The first event of each."""
        return np.array([each[0][1] for each in self.lists], np.int64)

    def found(self, look: Navigation) -> pa.Array:
        """The event that a look finds in each, by number."""
        if look.variable in self.stages and not look.offset and not look.step:
            return pa.array(self._ends(self.stages.index(look.variable), look.look is Look.LAST), pa.int64())
        position = position_of(look, self.stages, ahead=False)
        return pa.array([each[at][1] if (at := position(each)) >= 0 else None for each in self.lists], pa.int64())

    def _ends(self, stage: int, last: bool) -> list[int | None]:
        """The first or last event of a stage in each."""
        if last:
            return [next((at for mine, at in reversed(each) if mine == stage), None) for each in self.lists]
        return [next((at for mine, at in each if mine == stage), None) for each in self.lists]


class ChainEvents(MatchEvents):
    """What the runs of a plain sequence have taken, as a table of events by stage."""

    def __init__(self, paths: IntArray, at: list[int], stages: tuple[str, ...]) -> None:
        self.paths, self.at, self.stages = paths, at, stages

    def __len__(self) -> int:
        return len(self.paths)

    @cached_property
    def lists(self) -> list[list[tuple[int, int]]]:  # type: ignore[override]  # made when it is asked for
        """The events of each, with their stages."""
        return [[(stage, at) for stage, at in enumerate(path) if at >= 0] for path in self.paths.tolist()]

    @cached_property
    def last(self) -> IntArray:
        """The last event of each: runs take in the order of the stages, and numbers rise."""
        last: IntArray = self.paths.max(axis=1)
        return last

    @cached_property
    def first(self) -> IntArray:
        """The first event of each."""
        first: IntArray = self.paths[:, 0]
        return first

    def found(self, look: Navigation) -> pa.Array:
        """The event that a look finds in each: a stage has one at most."""
        if look.variable not in self.stages or look.step:
            return super().found(look)
        places = self.paths[:, self.stages.index(look.variable)]
        return pa.array(places, pa.int64(), mask=(places < 0) | bool(look.offset))


class Selection:
    """The fields of the matches of a step."""

    def __init__(self, node: Match, event: Schema) -> None:
        self.node, self.event, self.stages = node, event, node.pattern.stages
        items = node.select or ()
        self.items = [(name, navigated(written, event, self.stages)) for name, written in items]

    def batch(self, taken: MatchEvents, events: Events, schema: Schema) -> pa.RecordBatch:
        """Matches as records of a schema, which ends with the time at which time was up if it has that."""
        arrays = self._default(taken, events) if self.node.select is None else self._selected(taken, events)
        if TIMED_OUT_AT in schema:
            arrays.append(pa.array(taken.at, pa.int64()).cast(_MOMENT))
        wanted = arrow_schema(schema)
        cast = [
            array if array.type == field.type else array.cast(field.type)
            for array, field in zip(arrays, wanted, strict=True)
        ]
        return pa.RecordBatch.from_arrays(cast, schema=wanted)

    def _default(self, taken: MatchEvents, events: Events) -> list[Any]:
        """The key, from when to when, and the events of each stage."""
        keys = [_at(events.table, key, taken.last) for key in self.node.keys if key != ALL]
        times = np.array(events.times)
        bounds = [pa.array(times[at]).cast(_MOMENT) for at in (taken.first, taken.last)]
        records = pa.StructArray.from_arrays(
            [_one(events.table.column(n)) for n in self.event.names], fields=list(arrow_schema(self.event))
        )
        return [*keys, *bounds, *(_lists(taken, stage, records) for stage in range(len(self.stages)))]

    def _selected(self, taken: MatchEvents, events: Events) -> list[Any]:
        made = []
        for _, item in self.items:
            columns = [self._look(look, taken, events) for look in item.inputs]
            made.append(self._item(item, columns, taken, events))
        return made

    def _look(self, look: Navigation, taken: MatchEvents, events: Events) -> Any:
        """The column of a look."""
        field = simple_field(look)
        if field:
            return _one(events.table.column(field)).take(taken.found(look))
        read = reader_of(look, self.event, self.stages, ahead=False)
        rows = events.rows if look.value is not None or _reads(look) else ()
        return pa.array([read(each, rows) for each in taken.lists], arrow_type(look.type))

    def _item(self, item: NavigationExpr, looks: list[Any], taken: MatchEvents, events: Events) -> Any:
        """The column of a field, over the fields of the last event and what it looks at."""
        if isinstance(item.expr, Column):
            at = item.schema.names.index(item.expr.name) - len(self.event.names)
            return looks[at] if at >= 0 else _at(events.table, item.expr.name, taken.last)
        names = [n for n in self.event.names if n in columns_of(item.expr)]
        columns = {n: _at(events.table, n, taken.last).to_pylist() for n in names}
        nothing = [None] * len(taken)
        own = [columns.get(n, nothing) for n in self.event.names]
        run: Callable[[Any], Any] = compile_expr(item.expr, item.schema)
        rows = zip(*own, *(column.to_pylist() for column in looks), strict=True)
        return pa.array([run(row) for row in rows], arrow_type(item.type))


def _reads(look: Navigation) -> bool:
    return look.aggregate is not None and bool(look.aggregate.arguments)


def _one(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    if isinstance(column, pa.ChunkedArray):
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    return column


def _at(table: pa.Table, name: str, at: IntArray) -> pa.Array:
    return _one(table.column(name)).take(pa.array(at))


def _lists(taken: MatchEvents, stage: int, records: pa.StructArray) -> pa.Array:
    """The events of one stage in each match, as lists."""
    flat: list[int] = []
    offsets = [0]
    for each in taken.lists:
        flat += [at for mine, at in each if mine == stage]
        offsets.append(len(flat))
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), records.take(pa.array(flat, pa.int64())))
