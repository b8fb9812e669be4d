"""Files: text lines, JSON lines, CSV and Parquet, read from any file system Spark knows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import Place, SourceConnector, Spot
from penstock.connectors.disk import plain_path
from penstock.connectors.manifests import committed_files
from penstock.graph.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class FilesSource(SourceConnector):
    """A folder or a glob; live, it is watched for new files."""

    def stream(self, spark: SparkSession, place: Place) -> DataFrame:
        """The files that are there, then those that come."""
        reader = spark.readStream.format(place.options["format"]).schema(str(place.schema)).options(**_options(place))
        if "files_per_batch" in place.options:
            reader = reader.option("maxFilesPerTrigger", place.options["files_per_batch"])
        return reader.load(place.options["path"]).select(*map(quote, place.schema.names))

    def bounded(self, spark: SparkSession, place: Place) -> DataFrame:
        """The files that are there; in a folder that a sink of Penstock has written, those of whole batches."""
        path = place.options["path"]
        reader = spark.read.format(place.options["format"]).schema(str(place.schema)).options(**_options(place))
        return reader.load(committed_files(path) or path).select(*map(quote, place.schema.names))

    def locate(self, spark: SparkSession, place: Place, spot: Spot) -> str:
        """The file and the place in it: the batch's files are read again, which gives the same partitions."""
        paths = _batch_files(spot) or [place.options["path"]]
        reader = spark.read.format(place.options["format"]).schema(str(place.schema)).options(**_options(place))
        rows = reader.load(paths).selectExpr(
            "*", "_metadata.file_path as __file", "monotonically_increasing_id() as __id"
        )
        wanted = (spot.partition << 33) + spot.number
        found = rows.where(f"__id = {wanted}").collect()
        if len(found) != 1 or not _reads(found[0], place, spot.record):
            return ""
        nth = rows.where(f"__id <= {wanted}").where(rows["__file"] == found[0]["__file"]).count()
        unit = "line" if place.options["format"] == "text" else "record"
        return f"{plain_path(found[0]['__file'])}, {unit} {nth}"


def _reads(row: Any, place: Place, record: str) -> bool:
    """Whether it is the record looked for, and not another because partitions fell otherwise."""
    return all(repr(row[n]) in record for n in place.schema.names)


def _batch_files(spot: Spot) -> list[str]:
    """The files of a live batch, from Spark's log of them; empty in a bounded run."""
    log = spot.checkpoint / str(spot.batch) if spot.checkpoint is not None else None
    if log is None or not log.exists():
        return []
    entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
    return [e["path"] for e in entries if e["batchId"] == spot.batch]


def _options(place: Place) -> dict[str, Any]:
    options: dict[str, Any] = {"mode": "FAILFAST"} if place.options["format"] in ("csv", "json") else {}
    if place.options["format"] == "csv":
        options |= {"header": place.options["header"], "enforceSchema": False}
    return options
