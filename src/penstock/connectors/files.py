"""Files: text lines, JSON lines, CSV and Parquet, read from and written to any file system Spark knows."""

from __future__ import annotations

import glob
import json
import shutil
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from penstock.connectors.base import Batch, Place, SinkConnector, SourceConnector, Spot, Staged
from penstock.errors import RunError
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
        """The files that are there."""
        reader = spark.read.format(place.options["format"]).schema(str(place.schema)).options(**_options(place))
        return reader.load(place.options["path"]).select(*map(quote, place.schema.names))

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
        return f"{_plain_path(found[0]['__file'])}, {unit} {nth}"


def _plain_path(address: str) -> str:
    parts = urlsplit(address)
    return unquote(parts.path) if parts.scheme == "file" else address


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


class FilesSink(SinkConnector):
    """A set of files for each batch, named after it. Written aside first, then moved; a rerun replaces its own."""

    def stage(self, frame: DataFrame, batch: Batch) -> Staged:
        """Writes the files aside."""
        path = batch.options["path"]
        aside = f"{path.rstrip('/')}/_penstock/{batch.sink}-{batch.id}-{uuid.uuid4().hex[:8]}"
        staged = StagedFiles(frame, path, aside, batch)
        staged.check_folder()
        staged.rows = _write(frame, batch.options["format"], aside)
        return staged


def _write(frame: DataFrame, kind: str, aside: str) -> int:
    from pyspark.sql import Observation
    from pyspark.sql import functions as f

    counted = Observation()
    frame.observe(counted, f.count(f.lit(1)).alias("rows")).write.mode("overwrite").format(kind).option(
        "header", True
    ).save(aside)
    return int(counted.get["rows"])


class StagedFiles(Staged):
    """Files that wait aside."""

    def __init__(self, frame: DataFrame, path: str, aside: str, batch: Batch) -> None:
        hadoop = HadoopDisk(frame.sparkSession, path)
        self.disk: Disk = LocalDisk() if hadoop.scheme == "file" else hadoop
        self.path, self.aside, self.batch = path, aside, batch
        if hadoop.scheme == "file":
            self.path, self.aside = _plain_path(path), _plain_path(aside)

    def check_folder(self) -> None:
        """A sink that begins must not add to what another life of the flow has written: readers would see all twice."""
        if self.batch.id > 0:
            return
        names = [n for n in self.disk.names(self.path, f"{self.batch.sink}-") if n.count("-") >= 3]
        others = [n for n in names if f"-{self.batch.lineage}-" not in n]
        if others:
            raise RunError(
                f"sink {self.batch.sink!r}: {self.path} holds files of another life of this flow, such as {others[0]} (it was "
                f"started with --fresh, or as --batch). Move them away or write to another folder, then start again"
            )

    def commit(self) -> None:
        """Removes what an earlier run of this batch left, and moves the files into place."""
        prefix = f"{self.batch.sink}-{self.batch.id:08d}-{self.batch.lineage}-"
        for name in self.disk.names(self.path, prefix):
            self.disk.remove(f"{self.path}/{name}")
        made = self.disk.names(self.aside, "part-") if self.rows else []
        if self.rows and not made:
            raise RunError(
                f"sink {self.batch.sink!r}: {self.rows} rows were written to {self.aside}, but no file is there"
            )
        for at, name in enumerate(sorted(made)):
            self.disk.move(f"{self.aside}/{name}", f"{self.path}/{prefix}{at:05d}.{name.split('.', 1)[-1]}")
        self._clear_aside()

    def _clear_aside(self) -> None:
        """Removes this batch's folder, and those that earlier batches left when they were killed."""
        folder = self.aside.rsplit("/", 1)[0]
        for name in self.disk.names(folder, f"{self.batch.sink}-"):
            number = name.removeprefix(f"{self.batch.sink}-").split("-")[0]
            if number.isdigit() and int(number) <= self.batch.id:
                self.disk.remove(f"{folder}/{name}")

    def abort(self) -> None:
        """Removes the files aside."""
        self.disk.remove(self.aside)


class Disk(Protocol):
    """What a sink of files asks of a file system."""

    def names(self, folder: str, prefix: str) -> list[str]:
        """The names in a folder that begin so."""

    def move(self, old: str, new: str) -> None:
        """Gives a file its final name."""

    def remove(self, path: str) -> None:
        """Removes a file or a folder, if it is there."""


class LocalDisk:
    """This machine's disk, without the way through the JVM."""

    def names(self, folder: str, prefix: str) -> list[str]:
        """The names in a folder that begin so."""
        return [p.name for p in Path(folder).glob(f"{glob.escape(prefix)}*")]

    def move(self, old: str, new: str) -> None:
        """Gives a file its final name."""
        Path(old).rename(new)

    def remove(self, path: str) -> None:
        """Removes a file or a folder, if it is there."""
        if Path(path).is_dir():
            shutil.rmtree(path)
        else:
            Path(path).unlink(missing_ok=True)


class HadoopDisk:
    """Any file system that Spark knows."""

    def __init__(self, spark: Any, path: str) -> None:
        self.path_of = spark._jvm.org.apache.hadoop.fs.Path
        self.files = self.path_of(path).getFileSystem(spark._jsc.hadoopConfiguration())
        self.scheme = str(self.files.getUri().getScheme())

    def names(self, folder: str, prefix: str) -> list[str]:
        """The names in a folder that begin so."""
        found = self.files.globStatus(self.path_of(folder, f"{prefix}*")) or []
        return [status.getPath().getName() for status in found]

    def move(self, old: str, new: str) -> None:
        """Gives a file its final name."""
        if not self.files.rename(self.path_of(old), self.path_of(new)):
            raise RunError(f"{old} could not be renamed to {new}")

    def remove(self, path: str) -> None:
        """Removes a file or a folder, if it is there."""
        self.files.delete(self.path_of(path), True)
