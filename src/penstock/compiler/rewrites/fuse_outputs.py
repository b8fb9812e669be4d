"""Joins native steps that narrow what a Python pass emits into the pass, so that less leaves it.

An aggregate over a table moves its rows to another key. Of these it reads few fields, and many rows are equal by them: the pass that
emits them leaves out the other fields and adds equal rows up.
"""

from __future__ import annotations

from penstock.compiler.merge import merged_into, runs_in_arrow, with_outputs
from penstock.compiler.plan import NATIVE, PYTHON, Plan, Stage
from penstock.graph.graph import Graph
from penstock.graph.nodes import Port, Select, Where, WithColumns
from penstock.graph.nodes.changes import ConsolidateEarly


def fuse_outputs(plan: Plan) -> Plan:
    """The plan with each step that adds rows up early merged into the Python pass whose rows these are."""
    stages = list(plan.stages)
    for stage in plan.stages:
        if isinstance(stage.nodes[0], ConsolidateEarly):
            before = _back(plan.graph, stages, stage.nodes[0].inputs[0])
            stages = merged_into(stages, stage, before) or stages
    return Plan(plan.graph, tuple(with_outputs(stages, s) for s in stages))


def _back(graph: Graph, stages: list[Stage], port: Port) -> list[Stage]:
    """The Python pass that rows come from, and the native steps between; none where these cannot run in it."""
    stage = next((s for s in stages if port.step in s.steps), None)
    if stage is None or stage.host == PYTHON:
        return [] if stage is None else [stage]
    node = graph.node(port.step)
    if stage.host != NATIVE or node.on_error is not None or not isinstance(node, Select | Where | WithColumns):
        return []
    if not runs_in_arrow(node, graph.output(node.inputs[0]).schema):
        return []
    found = _back(graph, stages, node.inputs[0])
    return [*found, stage] if found else []
