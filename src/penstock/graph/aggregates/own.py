"""Python aggregates over arguments: what they take in is a tuple of values, not a record."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from penstock.graph.aggregates.aggregate import Aggregator
from penstock.graph.expr.python_aggregates import AggregateFunction

Values = tuple[Any, ...]


class OverArguments(Aggregator):
    """The user's class over the values of its arguments."""

    def __init__(self, function: AggregateFunction) -> None:
        self.function, self.body, self.schema = function, function.body, str(function.returns)

    def init(self) -> Any:
        """What the class says, else None."""
        make = getattr(self.body, "init", None)
        return None if make is None else make()

    def add(self, so_far: Any, row: Values) -> Any:
        """Takes in the values of a row."""
        return self.body.accumulate(so_far, *row)

    def retract(self, so_far: Any, row: Values) -> Any:
        """Takes the values of a row back."""
        return self.body.retract(so_far, *row)

    @property
    def retracts(self) -> bool:
        """Whether the class can take values back."""
        return self.function.retracts

    def merge(self, one: Any, other: Any) -> Any:
        """Puts two parts together."""
        return self.body.merge(one, other)

    def result(self, so_far: Any) -> Any:
        """What is emitted."""
        return self.body.result(so_far)


class OverDifferent(Aggregator):
    """An aggregate over different values alone: keeps each once, and adds them all when it is asked."""

    def __init__(self, inner: OverArguments) -> None:
        self.inner, self.schema = inner, inner.schema

    def init(self) -> dict[str, Values]:
        """No values yet, by how they are written."""
        return {}

    def add(self, so_far: dict[str, Values], row: Values) -> dict[str, Values]:
        """Keeps the values, if they are new."""
        return {**so_far, repr(row): row}

    def add_all(self, so_far: dict[str, Values], rows: Sequence[Values]) -> dict[str, Values]:
        """Keeps the values that are new."""
        return {**so_far, **{repr(row): row for row in rows}}

    def merge(self, one: dict[str, Values], other: dict[str, Values]) -> dict[str, Values]:
        """The values of both."""
        return {**one, **other}

    def result(self, so_far: dict[str, Values]) -> Any:
        """The answer over all of them, in one order."""
        rows = [so_far[written] for written in sorted(so_far)]
        inner = self.inner
        gathers = type(inner).add_all is not Aggregator.add_all
        return inner.result(inner.add_all(inner.init(), rows) if gathers else reduce(inner.add, rows, inner.init()))
