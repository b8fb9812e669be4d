"""The measures of matches: walks the rows of each match once, notes which rows they look at, and computes their values by column."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph.arrays import BoolArray
from penstock.graph.expr import columns_of
from penstock.graph.nodes import Node
from penstock.graph.patterns.conditions import NavigationExpr
from penstock.graph.patterns.row_pattern import RowExpressions
from penstock.graph.schema import Schema
from penstock.kernels.base import RecordFailed
from penstock.kernels.patterns.rows.outcome import RowLabel
from penstock.kernels.patterns.rows.trackers import AggregateTracker, RowTracker, Tracker, tracker_of
from penstock.kernels.patterns.rows.values import ColumnMaker, RowValues, batch_of, column_maker
from penstock.kernels.records.arrow import arrow_type

NO_ROW = -1
"""Stands for a row where there is none."""


@dataclass(frozen=True, slots=True)
class Match:
    """A match: where it starts, the variable of each of its rows (none for an empty one), its number, and the rows of its key."""

    start: int
    labels: tuple[RowLabel, ...]
    number: int
    first: int
    after: int

    def label(self, row: int) -> str | None:
        """The variable of a row; None where it is not in the match."""
        at = row - self.start
        return self.labels[at][0] if 0 <= at < len(self.labels) else None


@dataclass
class LookColumn:
    """The values of one look for all rows of the output: numbers of rows, or the values themselves."""

    tracker: Tracker
    rows: list[int] = field(default_factory=list)
    values: list[Any] = field(default_factory=list)

    def add(self, kept: Any, match: Match, rows: RowValues) -> None:
        """The value after some rows of a match."""
        tracker = self.tracker
        if isinstance(tracker, RowTracker):
            if tracker.column:
                self.rows.append(tracker.row(kept, match.first, match.after))
            else:
                self.values.append(tracker.value(kept, rows, match.first, match.after, match))
        else:
            self.values.append(tracker.value(kept) if isinstance(tracker, AggregateTracker) else match.number)

    def add_nothing(self) -> None:
        """A row of the output that is of no match."""
        if isinstance(self.tracker, RowTracker) and self.tracker.column:
            self.rows.append(NO_ROW)
        else:
            self.values.append(None)

    def column(self, batch: pa.RecordBatch) -> pa.Array:
        """All values."""
        if isinstance(self.tracker, RowTracker) and self.tracker.column:
            return taken(batch.column(self.tracker.column), self.rows)
        return pa.array(self.values, arrow_type(self.tracker.look.type))


def taken(column: pa.Array, rows: list[int]) -> pa.Array:
    """The values of some rows; null for `NO_ROW`."""
    at = np.array(rows, np.int64)
    return column.take(pa.array(at, mask=at < 0))


class Measures:
    """The measures of a step.

    Args:
        node: the step, which errors name.
        expressions: the measures.
        schema: the fields of the rows.
    """

    def __init__(self, node: Node, expressions: RowExpressions, schema: Schema) -> None:
        self.node = node
        self.names = [name for name, _ in expressions.measures]
        self.made: list[tuple[NavigationExpr, list[int], ColumnMaker]] = []
        self.trackers: list[Tracker] = []
        for _, made in expressions.measures:
            slots = [self._slot(tracker_of(look, expressions.pattern, schema)) for look in made.inputs]
            self.made.append((made, slots, column_maker(node, made.expr, made.schema)))
        self.final = [bool(each.look.final) for each in self.trackers]
        self.changes = {
            name: [(at, each) for at, each in enumerate(self.trackers) if name in each.members]
            for name in expressions.pattern.variables
        }

    def _slot(self, tracker: Tracker) -> int:
        self.trackers.append(tracker)
        return len(self.trackers) - 1

    def output(self, batch: pa.RecordBatch, rows: RowValues) -> Output:
        """A place for the rows of the output that are made of a batch."""
        return Output(self, batch, rows)


class Output:
    """The rows of an output under way: for each the row it stands for, and what the measures look at."""

    def __init__(self, measures: Measures, batch: pa.RecordBatch, rows: RowValues) -> None:
        self.measures, self.batch, self.rows = measures, batch, rows
        self.current: list[int] = []
        self.source: list[int] = []
        """For each row of the output the row whose fields it has."""
        self.unmatched: list[int] = []
        self.columns = [LookColumn(each) for each in measures.trackers]

    def __len__(self) -> int:
        return len(self.source)

    def add_unmatched(self, row: int) -> None:
        """A row that is in no match: its measures are null."""
        self.unmatched.append(len(self.source))
        self._add(row, NO_ROW)
        for column in self.columns:
            column.add_nothing()

    def add_one(self, match: Match) -> None:
        """One row for a match, as its last row sees it."""
        self.rows.number = match.number
        kept = [each.begin() for each in self.measures.trackers]
        for at, (label, _) in enumerate(match.labels, match.start):
            self._take(kept, at, label)
        self._add(match.start, match.start + len(match.labels) - 1 if match.labels else NO_ROW)
        for column, state in zip(self.columns, kept, strict=True):
            column.add(state, match, self.rows)

    def add_all(self, match: Match) -> None:
        """A row for each row of a match that is not left out, as that row sees it."""
        if not match.labels:
            self.add_one(match)
            return
        self.rows.number = match.number
        kept = [each.begin() for each in self.measures.trackers]
        shown: list[list[Any]] = []
        for at, (label, hidden) in enumerate(match.labels, match.start):
            self._take(kept, at, label)
            if not hidden:
                self._add(at, at)
                shown.append(list(kept))
        for slot, column in enumerate(self.columns):
            for state in shown:
                column.add(kept[slot] if self.measures.final[slot] else state[slot], match, self.rows)

    def _add(self, source: int, current: int) -> None:
        self.source.append(source)
        self.current.append(current)

    def _take(self, kept: list[Any], row: int, label: str) -> None:
        try:
            for slot, tracker in self.measures.changes[label]:
                kept[slot] = tracker.take(kept[slot], row, label, self.rows)
        except Exception as error:
            raise RecordFailed(self.measures.node, self.rows[row], None, error) from error

    def fields(self, names: Iterable[str]) -> list[pa.Array]:
        """Fields of the rows that the output has them of."""
        return [taken(self.batch.column(name), self.source) for name in names]

    def values(self) -> list[pa.Array]:
        """A column for each measure."""
        looks = [column.column(self.batch) for column in self.columns]
        matched = self._matched()
        made = [self._measure(*each, looks) for each in self.measures.made]
        return made if matched is None else [pc.if_else(pa.array(matched), each, None) for each in made]

    def _matched(self) -> BoolArray | None:
        if not self.unmatched:
            return None
        made = np.ones(len(self), bool)
        made[self.unmatched] = False
        return made

    def _measure(self, made: NavigationExpr, slots: list[int], maker: ColumnMaker, looks: list[pa.Array]) -> pa.Array:
        """A measure over the current row of each output row and what it looks at."""
        names = made.schema.names
        own = names[: len(names) - len(slots)]
        used = columns_of(made.expr)
        columns = {name: taken(self.batch.column(name), self.current) for name in own if name in used}
        columns |= {name: looks[slot] for name, slot in zip(names[len(own) :], slots, strict=True)}
        return maker(batch_of(columns, len(self)))
