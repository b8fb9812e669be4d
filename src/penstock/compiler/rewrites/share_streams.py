"""Marks the streams that several stages read, so that they are computed once."""

from __future__ import annotations

from penstock.compiler.plan import NATIVE, SOURCE, Plan, Stage
from penstock.graph.nodes import Branch, Port


def share_streams(plan: Plan) -> Plan:
    """The plan with its shared streams: read more than once, and dear to compute again.

    A native chain on top of a shared stream is cheap, and is computed again rather than kept twice. With several
    sources the union of them is shared as a whole, so that their own streams need not be.
    """
    shared: set[Port] = set()
    for stage in plan.stages:
        if stage.host == SOURCE and _many_sources(plan):
            continue
        shared.update(p for p in stage.outputs if _reads(plan, p) > 1 and not _cheap(plan, stage, shared))
    return Plan(plan.graph, plan.stages, frozenset(shared))


def _many_sources(plan: Plan) -> bool:
    return sum(s.host == SOURCE for s in plan.stages) > 1


def _reads(plan: Plan, port: Port) -> int:
    fed = sum(port == n.fed_by for n in plan.graph.loops)
    return fed + sum(_passes(plan, s, port) for s in plan.readers(port))


def _passes(plan: Plan, stage: Stage, port: Port) -> int:
    """How often a stage goes over its input: a native branch once for each output that is read."""
    first = next(n for n in stage.nodes if port in n.inputs)
    if isinstance(first, Branch) and stage.host == NATIVE:
        return sum(1 for p in stage.outputs if p.step == first.name)
    return 1


def _cheap(plan: Plan, stage: Stage, shared: set[Port]) -> bool:
    if stage.host != NATIVE or stage.shuffle:
        return False
    return all(p in shared or _from_shared(plan, p, shared) for p in stage.inputs)


def _from_shared(plan: Plan, port: Port, shared: set[Port]) -> bool:
    stage = plan.stage_of(port.step)
    if stage.host == SOURCE:
        return _many_sources(plan)
    return _cheap(plan, stage, shared)
