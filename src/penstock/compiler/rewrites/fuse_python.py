"""Joins consecutive Python steps with no shuffle between them into one pass."""

from __future__ import annotations

from penstock.compiler.plan import PYTHON, Plan, Stage, external
from penstock.graph.graph import Graph
from penstock.graph.nodes import AsRecords, Bolt, Union


def fuse_python(plan: Plan) -> Plan:
    """The plan with each Python stage merged into the Python stage it reads from.

    A union or `as_records` between Python steps computes nothing, so it goes along rather than part them.
    """
    stages: list[Stage] = []
    for stage in plan.stages:
        host = _host_of(plan.graph, stages, stage)
        if host is None:
            stages.append(stage)
        else:
            stages[stages.index(host)] = _merged(host, stage)
    return Plan(plan.graph, tuple(_with_outputs(stages, s) for s in stages))


def _host_of(graph: Graph, stages: list[Stage], stage: Stage) -> Stage | None:
    joins = len(stage.inputs) == 1 if stage.host == PYTHON else _computes_nothing(graph, stage)
    moves = bool(stage.shuffle or stage.state) and not _stays(graph, stage)
    if moves or not joins:
        return None
    before = [s for s in stages if any(p.step in s.steps for p in stage.inputs)]
    return before[0] if len(before) == 1 and before[0].host == PYTHON else None


def _computes_nothing(graph: Graph, stage: Stage) -> bool:
    node = stage.nodes[0]
    if not isinstance(node, Union | AsRecords):
        return False
    made = node.output().schema
    given = [graph.output(p).schema for p in node.inputs]
    return all(s == made and s.record is made.record for s in given)


def _stays(graph: Graph, stage: Stage) -> bool:
    """Whether this is a bolt whose tuples come from the task of the same number."""
    node = stage.nodes[0]
    return isinstance(node, Bolt) and node.stays_with(graph.node(node.inputs[0].step))


def _merged(host: Stage, stage: Stage) -> Stage:
    return Stage(PYTHON, host.nodes + stage.nodes, (), host.shuffle, host.state or stage.state)


def _with_outputs(stages: list[Stage], stage: Stage) -> Stage:
    return Stage(stage.host, stage.nodes, external(stages, stage), stage.shuffle, stage.state)
