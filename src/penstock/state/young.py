"""What was put into a store since its last file, as columns: read like a file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from penstock.graph.arrays import IntArray


class YoungBatch:
    """Entries in memory, in the columns of a state file, sorted by key hash."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.batch = batch
        self.hashes: IntArray = batch.column(0).to_numpy()

    def find(self, hashes: IntArray) -> tuple[IntArray, IntArray]:
        """Where these hashes are: their numbers, and the row of each; a hash that several keys share comes several times."""
        first = np.searchsorted(self.hashes, hashes, "left")
        many = np.searchsorted(self.hashes, hashes, "right") - first
        begin = np.cumsum(many) - many
        rows = np.arange(many.sum()) + np.repeat(first - begin, many)
        return np.repeat(np.arange(len(hashes)), many), rows

    def taken(self, name: str, rows: IntArray) -> pa.Array | None:
        """Some rows of a column; None when there is no such column."""
        at = self.batch.schema.get_field_index(name)
        return None if at < 0 else self.batch.column(at).take(pa.array(rows))
