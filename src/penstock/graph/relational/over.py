"""Rows over their neighbours: which of the two steps answers, from the order and the frame that are asked for."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import FlowError
from penstock.graph.aggregates.calls import AggregateCall
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import KeyedInput
from penstock.graph.nodes import Frame, Output, Over, OverTable, Port
from penstock.graph.nodes.relational.over import needs_all
from penstock.graph.order import Term


def add_over(
    builder: GraphBuilder,
    name: str,
    keyed: KeyedInput,
    calls: tuple[AggregateCall, ...],
    *,
    by: tuple[Term, ...] = (),
    frame: Frame | None = None,
    arrival: bool = False,
) -> Port:
    """The rows with functions over the frame of each.

    Records in the order of their event time are emitted once, when event time has passed their frame. In any other order, and of a table, the result is a
    table: rows whose frame changes change too.

    Args:
        builder: where steps are added.
        name: the name of the step.
        keyed: the rows by partition; without a key all rows are one.
        calls: the functions, by the names of the fields that they fill.
        by: the order; nothing is the order of event time.
        frame: which rows are seen; else all up to the row and those of its order, and without an order all.
        arrival: whether rows go in the order in which they come.
    """
    given, port = builder.output(keyed.port), keyed.stream(builder, name)
    if arrival:
        return builder.add(Over(name, (port,), keyed.keys, calls=calls, frame=frame or Frame(), by=by, arrival=True))
    if not needs_all(calls, frame) and _is_in_time(given, by, frame):
        return builder.add(Over(name, (port,), keyed.keys, calls=calls, frame=frame or Frame(), by=by[1:]))
    if not by and given.changes is None and given.event_time is None and frame is not None and frame.after is not None:
        raise FlowError(
            f"over expects an order: {keyed.port} does not say when its records happened. Say by='a field', or give its source event_time='a field'"
        )
    if not by and given.event_time is not None:
        by = (Term(given.event_time.column),)
    return builder.add(OverTable(name, (port,), keyed.keys, calls=calls, frame=frame or _whole(by), by=by))


def _is_in_time(given: Output, by: tuple[Term, ...], frame: Frame | None) -> bool:
    """Whether rows are in the order of event time, and each frame is complete some time."""
    if given.changes is not None or given.event_time is None:
        return False
    if by and by[0] != Term(given.event_time.column):
        return False
    return frame is None or not (frame.after is None or (frame.before is None and frame.after))


def _whole(by: tuple[Term, ...]) -> Frame:
    """The frame that is meant where none is given."""
    return Frame() if by else replace(Frame(), after=None)
