"""What a look of an expression keeps while rows are matched one after the other, so that no row is looked at twice.

What is kept is never changed in place: the threads of a search share what they have in common.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from penstock.graph.aggregates.aggregate import Aggregate
from penstock.graph.expr import Column
from penstock.graph.patterns.conditions import CLASSIFIER, Look, Navigation, argument_schema, value_schema
from penstock.graph.patterns.row_pattern import RowPattern, reads_classifier
from penstock.graph.schema import Schema
from penstock.kernels.keyed.aggregates import begins, finish, merges
from penstock.kernels.patterns.rows.values import RowExpression, RowValues

Entry = tuple[int, str]
"""A row that was matched, by its number, and its variable; the variable is empty where no one asks for it."""
_NOTHING: dict[str, Callable[[], Any]] = {
    "known": int,
    "true": int,
    "list": list,
    "doubles": list,
    "pairs": list,
}
"""What stands before the first row, by what a row makes of a part; else nothing."""


class Labels(Protocol):
    """The variables of the rows of a match, by the number of the row."""

    def label(self, row: int) -> str | None:
        """The variable of a row; None where it is not in the match."""


class Tracker:
    """The base: one look of an expression."""

    def __init__(self, look: Navigation, members: frozenset[str]) -> None:
        self.look, self.members = look, members

    def begin(self) -> Any:
        """What is kept before the first row."""
        return ()

    def take(self, kept: Any, row: int, label: str, rows: RowValues) -> Any:
        """What is kept after one more row, which is of one of the members."""
        raise NotImplementedError


class RowTracker(Tracker):
    """The base of looks that find a row."""

    def __init__(self, look: Navigation, members: frozenset[str], schema: Schema) -> None:
        super().__init__(look, members)
        assert look.value is not None
        self.offset, self.step = look.offset, look.step
        self.labelled = reads_classifier(look)
        self.column = look.value.name if isinstance(look.value, Column) and look.value.name != CLASSIFIER else ""
        self.expression = RowExpression(look.value, value_schema(schema), schema.names)

    def entry(self, row: int, label: str) -> Entry:
        """A row as it is kept."""
        return (row, label if self.labelled else "")

    def found(self, kept: tuple[Entry, ...]) -> Entry | None:
        """The row that the look is at, before its step."""
        raise NotImplementedError

    def row(self, kept: tuple[Entry, ...], first: int, after: int) -> int:
        """The number of the row that the look finds among those of the key; -1 where there is none."""
        found = self.found(kept)
        at = -1 if found is None else found[0] + self.step
        return at if first <= at < after else -1

    def value(self, kept: tuple[Entry, ...], rows: RowValues, first: int, after: int, labels: Labels) -> object:
        """The value at that row; None where there is none."""
        at = self.row(kept, first, after)
        if at < 0:
            return None
        if self.column:
            return rows.column(self.column)[at]
        return self.expression.value(rows, at, labels.label(at) if self.labelled else None)


class FirstTracker(RowTracker):
    """The first rows of a variable."""

    def take(self, kept: tuple[Entry, ...], row: int, label: str, rows: RowValues) -> tuple[Entry, ...]:
        """The first few rows are kept."""
        return kept if len(kept) > self.offset else (*kept, self.entry(row, label))

    def found(self, kept: tuple[Entry, ...]) -> Entry | None:
        """So many rows after the first."""
        return kept[self.offset] if len(kept) > self.offset else None


class LastTracker(RowTracker):
    """The last rows of a variable."""

    def take(self, kept: tuple[Entry, ...], row: int, label: str, rows: RowValues) -> tuple[Entry, ...]:
        """The last few rows are kept."""
        if not self.offset:
            return (self.entry(row, label),)
        return (*kept[max(0, len(kept) - self.offset) :], self.entry(row, label))

    def found(self, kept: tuple[Entry, ...]) -> Entry | None:
        """So many rows before the last."""
        return kept[0] if len(kept) > self.offset else None


class AggregateTracker(Tracker):
    """An aggregate over the rows of a variable."""

    def __init__(self, look: Navigation, members: frozenset[str], schema: Schema) -> None:
        super().__init__(look, members)
        assert look.aggregate is not None
        self.aggregate: Aggregate = look.aggregate
        reads = self.aggregate.reads
        self.names = [name for name in schema.names if name in reads]
        self.begins = begins(self.aggregate, _narrowed(self.names, schema))
        self.merges = [_joined] if self.aggregate.call == "collect_list" else merges(self.aggregate)
        self.reads = bool(self.aggregate.arguments)
        self.parts = self.aggregate.recipe.parts

    @property
    def is_plain(self) -> bool:
        """Whether its parts can be compared as they are: no lists, and no values made of others."""
        return all(part.begin in ("value", "known", "true", "double") for part in self.parts)

    def begin(self) -> tuple[Any, ...]:
        """No rows."""
        return tuple(_NOTHING[part.begin]() if part.begin in _NOTHING else None for part in self.parts)

    def take(self, kept: tuple[Any, ...], row: int, label: str, rows: RowValues) -> tuple[Any, ...]:
        """The parts with those of one more row."""
        values = (*rows.row(row, self.names), label, rows.number) if self.reads else ()
        return tuple(
            [
                merge(part, begin(values, None))
                for merge, part, begin in zip(self.merges, kept, self.begins, strict=True)
            ]
        )

    def value(self, kept: tuple[Any, ...]) -> object:
        """The result."""
        return finish(self.aggregate, kept)


class DistinctTracker(AggregateTracker):
    """An aggregate over the different values of the rows of a variable: the values so far, then the parts."""

    def __init__(self, look: Navigation, members: frozenset[str], schema: Schema) -> None:
        super().__init__(look, members, schema)
        self.argument = RowExpression(self.aggregate.arguments[0], argument_schema(schema.fields), schema.names)

    def begin(self) -> tuple[Any, ...]:
        """No rows."""
        return (frozenset(), *super().begin())

    def take(self, kept: tuple[Any, ...], row: int, label: str, rows: RowValues) -> tuple[Any, ...]:
        """The parts with those of one more row, if its value is new."""
        value = self.argument.value(rows, row, label, rows.number)
        if value is None or value in kept[0]:
            return kept
        return (kept[0] | {value}, *super().take(kept[1:], row, label, rows))

    def value(self, kept: tuple[Any, ...]) -> object:
        """The result."""
        return super().value(kept[1:])


def _narrowed(names: list[str], schema: Schema) -> Schema:
    """Some fields of a row, the name of its variable, and the number of the match."""
    return argument_schema(schema.field(name) for name in names)


def _joined(one: list[Any], other: list[Any]) -> list[Any]:
    """Lists of rows in their order."""
    return [*one, *other] if other else one


class NumberTracker(Tracker):
    """The number of the match, which no row changes."""


def tracker_of(look: Navigation, pattern: RowPattern, schema: Schema) -> Tracker:
    """The tracker of a look."""
    if look.look is Look.MATCH_NUMBER:
        return NumberTracker(look, frozenset())
    members = pattern.members(look.variable)
    if look.distinct:
        return DistinctTracker(look, members, schema)
    made: Mapping[Look, Callable[[Navigation, frozenset[str], Schema], Tracker]] = {
        Look.FIRST: FirstTracker,
        Look.LAST: LastTracker,
        Look.AGGREGATE: AggregateTracker,
    }
    return made[look.look](look, members, schema)
