"""Gives each step a stage of its own, on the host it needs."""

from __future__ import annotations

from penstock.compiler.plan import NATIVE, PYTHON, SINK, SOURCE, Plan, Stage
from penstock.graph.nodes import Bolt, DeadLetters, Feedback, Keyed, Node, Port, Repartition, Sink, Source


def assign_hosts(plan: Plan) -> Plan:
    """One stage per step, in the graph's order."""
    return Plan(plan.graph, tuple(_stage(n) for n in plan.graph.ordered))


def _stage(node: Node) -> Stage:
    ports = tuple(Port(node.name, o.name) for o in node.outputs)
    return Stage(_host(node), (node,), ports, _shuffle(node), state=node.keyed and bool(node.stores))


def _host(node: Node) -> str:
    if isinstance(node, Source | Feedback | DeadLetters):
        return SOURCE
    if isinstance(node, Sink):
        return SINK
    return PYTHON if node.runs_python else NATIVE


def _shuffle(node: Node) -> str:
    if getattr(node, "combined", "") == "columns":
        return ""
    if isinstance(node, Keyed) and node.stays:
        return ""
    if isinstance(node, Keyed):
        return f"by {', '.join(node.keys)}" if node.keys else "to one task"
    if isinstance(node, Repartition):
        return f"by {', '.join(node.fields)}" if node.fields else "evenly"
    if isinstance(node, Bolt):
        return ", ".join(dict.fromkeys(map(str, node.groupings)))
    return ""
