"""What the benchmarks of topologies share: runs of one, live, and spouts of lines."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from penstock.graph.graph import Graph

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LINE = "the quick brown fox jumps over the lazy dog again"
"""Ten words."""


class Lines(ps.Spout):
    """So many lines of ten words; with ids if it is reliable."""

    outputs = "line string"

    def __init__(self, many: int, reliable: bool, chunk: int = 1000) -> None:
        self.left, self.reliable, self.chunk, self.at = many, reliable, chunk, 0

    def next_tuple(self) -> Any:
        """The next lines."""
        many = min(self.chunk, self.left)
        for _ in range(many):
            self.at += 1
            self.emit((f"{LINE} {self.at % 5000}",), id=self.at if self.reliable else None)
        self.left -= many
        return None if self.left else ps.END


def drain(spark: SparkSession, graph: Graph, directory: Path, module: str) -> None:
    """Runs a topology over all that its spouts emit."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_bounded

    shutil.rmtree(directory, ignore_errors=True)
    run_bounded(graph, spark, RunSpec(by_value=(module, __name__)))
