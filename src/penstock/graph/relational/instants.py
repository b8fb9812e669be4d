"""What comes and what goes from one instant to the next, of a relation that is known as a whole at each of its instants."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.graph.aggregates.calls import calls_of
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import KeyedInput
from penstock.graph.expr import Expr, col, lit
from penstock.graph.ids import child
from penstock.graph.nodes import AsRecords, FlatMap, Port, Select, TimeField, Union, Where
from penstock.graph.relational.windows import add_window_totals
from penstock.graph.schema import Schema

SIGN = "instant_sign"


@dataclass(frozen=True)
class RepeatRow:
    """The function of a step that emits a row as often as its last field says."""

    def __call__(self, row: Any) -> Iterator[Any]:
        """The row without that field."""
        values = tuple(row)
        return iter([values[:-1]] * abs(values[-1]))


def add_instant_changes(builder: GraphBuilder, name: str, port: Port, instant: str, slide: int, *, comes: bool) -> Port:
    """The rows that come into a relation at each of its instants, or those that go, as multisets; records.

    Args:
        builder: where steps are added.
        name: the name of the step.
        port: the relation: its rows at each instant, with the instant as a field.
        instant: that field, a timestamp; all other fields are plain values.
        slide: the time between two instants, in microseconds.
        comes: True for the rows that come, False for those that go.

    Returns:
        The rows, with the instant at which they come or go.
    """
    fields = [n for n in builder.output(port).schema.names if n != instant]
    span = lit(datetime.timedelta(microseconds=slide))
    parts = {"now": (col(instant), 1), "next": (col(instant) + span, -1)}
    signed = [_signed(builder, child(name, part), port, fields, instant, *how) for part, how in parts.items()]
    both = builder.add(Union(child(name, "both"), tuple(signed)))
    keyed = KeyedInput(both, (*fields, instant))
    totals = add_window_totals(builder, child(name, "totals"), keyed, calls_of({SIGN: f"sum({SIGN})"}))
    some = builder.add(Where(child(name, "some"), (totals,), col(SIGN) > 0 if comes else col(SIGN) < 0))
    ordered = (*fields, instant, SIGN)
    picked = builder.add(Select(child(name, "picked"), (some,), tuple((n, col(n)) for n in ordered)))
    schema = Schema(builder.output(picked).schema.fields[:-1])
    rows = builder.add(FlatMap(child(name, "rows"), (picked,), RepeatRow(), schema))
    return builder.add(AsRecords(name, (rows,), TimeField(instant, -1)))


def _signed(builder: GraphBuilder, name: str, port: Port, fields: list[str], instant: str, at: Expr, sign: int) -> Port:
    """The rows at an instant, each with a sign."""
    columns: list[tuple[str, Expr]] = [(n, col(n)) for n in fields]
    columns += [(instant, at), (SIGN, lit(sign).cast("bigint"))]
    made = builder.add(Select(name, (port,), tuple(columns)))
    return builder.add(AsRecords(child(name, "timed"), (made,), TimeField(instant, -1)))
