"""Joins consecutive native steps into one stage; Spark generates one loop for them."""

from __future__ import annotations

from penstock.compiler.plan import NATIVE, Plan, Stage, external
from penstock.graph.nodes import Port


def fuse_native(plan: Plan) -> Plan:
    """The plan with each native stage merged into the native stage it reads from, when nothing else reads that.

    A branch of which several outputs are read stays apart: what it reads can then be shared instead of computed anew
    for each output.
    """
    stages: list[Stage] = []
    for stage in plan.stages:
        host = _host_of(plan, stages, stage)
        if host is None:
            stages.append(stage)
        else:
            stages[stages.index(host)] = Stage(NATIVE, host.nodes + stage.nodes, (), host.shuffle, host.state)
    return Plan(plan.graph, tuple(_with_outputs(stages, s) for s in stages))


def _host_of(plan: Plan, stages: list[Stage], stage: Stage) -> Stage | None:
    if stage.host != NATIVE or stage.shuffle or stage.state or len(stage.inputs) != 1 or len(stage.outputs) > 1:
        return None
    port = stage.inputs[0]
    before = next(s for s in stages if port.step in s.steps)
    last = before.nodes[-1]
    joined = before.host == NATIVE and last.name == port.step and len(last.outputs) == 1
    return before if joined and _reads(plan, port) == 1 else None


def _reads(plan: Plan, port: Port) -> int:
    """How often a stream is read; twice by a union of it with itself, and once by a loop that it feeds."""
    fed = sum(port == n.fed_by for n in plan.graph.loops)
    return fed + sum(n.inputs.count(port) for n in plan.graph.readers(port))


def _with_outputs(stages: list[Stage], stage: Stage) -> Stage:
    return Stage(stage.host, stage.nodes, external(stages, stage), stage.shuffle, stage.state)
