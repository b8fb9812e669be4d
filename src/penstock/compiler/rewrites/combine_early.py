"""Splits Python aggregates in two, so that less goes over the shuffle."""

from __future__ import annotations

from dataclasses import replace

from penstock.compiler.plan import Plan
from penstock.graph import types as t
from penstock.graph.graph import Graph
from penstock.graph.nodes import AggregateBy, Combine, Node, Output, Port, Reduce
from penstock.graph.schema import Schema


def combine_early(plan: Plan) -> Plan:
    """The plan of a graph in which each Python aggregate and reduce has a combine step before it."""
    nodes = [made for node in plan.graph.nodes for made in _split(node)]
    return Plan(Graph(plan.graph.name, tuple(nodes)), plan.stages)


def _split(node: Node) -> list[Node]:
    if isinstance(node, Reduce):
        first = Combine(
            f"{node.name}.combine",
            node.inputs,
            (Output(node.output().schema),),
            node,
            line=node.line,
            on_error=node.on_error,
        )
        return [first, replace(node, inputs=(Port(first.name),))]
    if isinstance(node, AggregateBy) and node.runs_python and not node.combined:
        first = Combine(
            f"{node.name}.combine", node.inputs, (Output(_parts(node)),), node, line=node.line, on_error=node.on_error
        )
        return [first, replace(node, inputs=(Port(first.name),), combined="pickled")]
    return [node]


def _parts(node: AggregateBy) -> Schema:
    keys = node.output().schema.only(node.keys).fields
    return Schema((*keys, t.Field("__parts", t.BINARY)), internal=True)
