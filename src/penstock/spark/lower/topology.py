"""Bolts: tuples on their way to tasks.

Each tuple gets the number of its task, and `repartitionById` brings it there: partition and task are the same. The
groupings that a column can express never leave the JVM; for the others the producer wrote the task beside the tuple.
Sorting by the order in which they came keeps the tuples of one emitter in order, and makes a rerun the same.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.graph.nodes import Bolt, Grouping
from penstock.graph.nodes.topology import ROOTS, SEQUENCE, TASK
from penstock.graph.schema import Schema
from penstock.graph.types import Struct, quote
from penstock.spark.lower.context import Lowering

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_ROWS = (1 << 33) - 1
"""The part of `monotonically_increasing_id` that counts rows; the rest is the partition."""


def routed(at: Lowering, node: Bolt) -> DataFrame:
    """The inputs of a bolt, each tuple at its task: plain columns of one input, a struct for each of several."""
    placed = [_placed(at, node, place) for place in range(len(node.inputs))]
    if len(placed) == 1:
        return _moved(placed[0], node.tasks, "__order").drop("__to", "__order")
    packed = [_packed(at, node, place, frame) for place, frame in enumerate(placed)]
    both = reduce(lambda one, other: one.unionByName(other), packed)
    return _moved(both, node.tasks, "__order", "__input").drop("__to", "__order")


def _moved(frame: DataFrame, tasks: int, *order: str) -> DataFrame:
    return frame.repartitionById(tasks, f.col("__to")).sortWithinPartitions(*order)


def _placed(at: Lowering, node: Bolt, place: int) -> DataFrame:
    """An input with `__order` and `__to`."""
    grouping, frame = node.groupings[place], at.input(node, place)
    schema = at.plan.graph.output(node.inputs[place]).schema
    kept = [f.col(quote(n)) for n in _kept(schema, grouping)]
    if grouping.kind == "all":
        tasks = f.explode(f.sequence(f.lit(0), f.lit(node.tasks - 1)))
        return frame.select(*kept, _order(schema).alias("__order")).select("*", tasks.alias("__to"))
    return frame.select(
        *kept, _order(schema).alias("__order"), _task(grouping, schema, node.tasks).cast("int").alias("__to")
    )


def _kept(schema: Schema, grouping: Grouping) -> list[str]:
    """The fields a bolt gets: the user's, the roots, and the task where the user named it."""
    wanted = {ROOTS.name, TASK.name} if grouping.kind == "direct" else {ROOTS.name}
    return [n for n in schema.names if not n.startswith("__") or n in wanted]


def _order(schema: Schema) -> Column:
    return f.col(SEQUENCE.name) if SEQUENCE.name in schema else f.monotonically_increasing_id()


def _task(grouping: Grouping, schema: Schema, tasks: int) -> Column:
    """The task of each tuple; `penstock.kernels.routing` chooses the same."""
    if grouping.by_column:
        return f.col(TASK.name)
    if grouping.kind == "global":
        return f.lit(0)
    if grouping.kind == "fields":
        return f.pmod(f.hash(*(f.col(quote(n)) for n in grouping.fields)), f.lit(tasks))
    if grouping.kind == "none":
        return f.pmod(f.hash(_order(schema)), f.lit(tasks))
    return f.pmod(_turn(schema), f.lit(tasks))


def _turn(schema: Schema) -> Column:
    """Round robin: a spout's own count, or each partition's, which begin at different tasks."""
    if SEQUENCE.name in schema:
        return f.col(SEQUENCE.name)
    return f.monotonically_increasing_id().bitwiseAND(f.lit(_ROWS)) + f.spark_partition_id()


def _packed(at: Lowering, node: Bolt, place: int, frame: DataFrame) -> DataFrame:
    """One input among several: `__input` says which, and only its own struct is filled."""
    columns: list[Column] = [f.lit(place).alias("__input")]
    for i, port in enumerate(node.inputs):
        schema = at.plan.graph.output(port).schema
        fields = tuple(schema.field(n) for n in _kept(schema, node.groupings[i]))
        made = f.struct(*(f.col(quote(x.name)) for x in fields)) if i == place else f.lit(None)
        columns.append(made.cast(str(Struct(fields))).alias(f"__i{i}"))
    return frame.select(*columns, "__order", "__to")
