"""Ticks: batches without records, so that windows close, timers fire and dead letters are replayed while the input is quiet.

Spark runs a batch when a source has something new. The ticks of a flow are a source of their own: a folder into which the
driver puts an empty-handed file whenever time has work to do.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.compiler.times import Timeline
from penstock.graph.graph import Graph
from penstock.graph.nodes import DEAD_LETTER
from penstock.location import file_url
from penstock.storage import make_directory, open_storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "__ticks"


def has_ticks(graph: Graph) -> bool:
    """Whether a flow may have work without records: a step that does something when time moves, or dead letters to replay."""
    policies = [getattr(node, "on_error", None) for node in graph.nodes]
    keeps_dead_letters = any(p is not None and p.action == DEAD_LETTER for p in policies)
    return Timeline(graph).timed or keeps_dead_letters or any(source.searched for source in graph.sources)


@dataclass(frozen=True)
class Ticks:
    """The ticks of a flow."""

    folder: Path

    def put(self) -> None:
        """Makes Spark run a batch."""
        open_storage(self.folder).write(f"tick-{time.time_ns():020d}", b"tick\n")

    def stream(self, spark: SparkSession) -> DataFrame:
        """The ticks as a streaming frame; those that have been read are removed."""
        make_directory(self.folder)
        reader = spark.readStream.format("text").option("cleanSource", "delete")
        # A tick says nothing: a worker that does not see the directory of the driver skips it.
        reader = reader.option("ignoreMissingFiles", True)
        return reader.load(file_url(self.folder))
