"""Leaves root ids out where nobody reads them: of tuples that no bolt gets."""

from __future__ import annotations

from dataclasses import replace

from penstock.compiler.plan import Plan
from penstock.graph.graph import Graph
from penstock.graph.nodes import Bolt, Node, Port, Sink
from penstock.graph.nodes.topology import ROOTS


def drop_roots(plan: Plan) -> Plan:
    """The plan of a graph whose last bolts emit no roots."""
    nodes = tuple(_without(plan.graph, node) for node in plan.graph.nodes)
    is_same = all(one is other for one, other in zip(nodes, plan.graph.nodes, strict=True))
    return plan if is_same else Plan(Graph(plan.graph.name, nodes), plan.stages)


def _without(graph: Graph, node: Node) -> Node:
    if not isinstance(node, Bolt):
        return node
    fed = {loop.fed_by for loop in graph.loops}
    rooted = [o.name for o in node.outputs if ROOTS.name in o.schema and Port(node.name, o.name) not in fed]
    unread = tuple(name for name in rooted if all(map(_ends, graph.readers(Port(node.name, name)))))
    return replace(node, unrooted=unread, outputs=()) if unread else node


def _ends(reader: Node) -> bool:
    """Whether a step neither reads roots nor hands them on."""
    if isinstance(reader, Bolt):
        return False
    return isinstance(reader, Sink) or not any(ROOTS.name in o.schema for o in reader.outputs)
