"""Native aggregates as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.graph.aggregates.aggregate import ROWS
from penstock.graph.nodes import AggregateBy, Parts, Port
from penstock.graph.nodes.base import ALL, COUNT
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.ownership import STEERING, needs_steering, steering_sql
from penstock.spark.lower.sql import part_sql, result_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def parts(at: Lowering, node: Parts) -> None:
    """A `groupBy` over the batch. Its shuffle brings each key to the task that owns it, ready for the merge.

    The repartition says so. Spark leaves it out where its own shuffle does the same, and needs it where the input was
    partitioned otherwise and no shuffle was made.
    """
    tasks, keys = at.tasks_of(node.of), [*map(quote, node.keys)]
    frame = at.input(node)
    if needs_steering(tasks):
        frame = frame.selectExpr("*", steering_sql(node.keys, tasks, at.groups))
        keys.append(STEERING)
    parts = _grouped(frame, node.of, keys, f"count(*) as {ROWS}").repartition(tasks, *keys)
    at.give(Port(node.name), parts.drop(STEERING))


def aggregate(at: Lowering, node: AggregateBy) -> None:
    """The whole of a bounded aggregate. Without keys Spark has a row for no rows too."""
    count = [f"1L as {COUNT}"] if node.counted else []
    keys = [] if node.always else [*map(quote, node.keys)]
    shown = [f"0 as {quote(ALL)}"] if node.always else keys
    results = [*shown, *(result_sql(a) for a in node.aggregates), *count]
    at.give(Port(node.name), _grouped(at.input(node), node, keys).selectExpr(*results))


def _grouped(frame: DataFrame, node: AggregateBy, keys: list[str], *more: str) -> DataFrame:
    made = [f.expr(part) for part in (*(p for each in node.aggregates for p in part_sql(each)), *more)]
    return frame.groupBy(*keys).agg(*made)
