"""Bolts: tuples on their way to tasks.

Each tuple gets the number of its task, and `repartitionById` brings it there: partition and task are the same. The
groupings that a column can express never leave the JVM; for the others the producer wrote the task beside the tuple.
Sorting by the order of arrival keeps the tuples of one emitter in order, and makes a rerun the same.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from penstock.graph.nodes import Bolt, Grouping
from penstock.graph.nodes.topology import ROOTS, SEQUENCE, TASK
from penstock.graph.schema import Schema
from penstock.graph.types import Struct, quote
from penstock.spark.lower.context import Lowering

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ROWS = (1 << 33) - 1
"""The part of `monotonically_increasing_id` that counts rows; the rest is the partition."""


def routed(at: Lowering, node: Bolt) -> DataFrame:
    """The inputs of a bolt, each tuple at its task: plain columns of one input, a struct for each of several."""
    routed = [_routed(at, node, input_index) for input_index in range(len(node.inputs))]
    if len(routed) == 1:
        return _moved(routed[0], node.tasks, "__order").drop("__to", "__order")
    packed = [_packed(at, node, input_index, frame) for input_index, frame in enumerate(routed)]
    both = reduce(lambda one, other: one.unionByName(other), packed)
    return _moved(both, node.tasks, "__order", "__input").drop("__to", "__order")


def _moved(frame: DataFrame, tasks: int, *order: str) -> DataFrame:
    return frame.repartitionById(tasks, "__to").sortWithinPartitions(*order)


def _routed(at: Lowering, node: Bolt, input_index: int) -> DataFrame:
    """An input with `__order` and `__to`."""
    grouping, frame = node.groupings[input_index], at.input(node, input_index)
    schema = at.plan.graph.output(node.inputs[input_index]).schema
    kept = [quote(n) for n in _kept(schema, grouping)]
    order = f"{_order(schema)} as __order"
    if grouping.kind == "all":
        return frame.selectExpr(*kept, order).selectExpr("*", f"explode(sequence(0, {node.tasks - 1})) as __to")
    return frame.selectExpr(*kept, order, f"cast({_task(grouping, schema, node.tasks)} as int) as __to")


def _kept(schema: Schema, grouping: Grouping) -> list[str]:
    """The fields a bolt gets: the user's, the roots, and the task where the user named it."""
    wanted = {ROOTS.name, TASK.name} if grouping.kind == "direct" else {ROOTS.name}
    return [n for n in schema.names if not n.startswith("__") or n in wanted]


def _order(schema: Schema) -> str:
    return SEQUENCE.name if SEQUENCE.name in schema else "monotonically_increasing_id()"


def _task(grouping: Grouping, schema: Schema, tasks: int) -> str:
    """The task of each tuple; `penstock.kernels.topology.routing` chooses the same."""
    if grouping.by_column:
        return TASK.name
    if grouping.kind == "global":
        return "0"
    if grouping.kind == "fields":
        return f"pmod(hash({', '.join(map(quote, grouping.fields))}), {tasks})"
    if grouping.kind == "none":
        return f"pmod(hash({_order(schema)}), {tasks})"
    return f"pmod({_turn(schema)}, {tasks})"


def _turn(schema: Schema) -> str:
    """Round robin: a spout's own count, or each partition's, which begin at different tasks."""
    if SEQUENCE.name in schema:
        return SEQUENCE.name
    return f"(monotonically_increasing_id() & {_ROWS}) + spark_partition_id()"


def _packed(at: Lowering, node: Bolt, input_index: int, frame: DataFrame) -> DataFrame:
    """One input among several: `__input` says which, and only its own struct is filled."""
    columns = [f"{input_index} as __input"]
    for i, port in enumerate(node.inputs):
        schema = at.plan.graph.output(port).schema
        fields = tuple(schema.field(n) for n in _kept(schema, node.groupings[i]))
        made = f"struct({', '.join(quote(x.name) for x in fields)})" if i == input_index else "null"
        columns.append(f"cast({made} as {Struct(fields)}) as __i{i}")
    return frame.selectExpr(*columns, "__order", "__to")
