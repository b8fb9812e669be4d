"""Files: text lines, JSON lines, CSV and Parquet, read from any file system Spark knows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from penstock.connectors.base import Place, SourceConnector, Spot
from penstock.connectors.files.disk import plain_path
from penstock.connectors.files.manifests import committed_by_folder
from penstock.connectors.malformed import REPLAYED, UNREAD, from_csv, from_json, raw_rows, read_values
from penstock.graph.types import quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import Row as SparkRow


class FilesSource(SourceConnector):
    """A folder or a glob; live, it is watched for new files."""

    def stream(self, spark: SparkSession, place: Place) -> DataFrame:
        """The files that are there, then those that come."""
        reader = spark.readStream.format(place.options["format"]).schema(_schema(place)).options(**_options(place))
        if "files_per_batch" in place.options:
            reader = reader.option("maxFilesPerTrigger", place.options["files_per_batch"])
        return _fields(reader.load(place.options["path"]), place)

    def bounded(self, spark: SparkSession, place: Place) -> DataFrame:
        """The files that are there; in a folder that a sink of Penstock has written, those of complete batches."""
        path = place.options["path"]
        groups = committed_by_folder(path)
        frames = [_read(spark, place, files, base) for base, files in groups.items()] or [_read(spark, place, path)]
        return _fields(reduce(lambda one, other: one.unionByName(other), frames), place)

    def locate(self, spark: SparkSession, place: Place, spot: Spot) -> str:
        """The file and the place in it: the batch's files are read again, which gives the same partitions."""
        path = place.options["path"]
        paths, base = _batch_files(spot) or [path], path if _is_folder(path) else ""
        number = "monotonically_increasing_id()"
        rows = _read(spark, place, paths, base).selectExpr("*", "_metadata.file_path as __file", f"{number} as __nth")
        good = rows.where(f"{TEXT} is null") if place.keeps_unread else rows
        wanted = (spot.partition << 33) + spot.number
        found = good.selectExpr("*", f"{number} as __id").where(f"__id = {wanted}").collect()
        if len(found) != 1 or not _reads(found[0], place, spot.record):
            return ""
        nth = rows.where(f"__nth <= {found[0]['__nth']}").where(rows["__file"] == found[0]["__file"]).count()
        unit = "line" if place.options["format"] == "text" else "record"
        return f"{plain_path(found[0]['__file'])}, {unit} {nth}"

    def first_unread(self, spark: SparkSession, place: Place, message: str) -> tuple[bytes, str] | None:
        """Spark names the file; it is read again for the record."""
        named = re.search(r"reading file (\S+?)\.?\s", message)
        if "FAILED_READ_FILE" not in message or named is None or place.options["format"] not in ("json", "csv"):
            return None
        keeping = replace(place, keeps_unread=True)
        rows = _fields(_read(spark, keeping, unquote(named.group(1))), keeping)
        found = rows.where(f"{UNREAD} is not null").limit(1).collect()
        return _unread(found[0][UNREAD]) if found else None

    def positions(self, unread: Sequence[tuple[bytes, str]]) -> list[str]:
        """The files, and where they lie on this machine also the lines."""
        lines = {path: _lines(path, {raw for raw, at in unread if at == path}) for path in {at for _, at in unread}}
        return [_position(path, lines[path].get(raw, [])) for raw, path in unread]

    def again(self, spark: SparkSession, place: Place, letters: list[dict[str, Any]]) -> DataFrame:
        """Reads the lines of dead letters."""
        parse = from_csv if place.options["format"] == "csv" else from_json
        frame = spark.createDataFrame(raw_rows(letters, ("value",)), "value binary")
        return read_values(frame, place, place.schema, parse("cast(value as string)", place.schema), f"'{REPLAYED}'")


TEXT = "__text"
"""Where Spark puts a line that it could not read."""


def _schema(place: Place) -> str:
    return f"{place.schema}, {TEXT} string" if place.keeps_unread else str(place.schema)


def _read(spark: SparkSession, place: Place, paths: str | list[str], base: str = "") -> DataFrame:
    """Some files. `base` is the folder below which folders are named by values, where single files are to be read."""
    reader = spark.read.format(place.options["format"]).schema(_schema(place)).options(**_options(place))
    return (reader.option("basePath", base) if base else reader).load(paths)


def _is_folder(path: str) -> bool:
    """Whether a path is a folder of this machine."""
    return Path(plain_path(path)).is_dir()


def _fields(frame: DataFrame, place: Place) -> DataFrame:
    """The fields of the step. The name of the file is asked for only where a line could not be read: to carry it along costs."""
    names = [quote(n) for n in place.schema.names]
    if not place.keeps_unread:
        return frame.select(*names)
    parts = f"cast({TEXT} as binary) as raw, input_file_name() as position, cast(null as string) as cause"
    return frame.selectExpr(*names, f"if({TEXT} is null, null, struct({parts})) as {UNREAD}")


def _unread(found: SparkRow) -> tuple[bytes, str]:
    return bytes(found["raw"]), found["position"]


def _lines(path: str, wanted: set[bytes]) -> dict[bytes, list[int]]:
    """The numbers of the lines of a file that read so, the last first; none when it is not on this machine."""
    found: dict[bytes, list[int]] = {}
    try:
        with Path(plain_path(path)).open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.rstrip(b"\r\n") in wanted:
                    found.setdefault(line.rstrip(b"\r\n"), []).insert(0, number)
    except OSError:
        return {}
    return found


def _position(path: str, lines: list[int]) -> str:
    """The next of the lines; those that read the same take one after the other."""
    return f"{plain_path(path)}, line {lines.pop()}" if lines else plain_path(path)


def _reads(row: SparkRow, place: Place, record: str) -> bool:
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
    if place.keeps_unread:
        options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": TEXT}
    if place.options["format"] == "csv":
        options |= {"header": place.options["header"], "enforceSchema": False}
    return options
