"""Native stateless steps as DataFrames."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.graph.expr import Expr, to_sql
from penstock.graph.nodes import AsRecords, Branch, Explode, Node, Port, Select, Union, Where, WithColumns
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering

if TYPE_CHECKING:
    from pyspark.sql import Column


def select(at: Lowering, node: Select) -> None:
    """`select` with SQL text, each cast to the type the flow was checked with."""
    types = {x.name: x.type for x in node.output().schema.fields}
    columns = [f.expr(to_sql(e)).cast(str(types[n])).alias(n) for n, e in node.columns]
    at.give(Port(node.name), at.input(node).select(*columns))


def with_columns(at: Lowering, node: WithColumns) -> None:
    """A select of the kept fields and the new ones, in the order of the schema."""
    new = dict(node.columns)
    columns = [
        f.expr(to_sql(new[x.name])).cast(str(x.type)).alias(x.name) if x.name in new else f.col(quote(x.name))
        for x in node.output().schema.fields
    ]
    at.give(Port(node.name), at.input(node).select(*columns))


def where(at: Lowering, node: Where) -> None:
    """`where` with SQL text."""
    at.give(Port(node.name), at.input(node).where(to_sql(node.condition)))


def explode(at: Lowering, node: Explode) -> None:
    """A select with one `explode` in it."""
    columns = [
        f.explode(f.expr(to_sql(node.items))).alias(n) if n == node.column else f.col(quote(n))
        for n in node.output().schema.names
    ]
    at.give(Port(node.name), at.input(node).select(*columns))


def union(at: Lowering, node: Union) -> None:
    """`unionByName` over all inputs."""
    frames = [at.frames[p] for p in node.inputs]
    at.give(Port(node.name), reduce(lambda one, other: one.unionByName(other), frames))


def as_records(at: Lowering, node: AsRecords) -> None:
    """Nothing changes but what the stream means."""
    at.give(Port(node.name), at.input(node))


def branch(at: Lowering, node: Branch) -> None:
    """A filter for each output that is read: its own condition, and none of those before it."""
    before: list[Column] = []
    for name, condition in (*node.conditions, ("otherwise", None)):
        mine = _true(condition) if isinstance(condition, Expr) else f.lit(True)
        if at.plan.graph.readers(Port(node.name, name)):
            at.give(Port(node.name, name), at.input(node).where(reduce(lambda a, b: a & ~b, before, mine)))
        before.append(mine)


def _true(condition: Expr) -> Column:
    return f.coalesce(f.expr(to_sql(condition)), f.lit(False))


def nothing(at: Lowering, node: Node) -> None:
    """For steps whose streams are in place already."""
