"""Joins as DataFrames."""

from __future__ import annotations

from pyspark.sql import functions as f

from penstock.graph.nodes import JoinStatic, Port
from penstock.graph.types import quote
from penstock.spark.lower.context import Lowering


def join_static(at: Lowering, node: JoinStatic) -> None:
    """A broadcast join with the table."""
    table = f.broadcast(at.tables(node, node.table))
    joined = at.input(node).join(table, list(node.on), node.how)
    at.give(Port(node.name), joined.selectExpr(*map(quote, node.output().schema.names)))
