"""Native aggregates as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.graph.aggregates import ROWS, Aggregate
from penstock.graph.expr import to_sql
from penstock.graph.nodes import AggregateBy, Parts, Port
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def parts(at: Lowering, node: Parts) -> None:
    """A `groupBy` over the batch. Its shuffle brings each key to the task that owns it, ready for the merge.

    The repartition says so. Spark leaves it out where its own shuffle does the same, and needs it where the input was
    partitioned otherwise and no shuffle was made.
    """
    at.spark.conf.set("spark.sql.shuffle.partitions", str(at.tasks_of(node.of)))
    parts = _grouped(at, node.of, node, f"count(*) as {ROWS}")
    at.give(Port(node.name), parts.repartition(at.tasks_of(node.of), *map(quote, node.keys)))


def aggregate(at: Lowering, node: AggregateBy) -> None:
    """The whole of a bounded aggregate."""
    made = _grouped(at, node, node).selectExpr(*map(quote, node.keys), *map(_result, node.aggregates))
    at.give(Port(node.name), made)


def _grouped(at: Lowering, node: AggregateBy, reads: AggregateBy | Parts, *more: str) -> DataFrame:
    made = [f.expr(part) for part in (*(p for each in node.aggregates for p in _parts(each)), *more)]
    return at.input(reads).groupBy(*map(quote, node.keys)).agg(*made)


def _parts(each: Aggregate) -> list[str]:
    argument = to_sql(each.argument) if each.argument is not None else "*"
    made = zip(each.part_fields, each.recipe.parts, strict=True)
    return [f"cast({part.sql.format(argument)} as {x.type}) as {quote(x.name)}" for x, part in made]


def _result(each: Aggregate) -> str:
    names = [quote(x.name) for x in each.part_fields]
    made = f"case when {names[1]} > 0 then {names[0]} / {names[1]} end" if each.recipe.finish == "ratio" else names[0]
    return f"cast({made} as {each.type}) as {quote(each.name)}"
