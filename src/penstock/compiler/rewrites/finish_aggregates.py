"""Splits steps with expressions over aggregates: the step itself keeps and emits the aggregates, native steps after it make the results.

The step keeps its name, and so its state: what is computed of the aggregates may change without a change of what is kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from penstock.compiler.plan import Plan
from penstock.graph.expr import Column
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.nodes import LATE, AggregateStep, Feedback, Node, Port, Select, Window
from penstock.graph.nodes.base import ALL


def finish_aggregates(plan: Plan) -> Plan:
    """The plan of a graph in which every aggregating step emits what it keeps."""
    return Plan(finished(plan.graph), plan.stages)


def finished(graph: Graph) -> Graph:
    """The graph with its aggregating steps split; one in which none need be is returned as it is."""
    splitting = _Splitting(graph)
    nodes = [made for node in graph.nodes for made in splitting.split(node)]
    if not splitting.moved:
        return graph
    return Graph(graph.name, tuple(splitting.rewired(node) for node in nodes), graph.bootstraps)


@dataclass
class _Splitting:
    """A graph under way, and where streams of the user's are now."""

    graph: Graph
    moved: dict[Port, Port] = field(default_factory=dict)

    def split(self, node: Node) -> list[Node]:
        """A step and what finishes it."""
        after = node.finishing() if isinstance(node, AggregateStep) else ()
        if not after:
            return [node]
        assert isinstance(node, AggregateStep)
        self.moved[Port(node.name)] = Port(after[-1].name)
        return [node.kept(), *after, *self._late(node)]

    def _late(self, node: AggregateStep) -> list[Node]:
        """The late records of a window without a key, without the hidden one, where they are read."""
        port = Port(node.name, LATE)
        if not isinstance(node, Window) or ALL not in node.keys or not self.graph.readers(port):
            return []
        fields = tuple((name, Column(name)) for name in node.output(LATE).schema.names)
        self.moved[port] = Port(child(node.name, "late"))
        return [Select(child(node.name, "late"), (port,), fields, line=node.line)]

    def rewired(self, node: Node) -> Node:
        """A step that reads what the user's step emits reads it where it is now."""
        if node.name not in self.graph.by_name:
            return node
        if isinstance(node, Feedback) and node.fed_by in self.moved:
            return replace(node, fed_by=self.moved[node.fed_by])
        if not any(port in self.moved for port in node.inputs):
            return node
        return replace(node, inputs=tuple(self.moved.get(port, port) for port in node.inputs))
