"""What comes and what goes from one instant to the next, of a relation that is known as a whole at each of its instants."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.graph.aggregates.calls import aggregate_call, calls_of
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import KeyedInput
from penstock.graph.expr import Case, Expr, col, lit
from penstock.graph.ids import child
from penstock.graph.nodes import AsRecords, FlatMap, Frame, Port, Select, TimeField, Union, Where
from penstock.graph.nodes.base import ALL
from penstock.graph.relational.over import add_over
from penstock.graph.relational.windows import add_window_totals
from penstock.graph.schema import Schema

SIGN = "instant_sign"
_BEFORE = "instant_before"


@dataclass(frozen=True)
class RepeatRow:
    """The function of a step that emits a row as often as its last field says."""

    def __call__(self, row: Any) -> Iterator[Any]:
        """The row without that field."""
        values = tuple(row)
        return iter([values[:-1]] * abs(values[-1]))


@dataclass(frozen=True)
class FillInstants:
    """The function of a step that emits the instants between two, the first and the last left out.

    Args:
        slide: the time between two instants, in microseconds.
    """

    slide: int

    def __call__(self, row: Any) -> Iterator[Any]:
        """The instants after the one before and before that of the row."""
        before, now = row
        step = datetime.timedelta(microseconds=self.slide)
        instant = before + step
        while instant < now:
            yield (instant,)
            instant += step


def add_empty_instants(
    builder: GraphBuilder, name: str, port: Port, bounds: tuple[str, str], slide: int, empty: dict[str, Expr]
) -> Port:
    """Totals at the instants of a window that slides, with those at which it holds no row between two at which it does.

    Those of a gap are known when the row after it is: they come with it, and the result has no event time.

    Args:
        builder: where steps are added.
        name: the name of the step.
        port: one row at each instant at which the window holds rows; records.
        bounds: the fields of the begin and the end of the window; the end is the instant.
        slide: the time between two instants, in microseconds.
        empty: the values of all other fields where there are no rows.
    """
    start, end = bounds
    schema = builder.output(port).schema
    keyed = KeyedInput(port, (ALL,), ((ALL, lit(0)),))
    over = add_over(builder, child(name, "before"), keyed, (aggregate_call(_BEFORE, f"lag({end})"),), frame=Frame())
    far = col(_BEFORE) + lit(datetime.timedelta(microseconds=slide)) < col(end)
    gaps = builder.add(Where(child(name, "gaps"), (over,), far))
    pairs = builder.add(Select(child(name, "pairs"), (gaps,), ((_BEFORE, col(_BEFORE)), (end, col(end)))))
    instant = Schema((schema.field(end),))
    filled = builder.add(FlatMap(child(name, "filled"), (pairs,), FillInstants(slide), instant))
    made = {**empty, start: col(end), end: col(end)}
    zeros = builder.add(Select(child(name, "empty"), (filled,), tuple((n, made[n]) for n in schema.names)))
    rows = builder.add(AsRecords(child(name, "rows"), (port,), None))
    return builder.add(Union(name, (rows, zeros)))


def add_images(builder: GraphBuilder, name: str, port: Port, bounds: tuple[str, str], empty: dict[str, Expr]) -> Port:
    """Totals at the instants of a window that slides, each with what the total would be over no rows: that is what it takes the place of.

    An image is known by a window that begins where it ends; `add_instant_changes` counts it against the row.
    """
    start, end = bounds
    schema = builder.output(port).schema
    made = {**empty, start: col(end), end: col(end)}
    images = builder.add(Select(child(name, "empty"), (port,), tuple((n, made[n]) for n in schema.names)))
    return builder.add(Union(name, (port, images)))


def add_instant_changes(
    builder: GraphBuilder,
    name: str,
    port: Port,
    instant: str,
    slide: int,
    *,
    comes: bool,
    image: str = "",
) -> Port:
    """The rows that come into a relation at each of its instants, or those that go, as multisets; records.

    Args:
        builder: where steps are added.
        name: the name of the step.
        port: the relation: its rows at each instant, with the instant as a field.
        instant: that field, a timestamp; all other fields are plain values.
        slide: the time between two instants, in microseconds.
        comes: True for the rows that come, False for those that go.
        image: a field that is true of rows which others take the place of, as `add_images` makes them.

    Returns:
        The rows, with the instant at which they come or go.
    """
    fields = [n for n in builder.output(port).schema.names if n not in (instant, image)]
    one = Case(((col(image), lit(-1)),), lit(1)) if image else lit(1)
    span = lit(datetime.timedelta(microseconds=slide))
    parts = {"now": (col(instant), one), "next": (col(instant) + span, -one)}
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


def _signed(
    builder: GraphBuilder, name: str, port: Port, fields: list[str], instant: str, at: Expr, sign: Expr
) -> Port:
    """The rows at an instant, each with a sign."""
    columns: list[tuple[str, Expr]] = [(n, col(n)) for n in fields]
    columns += [(instant, at), (SIGN, sign.cast("bigint"))]
    made = builder.add(Select(name, (port,), tuple(columns)))
    return builder.add(AsRecords(child(name, "timed"), (made,), TimeField(instant, -1)))
