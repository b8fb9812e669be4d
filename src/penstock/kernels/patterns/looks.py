"""What expressions see of other events of a match."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from penstock.graph.aggregates.aggregate import Aggregate
from penstock.graph.expr import Column
from penstock.graph.patterns.conditions import CLASSIFIER, Look, Navigation, NavigationExpr, value_schema
from penstock.graph.schema import Schema
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.keyed.aggregates import begins, finish, merges

EventPath = Sequence[tuple[int, int]]
"""The events of a run, each as the number of its stage and the number of the event."""
Rows = Sequence[tuple[Any, ...]]
"""The values of events, by number."""
Reader = Callable[[EventPath, Rows], Any]


class Looks:
    """The looks of one expression, and the expression over them.

    Args:
        made: the expression.
        event: the fields of an event.
        stages: the names of stages by number.
        ahead: whether there is an event that is not taken yet, from which `prev` counts.
    """

    def __init__(self, made: NavigationExpr, event: Schema, stages: tuple[str, ...], *, ahead: bool) -> None:
        self.readers = [reader_of(look, event, stages, ahead=ahead) for look in made.inputs]
        self.run = compile_expr(made.expr, made.schema)

    def value(self, row: tuple[Any, ...], taken: EventPath, rows: Rows) -> Any:
        """The value of the expression for an event, and what was taken before."""
        return self.run((*row, *(read(taken, rows) for read in self.readers)))


def position_of(look: Navigation, stages: tuple[str, ...], *, ahead: bool) -> Callable[[EventPath], int]:
    """Where among the events of a run a look finds its event; -1 where it finds none."""
    stage = stages.index(look.variable) if look.variable in stages else -1
    offset, step, is_first = look.offset, look.step, look.look is Look.FIRST

    def position(taken: EventPath) -> int:
        if stage < 0:
            last = len(taken) - 1 + (1 if ahead and step else 0)
            at = offset if is_first else last - offset
        else:
            mine = [at for at, (each, _) in enumerate(taken) if each == stage]
            if offset >= len(mine):
                return -1
            at = mine[offset] if is_first else mine[-1 - offset]
        at += step
        return at if 0 <= at < len(taken) else -1

    return position


def reader_of(look: Navigation, event: Schema, stages: tuple[str, ...], *, ahead: bool) -> Reader:
    """A function from the events of a run to what a look sees."""
    if look.aggregate is not None:
        return _aggregate(look.aggregate, look.variable, event, stages)
    assert look.value is not None
    position, value = position_of(look, stages, ahead=ahead), compile_expr(look.value, value_schema(event))

    def read(taken: EventPath, rows: Rows) -> Any:
        at = position(taken)
        return None if at < 0 else value((*rows[taken[at][1]], stages[taken[at][0]]))

    return read


def _aggregate(aggregate: Aggregate, variable: str, event: Schema, stages: tuple[str, ...]) -> Reader:
    stage = stages.index(variable) if variable else -1
    if not aggregate.arguments:
        return lambda taken, rows: sum(1 for each, _ in taken if stage < 0 or each == stage)
    fold = _folded(aggregate, event)

    def read(taken: EventPath, rows: Rows) -> Any:
        return fold([(*rows[at], stages[each]) for each, at in taken if stage < 0 or each == stage])

    return read


def _folded(aggregate: Aggregate, event: Schema) -> Callable[[list[tuple[Any, ...]]], Any]:
    schema = value_schema(event)
    if aggregate.call == "collect_list":
        only = compile_expr(aggregate.arguments[0], schema)
        return lambda rows: [value for value in map(only, rows) if value is not None]
    starts, join = begins(aggregate, schema), merges(aggregate)

    def fold(rows: list[tuple[Any, ...]]) -> Any:
        parts: list[Any] | None = None
        for row in rows:
            made = [start(row, row) for start in starts]
            parts = made if parts is None else [merge(a, b) for merge, a, b in zip(join, parts, made, strict=True)]
        if parts is None:
            return 0 if aggregate.call.startswith("count") else [] if aggregate.call.startswith("collect") else None
        return finish(aggregate, tuple(parts))

    return fold


def simple_field(look: Navigation) -> str:
    """The field that a look at one event reads, where it is nothing but a field; else empty."""
    plain = isinstance(look.value, Column) and look.value.name != CLASSIFIER
    return look.value.name if plain and isinstance(look.value, Column) else ""
