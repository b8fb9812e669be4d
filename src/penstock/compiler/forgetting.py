"""Which stores hold what belongs to rules: what is kept for a rule goes when the rule goes."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.graph.graph import Graph
from penstock.graph.nodes import Keyed, Node, Trigger, WithBroadcast


@dataclass(frozen=True)
class OwnedStore:
    """A store whose keys name the rule that each entry belongs to.

    Args:
        rules: the step that keeps the rules.
        part: which part of a key names the rule.
    """

    rules: str
    part: int


def owned_stores(graph: Graph) -> dict[str, OwnedStore]:
    """The stores of a graph that belong to rules, by name."""
    made: dict[str, OwnedStore] = {}
    for node in graph.nodes:
        if isinstance(node, WithBroadcast) and node.logic.names_rule:
            made |= _below(graph, node, node.logic.names_rule, node.inputs[1].step)
    return made


def _below(graph: Graph, first: Node, field: str, rules: str) -> dict[str, OwnedStore]:
    """The stores of steps below one that keep something by a field, as far as it is there."""
    made: dict[str, OwnedStore] = {}
    reached = {first.name}
    for node in graph.ordered:
        if node.name in reached or not any(port.step in reached for port in node.inputs):
            continue
        if not any(field in output.schema for output in node.outputs) or isinstance(node, Trigger):
            continue
        reached.add(node.name)
        if isinstance(node, Keyed) and field in node.keys:
            values = (store for store, kind in node.stores.items() if kind == "values")
            made |= dict.fromkeys(values, OwnedStore(rules, node.keys.index(field)))
    return made
