"""Splits Python aggregates in two, so that less goes over the shuffle."""

from __future__ import annotations

from dataclasses import replace

from penstock.compiler.plan import Plan
from penstock.graph.graph import Graph
from penstock.graph.ids import child
from penstock.graph.nodes import AggregateBy, Combine, Node, Port, Reduce
from penstock.graph.nodes.batch import CombineBatch, KeyedBatch


def combine_early(plan: Plan) -> Plan:
    """The plan of a graph in which each Python aggregate and reduce, and each aggregate of a batch whose values combine, has a combine step before it."""
    nodes = [made for node in plan.graph.nodes for made in _split(node)]
    return Plan(Graph(plan.graph.name, tuple(nodes)), plan.stages)


def _split(node: Node) -> list[Node]:
    if isinstance(node, Reduce):
        first = _combine(node)
        return [first, replace(node, inputs=(Port(first.name),))]
    if isinstance(node, AggregateBy) and node.runs_python and not node.combined:
        first = _combine(node)
        return [first, replace(node, inputs=(Port(first.name),), combined="pickled")]
    if isinstance(node, KeyedBatch) and node.logic.combines and not node.combined:
        half = CombineBatch(child(node.name, "combine"), node.inputs[:1], node, line=node.line, on_error=node.on_error)
        return [half, replace(node, inputs=(Port(half.name), *node.inputs[1:]), combined=True)]
    return [node]


def _combine(node: AggregateBy | Reduce) -> Combine:
    return Combine(child(node.name, "combine"), node.inputs, node, line=node.line, on_error=node.on_error)
