"""Joins consecutive Python steps with no shuffle between them into one pass."""

from __future__ import annotations

from penstock.compiler.merge import runs_in_arrow
from penstock.compiler.plan import NATIVE, PYTHON, Plan, Stage, external
from penstock.graph.graph import Graph
from penstock.graph.nodes import AsRecords, Bolt, Node, Port, Select, Union, Where, WithColumns


def fuse_python(plan: Plan) -> Plan:
    """The plan with each Python stage merged into the Python stage it reads from.

    A union or `as_records` between Python steps computes nothing, so it goes along rather than part them. So do native steps that nobody else
    reads, if Arrow computes them as Spark does: records do not leave the worker to come back to it.
    """
    stages: list[Stage] = []
    for stage in plan.stages:
        way = _way_to(plan.graph, stages, stage)
        if way:
            stages = [s for s in stages if s not in way[1:]]
            stages[stages.index(way[0])] = _merged(*way, stage)
        else:
            stages.append(stage)
    return Plan(plan.graph, tuple(_with_outputs(stages, s) for s in stages))


def _way_to(graph: Graph, stages: list[Stage], stage: Stage) -> list[Stage]:
    """The Python stage that a stage is merged into, and the native ones that go along; empty where it stays apart."""
    joins = len(stage.inputs) == 1 if stage.host == PYTHON else _computes_nothing(graph, stage)
    moves = bool(stage.shuffle or stage.state) and not _stays(graph, stage)
    if moves or not joins:
        return []
    before = [s for s in stages if any(p.step in s.steps for p in stage.inputs)]
    if len(before) != 1:
        return []
    if before[0].host == PYTHON:
        return before
    return _back(graph, stages, stage.inputs[0]) if stage.host == PYTHON else []


def _back(graph: Graph, stages: list[Stage], port: Port) -> list[Stage]:
    """The way back over native steps to a Python stage, from there; empty where there is none."""
    stage = next(s for s in stages if port.step in s.steps)
    if len(graph.readers(port)) != 1 or any(loop.fed_by == port for loop in graph.loops):
        return []
    if stage.host == PYTHON:
        return [stage]
    node = stage.nodes[0]
    if stage.host != NATIVE or not _goes_along(graph, node):
        return []
    way = _back(graph, stages, node.inputs[0])
    return [*way, stage] if way else []


def _goes_along(graph: Graph, node: Node) -> bool:
    """Whether a native step may run between Python steps: it does not part its errors from its records, and Arrow means what Spark means."""
    known = isinstance(node, Select | Where | WithColumns) and node.on_error is None
    return known and runs_in_arrow(node, graph.output(node.inputs[0]).schema)


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


def _merged(host: Stage, *others: Stage) -> Stage:
    nodes = tuple(node for stage in others for node in stage.nodes)
    return Stage(PYTHON, host.nodes + nodes, (), host.shuffle, host.state or any(s.state for s in others))


def _with_outputs(stages: list[Stage], stage: Stage) -> Stage:
    return Stage(stage.host, stage.nodes, external(stages, stage), stage.shuffle, stage.state)
