"""Native stateless steps as DataFrames.

Each step is one call with SQL text: a call from Python to the JVM costs a good part of a millisecond, and a batch has
many.
"""

from __future__ import annotations

from functools import reduce

from penstock.graph.expr import Expr
from penstock.graph.nodes import AsRecords, Branch, Explode, Port, Select, Union, Where, WithColumns
from penstock.graph.nodes.changes import ConsolidateEarly
from penstock.graph.types import Field, quote
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.sql import to_sql


def select(at: Lowering, node: Select) -> None:
    """`select` with SQL text, each cast to the type the flow was checked with."""
    types = {x.name: x for x in node.output().schema.fields}
    at.give(Port(node.name), at.input(node).selectExpr(*(_column(types[n], e) for n, e in node.columns)))


def _column(field: Field, written: Expr) -> str:
    return f"cast({to_sql(written)} as {field.type}) as {quote(field.name)}"


def with_columns(at: Lowering, node: WithColumns) -> None:
    """A select of the kept fields and the new ones, in the order of the schema."""
    new = dict(node.columns)
    columns = [_column(x, new[x.name]) if x.name in new else quote(x.name) for x in node.output().schema.fields]
    at.give(Port(node.name), at.input(node).selectExpr(*columns))


def where(at: Lowering, node: Where) -> None:
    """`where` with SQL text."""
    at.give(Port(node.name), at.input(node).where(to_sql(node.condition)))


def explode(at: Lowering, node: Explode) -> None:
    """A select with one `explode` in it."""
    columns = [
        f"explode({to_sql(node.items)}) as {quote(n)}" if n == node.column else quote(n)
        for n in node.output().schema.names
    ]
    at.give(Port(node.name), at.input(node).selectExpr(*columns))


def union(at: Lowering, node: Union) -> None:
    """`unionByName` over all inputs; sources that are read as one stay together."""
    frames = [at.frames[p] for p in node.inputs]
    together = at.union(node.inputs)
    at.give(Port(node.name), together or reduce(lambda one, other: one.unionByName(other), frames))


def as_is(at: Lowering, node: AsRecords | ConsolidateEarly) -> None:
    """Nothing changes but what the stream means."""
    at.give(Port(node.name), at.input(node))


def branch(at: Lowering, node: Branch) -> None:
    """A filter for each output that is read: its own condition, and none of those before it."""
    before: list[str] = []
    for name, condition in (*node.conditions, ("otherwise", None)):
        mine = f"coalesce({to_sql(condition)}, false)" if isinstance(condition, Expr) else "true"
        if at.plan.graph.readers(Port(node.name, name)):
            at.give(Port(node.name, name), at.input(node).where(" and ".join([mine, *before])))
        before.append(f"not {mine}")
