"""What Trident does with one tuple at a time, as functions over rows: a carried scope first, then the user's fields."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from penstock.graph.aggregates.aggregate import Aggregator
from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.logic.trident.keyed import FAILED, AggregatorCall, RunningCalls, why
from penstock.graph.logic.trident.operations import (
    Collector,
    Filter,
    Function,
    OperationContext,
    Picked,
    Values,
    as_values,
    clean_up,
    prepared,
)
from penstock.graph.schema import Schema


@dataclass
class RowStep:
    """The base of what runs for each row: any number of rows for one. An operation is prepared before the first."""

    operation: Any
    picked: Picked
    scope: int = 0
    """How many fields at the beginning go along unseen."""

    def prepare(self, context: OperationContext) -> None:
        """Prepares the operation for a partition."""
        prepared(self.operation, context)

    def close(self) -> None:
        """Tells the operation that its partition ends."""
        clean_up(self.operation)

    def __call__(self, row: Any) -> list[Values]:
        """The rows that one becomes."""
        prepared(self.operation)
        return self.rows(row)

    def rows(self, row: Any) -> list[Values]:
        """The rows that one becomes."""
        raise NotImplementedError


@dataclass
class EachFunction(RowStep):
    """Appends what a function emits."""

    operation: Function
    _collector: Collector = field(default_factory=Collector, compare=False)

    def rows(self, row: Any) -> list[Values]:
        """The row with each of the emitted values after it."""
        self._collector.values = []
        self.operation.execute(self.picked(row), self._collector)
        plain = tuple(row)
        return [plain + made for made in self._collector.values]


@dataclass
class EachFilter(RowStep):
    """Keeps the rows that a filter wants."""

    operation: Filter

    def rows(self, row: Any) -> list[Values]:
        """The row, or none."""
        return [tuple(row)] if self.operation.is_keep(self.picked(row)) else []


@dataclass
class Mapped(RowStep):
    """Rows of other fields: what a function returns, one or many."""

    operation: Callable[[Any], Any]
    many: bool = False

    def rows(self, row: Any) -> list[Values]:
        """What the function returns, after the scope."""
        made = self.operation(self.picked(row))
        carried = tuple(row[: self.scope])
        return [carried + as_values(each) for each in (made or () if self.many else (made,))]


@dataclass
class Peeked(RowStep):
    """Shows each row to a function, and passes it on."""

    operation: Callable[[Any], Any]

    def rows(self, row: Any) -> list[Values]:
        """The row as it is."""
        self.operation(self.picked(row))
        return [tuple(row)]


@dataclass
class Projected(RowStep):
    """The scope and some of the fields."""

    def rows(self, row: Any) -> list[Values]:
        """The fields."""
        return [tuple(row[: self.scope]) + self.picked.values(row)]


@dataclass
class PerRequest:
    """A step over rows that begin with a request: where it fails, the request fails, and no other."""

    of: RowStep

    def __call__(self, row: Any) -> list[Any]:
        """The rows that one becomes, or the failed request."""
        try:
            return list(self.of(row))
        except Exception as error:
            return [TaggedRecord(FAILED, (row[0], why(error)))]

    def prepare(self, context: OperationContext) -> None:
        """Prepares the operation."""
        self.of.prepare(context)

    def close(self) -> None:
        """Tells the operation."""
        self.of.close()


@dataclass
class WindowCalls:
    """Aggregators over the rows that a window has gathered, in its last field."""

    calls: tuple[AggregatorCall, ...]

    def __call__(self, row: Any) -> list[Values]:
        """What the aggregators emit for a window."""
        running = RunningCalls(self.calls, 0)
        for each in row[-1]:
            running.add(tuple(each.values()) if isinstance(each, dict) else tuple(each))
        return running.complete()


class GatheredRows(Aggregator):
    """All rows of a window, in a list."""

    def __init__(self, schema: Schema) -> None:
        self.names = schema.names
        fields = ", ".join(f"{field.name}: {field.type}" for field in schema.fields)
        self.schema = f"array<struct<{fields}>>"

    def init(self) -> list[Any]:
        """None."""
        return []

    def add(self, so_far: list[Any], row: Any) -> list[Any]:
        """One more."""
        return [*so_far, {name: row[name] for name in self.names}]

    def merge(self, one: list[Any], other: list[Any]) -> list[Any]:
        """Those of both."""
        return one + other
