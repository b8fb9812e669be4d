"""Joins consecutive native steps into one stage; Spark generates one loop for them."""

from __future__ import annotations

from penstock.compiler.plan import NATIVE, Plan, Stage, external


def fuse_native(plan: Plan) -> Plan:
    """The plan with each native stage merged into the native stage it reads from, when nothing else reads that."""
    stages: list[Stage] = []
    for stage in plan.stages:
        host = _host_of(plan, stages, stage)
        if host is None:
            stages.append(stage)
        else:
            stages[stages.index(host)] = Stage(NATIVE, host.nodes + stage.nodes, (), host.shuffle, host.state)
    return Plan(plan.graph, tuple(_with_outputs(stages, s) for s in stages))


def _host_of(plan: Plan, stages: list[Stage], stage: Stage) -> Stage | None:
    if stage.host != NATIVE or stage.shuffle or stage.state or len(stage.inputs) != 1:
        return None
    before = next(s for s in stages if stage.inputs[0].step in s.steps)
    alone = len(plan.graph.readers(stage.inputs[0])) == 1 and len(before.nodes[-1].outputs) == 1
    return before if before.host == NATIVE and alone and before.nodes[-1].name == stage.inputs[0].step else None


def _with_outputs(stages: list[Stage], stage: Stage) -> Stage:
    return Stage(stage.host, stage.nodes, external(stages, stage), stage.shuffle, stage.state)
