"""The input of batches that the flow itself has put into its checkpoint, where tasks do not see the directory of the driver.

Spark finds the names of the files and notes which batch takes them; the files that it sees are empty. What is in them is read by tasks from the storage of the checkpoint.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.connectors.malformed import kept_schema
from penstock.connectors.process.fed import FileRows, FileRowsParam, stored_frame
from penstock.graph.endpoints.parsing import keeps_malformed
from penstock.graph.schema import Schema
from penstock.spark.batch.sources import Sources
from penstock.spark.checkpoint.directory import Checkpoint
from penstock.spark.checkpoint.entries import FedFiles
from penstock.storage import Storage, open_storage

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession


@dataclass
class FedInput:
    """What the batches of a run take of such files, and how many rows they had."""

    sources: Sources
    files: FedFiles
    storage: Storage
    read: Accumulator[FileRows]
    _names: dict[int, list[str]] = field(default_factory=dict)
    """The files of the batch under way, by the index of the source."""
    _rows: dict[int, dict[str, int]] = field(default_factory=dict)
    """The rows of each source, by batch."""

    @classmethod
    def of(cls, spark: SparkSession, sources: Sources, checkpoint: Checkpoint) -> FedInput | None:
        """That of a run; None where Spark reads the files itself."""
        if checkpoint.fed is None:
            return None
        rows = spark.sparkContext.accumulator({}, FileRowsParam())
        return cls(sources, checkpoint.fed, open_storage(checkpoint.folder), rows)

    def completed(self, batch: DataFrame, number: int) -> DataFrame:
        """A batch with the records of the files that it takes."""
        count = len(self.sources.nodes)
        self._names = {at: names for at, names in self.files.names(number).items() if at < count}
        self.read.value = {}
        spark = batch.sparkSession
        frames = {
            at: stored_frame(spark, self.storage, names, self._schema(at), self.read)
            for at, names in self._names.items()
        }
        return self.sources.completed(batch, frames)

    def _schema(self, at: int) -> Schema:
        node = self.sources.nodes[at]
        return kept_schema(node.output().schema, keeps_malformed=keeps_malformed(node))

    def finish(self, number: int) -> None:
        """Counts the rows of a batch whose work is done."""
        self._rows[number] = {self.sources.nodes[at].name: self._count(names) for at, names in self._names.items()}

    def _count(self, names: list[str]) -> int:
        return sum(self.read.value.get(name, 0) for name in names)

    def rows(self, number: int) -> dict[str, int]:
        """The rows of each source in a batch; asked for once."""
        return self._rows.pop(number, {})
