"""Leaves out the steps whose records reach no sink."""

from __future__ import annotations

from penstock.compiler.plan import Plan
from penstock.graph.nodes import Feedback, Node, Sink


def prune_unused(plan: Plan) -> Plan:
    """The plan with only the stages that a sink or a loop needs."""
    needed: set[str] = set()
    waiting: list[Node] = [*plan.graph.sinks, *plan.graph.loops]
    while waiting:
        node = waiting.pop()
        if node.name not in needed:
            needed.add(node.name)
            waiting += map(plan.graph.node, _reads(node))
    return Plan(plan.graph, tuple(s for s in plan.stages if s.steps & needed))


def _reads(node: Node) -> list[str]:
    fed = [node.fed_by.step] if isinstance(node, Feedback) and node.fed_by else []
    return [p.step for p in node.inputs] + fed


def unused(plan: Plan) -> tuple[str, ...]:
    """The steps that were left out."""
    kept = {name for stage in plan.stages for name in stage.steps}
    return tuple(n.name for n in plan.graph.nodes if n.name not in kept and not isinstance(n, Sink))
