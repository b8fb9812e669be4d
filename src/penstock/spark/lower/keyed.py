"""Native aggregates as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.graph.aggregates.aggregate import ROWS
from penstock.graph.nodes import AggregateBy, Parts, Port
from penstock.graph.nodes.base import COUNT
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.sql import part_sql, result_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def parts(at: Lowering, node: Parts) -> None:
    """A `groupBy` over the batch. Its shuffle brings each key to the task that owns it, ready for the merge.

    The repartition says so. Spark leaves it out where its own shuffle does the same, and needs it where the input was
    partitioned otherwise and no shuffle was made.
    """
    parts = _grouped(at, node.of, node, f"count(*) as {ROWS}")
    at.give(Port(node.name), parts.repartition(at.tasks_of(node.of), *map(quote, node.keys)))


def aggregate(at: Lowering, node: AggregateBy) -> None:
    """The whole of a bounded aggregate."""
    count = [f"1L as {COUNT}"] if node.counted else []
    results = [*map(quote, node.keys), *(result_sql(a) for a in node.aggregates), *count]
    made = _grouped(at, node, node).selectExpr(*results)
    at.give(Port(node.name), made)


def _grouped(at: Lowering, node: AggregateBy, reads: AggregateBy | Parts, *more: str) -> DataFrame:
    made = [f.expr(part) for part in (*(p for each in node.aggregates for p in part_sql(each)), *more)]
    return at.input(reads).groupBy(*map(quote, node.keys)).agg(*made)
