"""Joins keyed steps with those they read from into one pass, where the rows of a key are in one task already.

A join of two totals by one key is made where the totals are: their parts move once, and nothing else does. Native steps that stand between
go along, if Arrow computes them as Spark does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.compiler.merge import merged_into, runs_in_arrow, with_outputs
from penstock.compiler.plan import NATIVE, PYTHON, Plan, Stage
from penstock.graph.expr import Column
from penstock.graph.graph import Graph
from penstock.graph.nodes import Keyed, Node, Port, Select, Where, WithColumns
from penstock.graph.nodes.changes import AggregateChanges, ConsolidateEarly, FoldChanges, Retract, TableJoin, TopChanges

FOLLOWS = (AggregateChanges, FoldChanges, Retract, TableJoin, TopChanges)
"""Steps that can be made where the rows they read are: those over tables that change."""


def fuse_keyed(plan: Plan) -> Plan:
    """The plan with each keyed stage merged into those that emit its rows by the same key."""
    stages = list(plan.stages)
    for stage in plan.stages:
        stages = _fused(plan.graph, stages, stage) or stages
    return Plan(plan.graph, tuple(with_outputs(stages, s) for s in stages))


def _fused(graph: Graph, stages: list[Stage], stage: Stage) -> list[Stage] | None:
    """The stages with one merged into those it reads from, or into one of them; None where that cannot be."""
    step = stage.nodes[0]
    if not isinstance(step, FOLLOWS) or stage not in stages or not step.keys or step.on_error is not None:
        return None
    if step.ordered and len(step.inputs) > 1:
        return None
    trace = _Trace(graph, stages, step)
    found = [way for at, port in enumerate(step.inputs) if (way := trace.back(port, step.keys_of(at))) is not None]
    together = [stage for way in found for stage in way]
    return next((made for way in (together, *found) if (made := merged_into(stages, stage, way)) is not None), None)


@dataclass(frozen=True)
class _Trace:
    """The way back from a keyed step to the stage that emits its rows by the same key."""

    graph: Graph
    stages: Sequence[Stage]
    step: Keyed

    def back(self, port: Port, keys: tuple[str, ...]) -> list[Stage] | None:
        """The stages on the way, and the one at its end; None where rows of a key may be in several tasks."""
        node = self.graph.node(port.step)
        stage = next((s for s in self.stages if node.name in s.steps), None)
        if stage is None:
            return None
        if isinstance(node, Keyed):
            return [stage] if self._emits(stage, node, keys) else None
        before = self._keys_before(node, keys) if stage.host == NATIVE and node.on_error is None else None
        found = None if before is None else self.back(node.inputs[0], before)
        return None if found is None else [*found, stage]

    def _emits(self, stage: Stage, node: Keyed, keys: tuple[str, ...]) -> bool:
        """Whether a step emits its rows in the task that owns them by these keys."""
        alike = node.carried_key == keys and set(keys) <= set(node.output().schema.names)
        return alike and stage.host == PYTHON and not node.stays and node.parallelism == self.step.parallelism

    def _keys_before(self, node: Node, keys: tuple[str, ...]) -> tuple[str, ...] | None:
        """The fields that the keys are before a native step; None where it changes them, or Arrow does not compute it as Spark does."""
        schema = self.graph.output(node.inputs[0]).schema
        if not runs_in_arrow(node, schema):
            return None
        if isinstance(node, Where | ConsolidateEarly):
            return keys
        if not isinstance(node, Select | WithColumns):
            return None
        columns = dict(node.columns)
        made = [columns.get(key, Column(key) if isinstance(node, WithColumns) else None) for key in keys]
        names = tuple(each.name for each in made if isinstance(each, Column))
        return names if len(names) == len(keys) else None
