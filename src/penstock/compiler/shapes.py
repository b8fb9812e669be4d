"""What a keyed step keeps, as a text by which a changed flow is told from the one that wrote the state."""

from __future__ import annotations

from penstock.graph.graph import Graph
from penstock.graph.nodes import AggregateBy, Keyed, Node, Reduce


def shape_of_state(node: Node, graph: Graph) -> str:
    """The kind of step, its keys with their types, and what it keeps for each.

    What a process class or a bolt keeps is its own affair: it may gain fields.
    """
    if not isinstance(node, Keyed):
        return node.kind
    schema = graph.output(node.inputs[0]).schema
    keys = ", ".join(f"{k} {schema.field(k).type}" for k in node.keys)
    if isinstance(node, AggregateBy):
        return f"aggregate by {keys}: {', '.join(f'{a.name}={a} {a.type}' for a in node.aggregates)}"
    if isinstance(node, Reduce):
        return f"reduce by {keys}: {schema}"
    return f"{node.kind} by {keys}"
