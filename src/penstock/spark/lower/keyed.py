"""Native aggregates as DataFrames."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.graph.aggregates import Aggregate
from penstock.graph.expr import to_sql
from penstock.graph.nodes import AggregateBy, Parts, Port
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame


def parts(at: Lowering, node: Parts) -> None:
    """A `groupBy` over the batch. Its shuffle brings each key to the task that owns it, ready for the merge."""
    at.spark.conf.set("spark.sql.shuffle.partitions", str(at.tasks_of(node.of)))
    at.give(Port(node.name), _grouped(at, node.of, node))


def aggregate(at: Lowering, node: AggregateBy) -> None:
    """The whole of a bounded aggregate."""
    keys = [f.col(quote(k)) for k in node.keys]
    at.give(Port(node.name), _grouped(at, node, node).select(*keys, *map(_result, node.aggregates)))


def _grouped(at: Lowering, node: AggregateBy, reads: AggregateBy | Parts) -> DataFrame:
    keys = [f.col(quote(k)) for k in node.keys]
    return at.input(reads).groupBy(*keys).agg(*(c for a in node.aggregates for c in _parts(a)))


def _parts(each: Aggregate) -> list[Column]:
    argument = to_sql(each.argument) if each.argument is not None else "*"
    made = zip(each.part_fields, each.recipe.parts, strict=True)
    return [f.expr(part.sql.format(argument)).cast(str(x.type)).alias(x.name) for x, part in made]


def _result(each: Aggregate) -> Column:
    names = [f.col(quote(x.name)) for x in each.part_fields]
    made = f.when(names[1] > 0, names[0] / names[1]) if each.recipe.finish == "ratio" else names[0]
    return made.cast(str(each.type)).alias(each.name)
