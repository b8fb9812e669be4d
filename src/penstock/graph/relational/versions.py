"""Joins with the version of a table that was valid at a row's time."""

from __future__ import annotations

from dataclasses import replace

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import add_join
from penstock.graph.expr import Case, col
from penstock.graph.ids import child
from penstock.graph.nodes import AsOfJoin, Port, Select, Where
from penstock.graph.nodes.join import RIGHT
from penstock.graph.nodes.ordering import BEFORE, DELETE


def add_versioned_join(builder: GraphBuilder, join: AsOfJoin, op: str = "") -> Port:
    """Each row of the left with the version of the right that was valid at its time: SQL's FOR SYSTEM_TIME AS OF event time.

    A version of a key is valid from its event time until that of the next. A row waits until event time has passed it on both sides; then versions that no
    later row can ask for are dropped.

    Args:
        builder: where steps are added.
        join: the join; its right input has a record for each version.
        op: the field of the right that says what happened, where versions end with a delete; it is no part of the result.

    Raises:
        FlowError: the right is a table, whose earlier versions are gone.
        SchemaError: `op` is no text.
    """
    right = builder.output(join.inputs[RIGHT])
    if right.changes is not None:
        raise FlowError(
            f"a join with versions expects a record for each version on the right, got the table of {join.inputs[RIGHT]}, which has the newest alone. Give "
            f"the stream from which it is made; with op='op' where it has deletes"
        )
    if not op:
        return add_join(builder, join)
    if right.schema.field(op).type != t.STRING:
        raise SchemaError(f"{op!r} says what happened, as a text; it is {right.schema.field(op).type}")
    later = builder.add(Where(child(join.name, "versions"), (join.inputs[RIGHT],), col(op) != BEFORE))
    found = add_join(builder, replace(join, name=child(join.name, "found"), inputs=(join.inputs[0], later), how="left"))
    return _valid(builder, join, found, f"{join.prefix}{op}")


def _valid(builder: GraphBuilder, join: AsOfJoin, found: Port, op: str) -> Port:
    """The rows with the versions that are there: one that ended with a delete is none."""
    node, schema = builder.node(found), builder.output(found).schema
    assert isinstance(node, AsOfJoin)
    theirs = {f.name for f, (_, other) in zip(schema.fields, node.columns, strict=True) if other} - {op}
    ours = {f.name for f, (one, _) in zip(schema.fields, node.columns, strict=True) if one}
    if join.how == "inner":
        found = builder.add(Where(child(join.name, "valid"), (found,), col(op).is_not_null() & (col(op) != DELETE)))
    ended = theirs - ours if join.how != "inner" else set[str]()
    columns = tuple(
        (n, Case(((col(op) != DELETE, col(n)),)) if n in ended else col(n)) for n in schema.names if n != op
    )
    return builder.add(Select(join.name, (found,), columns))
