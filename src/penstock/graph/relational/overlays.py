"""Several tables laid over each other by a key: of each key the row of the last table that has one."""

from __future__ import annotations

from penstock.graph.aggregates.calls import AggregateCall
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import star
from penstock.graph.expr import Call, Column, Expr, GetField, col, lit
from penstock.graph.ids import child
from penstock.graph.nodes import AggregateBy, AsTable, Port, Select, Union, WithColumns
from penstock.graph.nodes.ordering import AFTER, OP

LAYER = "__layer"
"""The hidden field that says of which table a row is."""
_ROW = "__row"


def add_layer(builder: GraphBuilder, name: str, port: Port, keys: tuple[str, ...], number: int) -> Port:
    """A table as one of those that are laid over each other; records are the table of the last one of each key."""
    given = builder.output(port)
    if given.changes is None:
        columns = (*star(given.schema), (OP, lit(AFTER)))
        marked = builder.add(Select(child(name, "changes"), (port,), columns))
        port = builder.add(AsTable(child(name, "table"), (marked,), keys))
    return builder.add(WithColumns(name, (port,), ((LAYER, lit(number)),), hidden=True))


def add_overlay(builder: GraphBuilder, name: str, layers: tuple[Port, ...], keys: tuple[str, ...]) -> Port:
    """Of each key the row of the last layer that has one. When it goes, the row of the layer below is there again.

    The step that gathers the layers is the union `name@layers`: whoever adds one puts another union in its place.
    """
    names = tuple(n for n in builder.output(layers[0]).schema.names if n != LAYER)
    whole = builder.add(Union(child(name, "layers"), layers))
    pairs = tuple(part for n in names for part in (lit(n), col(n)))
    last = AggregateCall(_ROW, Call("max_by", (Call("named_struct", pairs), col(LAYER))))
    made = builder.add(AggregateBy(child(name, "kept"), (whole,), keys, calls=(last,)))
    fields: tuple[tuple[str, Expr], ...] = tuple(
        (n, Column(n) if n in keys else GetField(Column(_ROW), n)) for n in names
    )
    return builder.add(Select(name, (made,), fields))
