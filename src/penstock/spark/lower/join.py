"""Joins as DataFrames."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import functions as f

from penstock.connectors.rows import arrow_of
from penstock.graph.nodes import JoinStatic, Node, Port
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering


def join_static(at: Lowering, node: JoinStatic) -> None:
    """A broadcast join with the table."""
    table = f.broadcast(at.tables(node, node.table))
    joined = at.input(node).join(table, list(node.on), node.how)
    at.give(Port(node.name), joined.selectExpr(*map(quote, node.output().schema.names)))


def rules_of(at: Lowering, node: Node) -> tuple[tuple[Port, bytes], ...]:
    """All rules as they stand in this batch: worked out first, in a job of their own, so that every event sees them."""
    rules = arrow_of(at.input(node, 1))
    into = pa.BufferOutputStream()
    with pa.ipc.new_stream(into, rules.schema) as writer:
        writer.write_table(rules)
    return ((node.inputs[1], into.getvalue().to_pybytes()),)
