"""Leaves out the steps whose records reach no sink."""

from __future__ import annotations

from penstock.compiler.plan import Plan, Stage
from penstock.graph.nodes import Sink


def prune_unread(plan: Plan) -> Plan:
    """The plan with only the stages that a sink or a loop needs."""
    needed = {n.name for n in plan.graph.sinks}
    grown = -1
    while grown != len(needed):
        grown = len(needed)
        needed |= {s for stage in plan.stages for s in _reads(stage) if stage.steps & needed}
    return Plan(plan.graph, tuple(s for s in plan.stages if s.steps & needed))


def _reads(stage: Stage) -> set[str]:
    fed = {n.fed_by.step for n in stage.nodes if getattr(n, "fed_by", None) is not None}
    return {p.step for p in stage.inputs} | fed


def unread(plan: Plan) -> tuple[str, ...]:
    """The steps that were left out."""
    kept = {name for stage in plan.stages for name in stage.steps}
    return tuple(n.name for n in plan.graph.nodes if n.name not in kept and not isinstance(n, Sink))
