"""Files that a flow puts into its checkpoint for its own sources, read by tasks.

Tasks on other machines do not see the directory of the driver. It has only the names of the files then, and tasks read what is in them from the storage of the checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.accumulators import AccumulatorParam

from penstock.connectors.malformed import ARROW, MALFORMED
from penstock.graph.run.master import is_on_one_machine
from penstock.graph.schema import Schema
from penstock.kernels.records.arrow import arrow_schema
from penstock.location import file_url
from penstock.storage import Storage, has_only_name, open_storage, shared_side

if TYPE_CHECKING:
    from pyspark import Accumulator
    from pyspark.sql import DataFrame, SparkSession

FileRows = dict[str, int]
"""How many rows files have, by name."""


class FileRowsParam(AccumulatorParam[FileRows]):
    """Takes in the rows of files; a file that is read twice counts once."""

    def zero(self, value: FileRows) -> FileRows:
        """No file yet."""
        return {}

    def addInPlace(self, value1: FileRows, value2: FileRows) -> FileRows:  # noqa: N802 - Spark's name
        """Two reports together."""
        return value1 | value2


@dataclass(frozen=True)
class FedReader:
    """What a task does with the numbers of files: it reads the files.

    Attributes:
        storage: What keeps them.
        names: Their names.
        schema: The fields of their records.
        rows: Gets the number of rows of each.
    """

    storage: Storage
    names: tuple[str, ...]
    schema: Schema
    rows: Accumulator[FileRows] | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records of the files."""
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from self._read(self.names[number])

    def _read(self, name: str) -> Iterator[pa.RecordBatch]:
        table = read_table(self.storage, name, self.schema)
        if self.rows is not None:
            self.rows.add({name: table.num_rows})
        yield from table.to_batches()


def read_table(storage: Storage, name: str, schema: Schema) -> pa.Table:
    """The records of a file."""
    content = pa.BufferReader(storage.read(name))
    table = pq.read_table(content, partitioning=None, coerce_int96_timestamp_unit="us")
    wanted = arrow_schema(schema)
    if MALFORMED in schema.names and MALFORMED not in table.column_names:
        table = table.append_column(wanted.field(MALFORMED), pa.nulls(table.num_rows, ARROW))
    return table.select(list(schema.names)).cast(wanted)


def stored_frame(
    spark: SparkSession,
    storage: Storage,
    names: Sequence[str],
    schema: Schema,
    rows: Accumulator[FileRows] | None = None,
) -> DataFrame:
    """The records of files that tasks read from a storage: a few files for each."""
    tasks = min(len(names), max(1, spark.sparkContext.defaultParallelism))
    reader = FedReader(storage, tuple(names), schema, rows)
    return spark.range(0, len(names), 1, tasks).mapInArrow(reader, str(schema))


def fed_frame(spark: SparkSession, folder: Path, names: Sequence[str], schema: Schema) -> DataFrame:
    """The records of files in a folder of the driver, wherever tasks run."""
    storage = open_storage(folder)
    if has_only_name(storage, names[0]):
        return stored_frame(spark, shared_side(storage), names, schema)
    if is_on_one_machine(str(spark.sparkContext.master)):
        return spark.read.schema(str(schema)).parquet(*(file_url(folder / name) for name in names))
    tables = [read_table(storage, name, schema) for name in names]
    return spark.createDataFrame(pa.concat_tables(tables), schema=str(schema))
