"""Makes one step of native steps that compute the same of the same, as two subqueries of a statement do: in a bounded run, which keeps no state by their names."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

from penstock.compiler.plan import Plan
from penstock.graph.expr import Expr
from penstock.graph.graph import Graph
from penstock.graph.nodes import AggregateBy, AssignWindows, Node, Port, Select, Where, WithColumns
from penstock.graph.nodes.relational.whole import WholeStep

MERGED = (AggregateBy, AssignWindows, Select, Where, WithColumns, WholeStep)
_OWN = ("name", "inputs", "outputs", "line")
"""Fields in which equal steps differ; what a step reads is compared by itself."""
_PLAIN = (str, bytes, int, float, type(None))


def merge_equal(plan: Plan) -> Plan:
    """The plan of a graph in which what equal steps emit comes from the first of them."""
    seen: dict[Hashable, str] = {}
    moved: dict[str, str] = {}
    made: list[Node] = []
    for node in plan.graph.ordered:
        inputs = tuple(Port(moved.get(p.step, p.step), p.name) for p in node.inputs)
        first = seen.setdefault((inputs, _shape(node)), node.name) if _is_merged(node) else node.name
        if first != node.name:
            moved[node.name] = first
        else:
            made.append(node if inputs == node.inputs else dataclasses.replace(node, inputs=inputs, outputs=()))
    return Plan(Graph(plan.graph.name, tuple(made), plan.graph.bootstraps), plan.stages) if moved else plan


def _is_merged(node: Node) -> bool:
    return isinstance(node, MERGED) and node.on_error is None and not node.varying and not node.has_functions


def _shape(part: object) -> Hashable:
    """What a setting says, as a value that is equal for equal ones. What is not known is equal to itself only."""
    if isinstance(part, Expr):
        return part.plain().shape()
    if isinstance(part, tuple):
        return tuple(map(_shape, part))
    if isinstance(part, type):
        return part
    if isinstance(part, _PLAIN):
        return (type(part), part)
    if dataclasses.is_dataclass(part):
        names = (f.name for f in dataclasses.fields(part) if not isinstance(part, Node) or f.name not in _OWN)
        return (type(part), *((name, _shape(getattr(part, name))) for name in names))
    return id(part)
