"""What goes into loops where tasks do not see the directory of the driver: one object of the checkpoint for each batch.

Its name can be put once. Of two drivers that try the same batch one fails, so a loop never gets the records of both.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from penstock.connectors.base import Batch, SinkConnector, StagedBatch
from penstock.connectors.files.disk import plain_path
from penstock.connectors.process.feed import parquet_bytes
from penstock.connectors.rows import arrow_of
from penstock.storage import open_storage
from penstock.storage.lease import LeaseLost

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class LoopSink(SinkConnector):
    """Collects what a batch feeds back, and puts it into the storage of the checkpoint."""

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Collects the records; the path in the options is the directory of the loop."""
        return StagedLoop(batch, arrow_of(frame))


class StagedLoop(StagedBatch):
    """Records that wait to be fed back."""

    def __init__(self, batch: Batch, table: pa.Table) -> None:
        self.batch, self.table, self.rows = batch, table, table.num_rows

    def commit(self) -> None:
        """Puts them; the next batch reads them.

        Raises:
            LeaseLost: another driver has put what this batch feeds back.
        """
        if not self.rows:
            return
        batch, content = self.batch, bytes(parquet_bytes(self.table))
        storage, name = (
            open_storage(Path(plain_path(batch.options["path"]))),
            f"{batch.sink}-{batch.id:08d}-{batch.lineage}-00000.parquet",
        )
        if not storage.put_if_absent(name, content) and storage.read(name) != content:
            raise LeaseLost(f"another driver of this flow has written {name}; this one stops, and the other goes on")
