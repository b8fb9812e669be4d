"""Aggregates of the user's own as kernels call them: over records, over values of arguments, over Arrow arrays of those."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from penstock.graph.aggregates.aggregate import Aggregate, Aggregator
from penstock.graph.aggregates.own import OverArguments, OverDifferent, Values
from penstock.graph.schema import Schema
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.records.arrow import arrow_type

Taken = Callable[[Any, Any], Any]
"""What an aggregate takes in of a record, given as its plain values and as a row."""


class OverArrays(OverArguments):
    """A class that takes Arrow arrays: of one row where rows come one by one."""

    def __init__(self, of: OverArguments) -> None:
        super().__init__(of.function)
        self.kinds = [arrow_type(kind) for kind in of.function.takes]

    def _arrays(self, rows: Sequence[Values]) -> list[pa.Array]:
        return [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), self.kinds, strict=False)]

    def add(self, so_far: Any, row: Values) -> Any:
        """Takes in one row."""
        return self.add_all(so_far, [row])

    def add_all(self, so_far: Any, rows: Sequence[Values]) -> Any:
        """Takes in several rows."""
        return self.body.accumulate(so_far, *self._arrays(rows)) if rows else so_far

    def retract(self, so_far: Any, row: Values) -> Any:
        """Takes one row back."""
        return self.body.retract(so_far, *self._arrays([row]))


def own_of(aggregate: Aggregate) -> Aggregator:
    """The user's own aggregate."""
    own = aggregate.own
    assert own is not None, "it is asked for aggregates of the user's own alone"
    if isinstance(own, OverDifferent):
        return OverDifferent(_vectorized(own.inner))
    return _vectorized(own) if isinstance(own, OverArguments) else own


def _vectorized(own: OverArguments) -> OverArguments:
    return OverArrays(own) if own.function.vectorized else own


def taken_of(aggregate: Aggregate, schema: Schema) -> Taken:
    """What an aggregate of the user's own takes in: the record, or the values of its arguments."""
    if not aggregate.written:
        return lambda values, row: row
    of = [compile_expr(argument, schema) for argument in aggregate.written]
    return lambda values, row: tuple(each(values) for each in of)
