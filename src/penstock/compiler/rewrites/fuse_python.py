"""Joins consecutive Python steps with no shuffle between them into one pass."""

from __future__ import annotations

from penstock.compiler.plan import PYTHON, Plan, Stage, external


def fuse_python(plan: Plan) -> Plan:
    """The plan with each Python stage merged into the Python stage it reads from."""
    stages: list[Stage] = []
    for stage in plan.stages:
        host = _host_of(stages, stage)
        if host is None:
            stages.append(stage)
        else:
            stages[stages.index(host)] = _merged(host, stage)
    return Plan(plan.graph, tuple(_with_outputs(stages, s) for s in stages))


def _host_of(stages: list[Stage], stage: Stage) -> Stage | None:
    if stage.host != PYTHON or stage.shuffle or stage.state or len(stage.inputs) != 1:
        return None
    before = next(s for s in stages if stage.inputs[0].step in s.steps)
    return before if before.host == PYTHON else None


def _merged(host: Stage, stage: Stage) -> Stage:
    return Stage(PYTHON, host.nodes + stage.nodes, (), host.shuffle, host.state or stage.state)


def _with_outputs(stages: list[Stage], stage: Stage) -> Stage:
    return Stage(stage.host, stage.nodes, external(stages, stage), stage.shuffle, stage.state)
