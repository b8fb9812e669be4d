"""Records that are made rather than read: from memory, by a clock, by a function."""

from __future__ import annotations

import hashlib
import itertools
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.base import SourceConnector, SourceContext
from penstock.connectors.process.feed import parquet_bytes
from penstock.connectors.process.numbers import FIELDS, Numbers
from penstock.connectors.ranges import stream_of
from penstock.errors import CheckpointError, SchemaError
from penstock.kernels.records.arrow import to_batch
from penstock.kernels.records.chunk import shape_of
from penstock.kernels.records.records import BadRecord
from penstock.location import file_url
from penstock.storage import make_directory, names_under, open_storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class ItemsSource(SourceConnector):
    """Rows from memory. Live, they come as one file per batch, so that a replay reads the same rows."""

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The rows, in the number of parts the endpoint asks for."""
        folder = context.folder / "items"
        write_parts(folder, _parts(context.options["rows"], context.options["batches"]), context)
        reader = spark.readStream.schema(str(context.schema)).option("maxFilesPerTrigger", 1)
        return reader.parquet(file_url(folder))

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The rows, all at once."""
        return spark.createDataFrame(_table(context.options["rows"], context), schema=str(context.schema))


def _parts(rows: list[Any], batches: int | list[int]) -> list[list[Any]]:
    """The rows in so many parts, or cut at the given positions."""
    cuts = batches if isinstance(batches, list) else [len(rows) * i // batches for i in range(1, batches)]
    cuts_at = [0, *cuts, len(rows)]
    return [rows[a:b] for a, b in itertools.pairwise(cuts_at)]


def _table(rows: list[Any], context: SourceContext) -> pa.Table:
    try:
        columns = shape_of(context.schema).columns(list(rows))
    except BadRecord as error:
        raise SchemaError(f"source {context.step!r}: item {error.at + 1}, {rows[error.at]!r}: {error}") from None
    return pa.Table.from_batches([to_batch(columns, context.schema)])


def write_parts(folder: Path, parts: list[list[Any]], context: SourceContext) -> None:
    """A Parquet file for each part, named and dated so that Spark reads them in this order."""
    make_directory(folder)
    storage = open_storage(folder.parent)
    for at, part in enumerate(parts):
        table = _table(part, context)
        name = hashlib.sha1(repr(table.to_pydict()).encode(), usedforsecurity=False).hexdigest()[:12]
        file, there = f"{folder.name}/part-{at:06d}-{name}.parquet", f"{folder.name}/part-{at:06d}-"
        known = names_under(storage, there)
        if any(other != file for other in known):
            raise CheckpointError(
                f"source {context.step!r}: its items are not those that this checkpoint began with; start afresh with --fresh"
            )
        if not known:
            storage.write(file, parquet_bytes(table))
            _date(folder.parent / file, at)


def _date(path: Path, at: int) -> None:
    """Dates a part that Spark sees as a file: it reads files in the order of their dates."""
    if path.is_file():
        os.utime(path, (1_000_000_000 + at, 1_000_000_000 + at))


class RateSource(SourceConnector):
    """Numbers that count up."""

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """So many numbers a second; up to a limit they are a source of Penstock's, for Spark's would have more for ever."""
        per_second, limit = context.options["rows_per_second"], context.options.get("limit")
        if limit is None:
            return spark.readStream.format("rate").option("rowsPerSecond", per_second).load()
        tasks = spark.sparkContext.defaultParallelism
        return stream_of(spark, Numbers(per_second, limit, tasks), context, FIELDS)

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The numbers up to the limit, dated from now on."""
        if "limit" not in context.options:
            return super().bounded(spark, context)
        step = 1.0 / context.options["rows_per_second"]
        at = f"timestamp_micros(unix_micros(current_timestamp()) + cast(id * {step} * 1000000 as bigint)) as timestamp"
        return spark.range(context.options["limit"]).selectExpr(at, "id as value")


class SocketSource(SourceConnector):
    """Lines from a TCP socket."""

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """Spark's own socket source; for demos."""
        reader = spark.readStream.format("socket")
        return reader.option("host", context.options["host"]).option("port", context.options["port"]).load()
