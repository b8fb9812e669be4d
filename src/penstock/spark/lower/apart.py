"""Keeps stages with state apart from unions.

Spark numbers the tasks of a union one input after the other. A stage with state that ran inside such a task would take itself for
another, so where its records go into a union (of streams, or of the inputs of a step) without a shuffle between, one is put in.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.compiler.plan import Plan, Stage
from penstock.graph.nodes import Node, Port
from penstock.spark.lower.context import Lowering

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def apart(at: Lowering, stage: Stage, made: DataFrame) -> DataFrame:
    """What a stage emits, after a shuffle if it needs one. The records of a task stay together, in their order."""
    has_state = any(store in at.states for n in stage.nodes for store in n.stores)
    if not has_state or not united(at.plan, stage.outputs, stage.steps):
        return made
    tasks = at.tasks_of(stage.nodes[0])
    return made.selectExpr("*", "spark_partition_id() as __part").repartitionById(tasks, "__part").drop("__part")


def united(plan: Plan, ports: tuple[Port, ...], own: frozenset[str] = frozenset()) -> bool:
    """Whether some of these streams go into a union without a shuffle on the way; the steps of their own stage are not on it."""
    readers = (node for port in ports for node in plan.graph.readers(port) if node.name not in own)
    return any(_unites(plan, node) for node in readers)


def _unites(plan: Plan, node: Node) -> bool:
    if len(node.inputs) > 1:
        return True
    kept = [s for s in plan.stages if node.name in s.steps]
    if not kept or kept[0].shuffle:
        return False
    return united(plan, tuple(Port(node.name, o.name) for o in node.outputs))
