"""Splits native aggregates of a live run: parts by Spark over the batch, merged with what was kept before."""

from __future__ import annotations

from dataclasses import replace

from penstock.compiler.plan import Plan
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.nodes import AggregateBy, Node, Parts, Port


def merge_with_state(plan: Plan) -> Plan:
    """The plan of a graph in which each native aggregate is a `parts` step and a merge."""
    nodes = [made for node in plan.graph.nodes for made in _split(node)]
    return Plan(Graph(plan.graph.name, tuple(nodes)), plan.stages)


def _split(node: Node) -> list[Node]:
    if not isinstance(node, AggregateBy) or node.runs_python:
        return [node]
    first = Parts(child(node.name, "parts"), node.inputs, node.keys, of=node, line=node.line)
    return [first, replace(node, inputs=(Port(first.name),), combined="columns")]
