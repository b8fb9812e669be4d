"""Expressions over an event and a match, compiled: what they look at elsewhere becomes part of the row they are computed of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from penstock.errors import ExpressionError
from penstock.graph.aggregates.aggregate import Aggregate
from penstock.graph.patterns.conditions import Look, Navigation, NavigationExpr, asks_for_number, value_schema
from penstock.graph.schema import Schema
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.keyed.aggregates import begins, finish, merges
from penstock.kernels.patterns.operators.match import Event, Match

Run = Callable[[Match, Sequence[object]], object]
"""The value of an expression, of a match and of the values of an event."""
LookUp = Callable[[Match], object]


def compile_looks(written: NavigationExpr, schema: Schema) -> Run:
    """A function of a match and of the values of an event; `schema` is that of events."""
    run = compile_expr(written.expr, written.schema)
    looks = [_look(each, schema) for each in written.inputs]
    if not looks:
        return lambda match, values: run(values)
    return lambda match, values: run((*values, *[look(match) for look in looks]))


def _look(look: Navigation, schema: Schema) -> LookUp:
    if asks_for_number(look) or look.step:
        raise ExpressionError(f"{look} belongs to row patterns; in pattern text use the fields of tagged events")
    if look.aggregate is not None:
        return _aggregate(look.variable, look.aggregate, schema)
    return _event(look, schema)


def _event(look: Navigation, schema: Schema) -> LookUp:
    assert look.value is not None
    value = compile_expr(look.value, value_schema(schema))
    tag, at = look.variable, look.offset if look.look is Look.FIRST else -1 - look.offset

    def run(match: Match) -> object:
        events = _tagged(match, tag)
        missing = not -len(events) <= at < len(events)
        return None if missing else value((*events[at].values, tag))

    return run


def _tagged(match: Match, tag: str) -> Sequence[Event]:
    if tag:
        return match.get(tag, ())
    events = {event.number: event for events in match.values() for event in events}
    return [events[number] for number in sorted(events)]


def _aggregate(tag: str, aggregate: Aggregate, schema: Schema) -> LookUp:
    starts, together = begins(aggregate, value_schema(schema)), merges(aggregate)
    nothing = 0 if aggregate.call == "count" else None

    def run(match: Match) -> object:
        rows = [(*event.values, tag) for event in _tagged(match, tag)]
        if not rows:
            return nothing
        parts = [tuple(start(row, row) for start in starts) for row in rows]
        return finish(
            aggregate, reduce(lambda a, b: tuple(m(x, y) for m, x, y in zip(together, a, b, strict=True)), parts)
        )

    return run
