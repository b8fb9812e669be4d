"""Moves between tasks, as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.graph.nodes import Port, Repartition
from penstock.graph.types import quote
from penstock.kernels.state import GROUPS
from penstock.spark.lower.context import Lowering

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def repartition(at: Lowering, node: Repartition) -> None:
    """`repartition`, evenly or by fields."""
    columns = [f.col(quote(n)) for n in node.fields]
    at.give(Port(node.name), at.input(node).repartition(at.tasks_of(node), *columns))


def group_of(keys: tuple[str, ...]) -> Column:
    """The key group of a record, as a column.

    Spark sends a record to task `hash(keys) mod tasks`. The group is the same hash modulo 128, so with a power of two of
    tasks all keys of a group go to task `group mod tasks`.
    """
    hashed = f.hash(*(f.col(quote(k)) for k in keys))
    return f.pmod(hashed, f.lit(GROUPS)).cast("int").alias("__group")


def by_key(frame: DataFrame, keys: tuple[str, ...], tasks: int, *, ordered: bool) -> DataFrame:
    """The records at the task that owns their key, with their key group; in the order they came, if asked."""
    if ordered:
        frame = frame.withColumn("__order", f.monotonically_increasing_id())
    moved = frame.repartition(tasks, *(f.col(quote(k)) for k in keys))
    if ordered:
        moved = moved.sortWithinPartitions("__order").drop("__order")
    return moved.select("*", group_of(keys))
