"""Bolts: records on their way to tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import NotYet
from penstock.graph.nodes import Bolt
from penstock.spark.lower.context import Lowering

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def routed(at: Lowering, node: Bolt) -> DataFrame:
    """The inputs of a bolt, each record at its task."""
    raise NotYet("bolts on Spark")
