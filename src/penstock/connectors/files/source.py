"""Files: text lines, JSON lines, CSV and Parquet, read from object stores and from any file system Spark knows."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import SourceConnector, SourceContext, Spot
from penstock.connectors.files.disk import plain_path
from penstock.connectors.files.listing import Listing
from penstock.connectors.files.manifests import committed_by_folder
from penstock.connectors.files.store import check_shared, is_in_store
from penstock.connectors.files.stored import POSITION as LINE_POSITION
from penstock.connectors.files.stored import StoredRanges
from penstock.connectors.malformed import MALFORMED, REPLAYED, described, not_text, raised, raw_rows, read_values
from penstock.connectors.parsing import (
    CSV,
    TEXT,
    csv_cells,
    csv_ddl,
    csv_reading,
    csv_unfit,
    json_reading,
    literal,
    reads_plainly,
)
from penstock.connectors.ranges import bounded_of, stream_of
from penstock.errors import RunError
from penstock.graph.endpoints.hive import values_of
from penstock.graph.schema import Schema
from penstock.graph.types import quote
from penstock.kernels.records.json_text import BLANKS
from penstock.storage import Storage, open_storage, shared_side

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import Row as SparkRow


class FilesSource(SourceConnector):
    """A folder or a glob; live, it is watched for new files."""

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The files that are there, then those that come."""
        if is_in_store(context.options["path"]):
            return _stored(
                context,
                lambda ranges, ddl: stream_of(spark, ranges, context, ddl),
                shared_side(open_storage(context.folder)),
            )
        reader = spark.readStream.format(_format(context)).schema(_schema(context)).options(**_options(context))
        if "files_per_batch" in context.options:
            reader = reader.option("maxFilesPerTrigger", context.options["files_per_batch"])
        with _values_as_texts(spark, context):
            return _fields(reader.load(_watched(context.options["path"])), context)

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """The files that are there; in a folder that a sink of Penstock has written, those of complete batches."""
        path = context.options["path"]
        if is_in_store(path):
            return _stored(context, lambda ranges, ddl: bounded_of(spark, ranges, context, ddl), None)
        groups = committed_by_folder(path)
        frames = [_read(spark, context, files, base) for base, files in groups.items()] or [_read(spark, context, path)]
        return _fields(reduce(lambda one, other: one.unionByName(other), frames), context)

    def locate(self, spark: SparkSession, context: SourceContext, spot: Spot) -> str:
        """The file and the position in it: the batch's files are read again, which yields the same partitions."""
        path = context.options["path"]
        if is_in_store(path):
            return ""
        paths, base = _batch_files(spot) or [path], path if _is_folder(path) else ""
        number = "monotonically_increasing_id()"
        keeping = replace(context, keeps_malformed=context.options["format"] in PARSED_FORMATS)
        read = _fields(_read(spark, context, paths, base), keeping, "_metadata.file_path as __file")
        rows = read.selectExpr("*", f"{number} as __nth")
        good = rows.where(f"{MALFORMED} is null") if context.keeps_malformed else rows
        wanted = (spot.partition << 33) + spot.number
        found = good.selectExpr("*", f"{number} as __id").where(f"__id = {wanted}").collect()
        if len(found) != 1 or not _reads(found[0], context, spot.record):
            return ""
        nth = rows.where(f"__nth <= {found[0]['__nth']}").where(rows["__file"] == found[0]["__file"]).count()
        unit = "line" if context.options["format"] == "text" else "record"
        return f"{plain_path(found[0]['__file'])}, {unit} {nth}"

    def positions(self, malformed: Sequence[tuple[bytes, str]]) -> list[str]:
        """The files, and where they lie on this machine also the lines."""
        if any(is_in_store(at) for _, at in malformed):
            return [at for _, at in malformed]
        lines = {
            path: _lines(path, {raw for raw, at in malformed if at == path}) for path in {at for _, at in malformed}
        }
        return [_position(path, lines[path].get(raw, [])) for raw, path in malformed]

    def reread(self, spark: SparkSession, context: SourceContext, dead_letters: list[dict[str, Any]]) -> DataFrame:
        """Reads the lines of dead letters."""
        reading = csv_reading if context.options["format"] == "csv" else json_reading
        frame = spark.createDataFrame(raw_rows(dead_letters, ("value",)), "value binary")
        read = reading("cast(value as string)", context.schema)
        return read_values(frame, context, context.schema, read, f"'{REPLAYED}'", (), not_text("value"))


PARSED_FORMATS = ("json", "csv")


def _stored(context: SourceContext, read: Callable[[StoredRanges, str], DataFrame], kept: Storage | None) -> DataFrame:
    """The files of an object store, as tasks read them."""
    url, form = context.options["path"], context.options["format"]
    check_shared(url, f"source {context.step!r}")
    listing = Listing.of(url)
    there = listing.files()
    if not there and kept is None:
        raise RunError(f"source {context.step!r}: there is nothing at {url!r} to read")
    most = context.options.get("files_per_batch")
    ranges = StoredRanges(listing, form, context.schema, context.options["header"], kept, most)
    if form == "parquet":
        return read(ranges, "")
    values = values_of(there[0].url) if there else {}
    folders = [f for f in context.schema.fields if f.name in values]
    ranges.folders = tuple(f.name for f in folders)
    ddl = ["value binary", f"{LINE_POSITION} string", *(f"{quote(f.name)} {f.type}" for f in folders)]
    return _stored_fields(read(ranges, ", ".join(ddl)), context, [f.name for f in folders])


def _stored_fields(frame: DataFrame, context: SourceContext, folders: list[str]) -> DataFrame:
    """The fields of lines, with those that folders name beside them."""
    form = context.options["format"]
    if form == "text":
        return frame.selectExpr("cast(value as string) as value")
    inside = context.schema.only(tuple(n for n in context.schema.names if n not in folders))
    text, plainly = "cast(value as string)", reads_plainly(frame.sparkSession)
    read = csv_reading(text, inside) if form == "csv" else json_reading(text, inside, plainly=plainly)
    made = read_values(frame, context, inside, read, LINE_POSITION, [*map(quote, folders)], not_text("value"))
    beside = [MALFORMED] if context.keeps_malformed else []
    return made.selectExpr(*(quote(n) for n in context.schema.names), *beside)


def _format(context: SourceContext) -> str:
    """What Spark reads the files as: lines of JSON as text, of which each is then read as one value."""
    form: str = context.options["format"]
    return "text" if form == "json" else form


def _schema(context: SourceContext) -> str:
    if _format(context) == "text":
        return "value string"
    return csv_ddl(context.schema) if context.options["format"] == "csv" else str(context.schema)


def _read(spark: SparkSession, context: SourceContext, paths: str | list[str], base: str = "") -> DataFrame:
    """Some files. `base` is the folder below which folders are named by values, where single files are to be read."""
    reader = spark.read.format(_format(context)).schema(_schema(context)).options(**_options(context))
    with _values_as_texts(spark, context):
        return (reader.option("basePath", base) if base else reader).load(paths)


def _watched(path: str) -> str:
    """A path as Spark watches it: it takes folders and globs only, so a single file becomes a glob that matches nothing else.

    >>> _watched(__file__).endswith("source.p[y]"), _watched("data/*.csv")
    (True, 'data/*.csv')
    """
    if not Path(plain_path(path)).is_file() or _GLOB.search(path):
        return path
    return re.sub(r"(\w)(\W*)$", r"[\1]\2", path, count=1)


def _is_folder(path: str) -> bool:
    """Whether a path is a folder of this machine."""
    return Path(plain_path(path)).is_dir()


@contextmanager
def _values_as_texts(spark: SparkSession, context: SourceContext) -> Iterator[None]:
    """Has Spark take the values that name folders as they are, where it is not given their types: 01 is not 1."""
    if context.options["format"] != "json":
        yield
        return
    before = spark.conf.get(_GUESSES)
    spark.conf.set(_GUESSES, "false")
    try:
        yield
    finally:
        spark.conf.set(_GUESSES, before or "true")


_GUESSES = "spark.sql.sources.partitionColumnTypeInference.enabled"
_GLOB = re.compile(r"[{}\[\]*?\\]")
"""What makes a path a glob to Spark."""


def _fields(frame: DataFrame, context: SourceContext, *beside: str) -> DataFrame:
    """The fields of the step. The name of the file is asked for only where a line could not be read: to carry it along costs."""
    form = context.options["format"]
    if form == "json":
        return _json_fields(frame, context, beside)
    if form == "csv":
        return _csv_fields(frame, context, beside)
    return frame.selectExpr(*(quote(n) for n in context.schema.names), *beside)


def _json_fields(frame: DataFrame, context: SourceContext, beside: Sequence[str]) -> DataFrame:
    """Fields that are folders of the path stand beside the lines already."""
    folders = [n for n in context.schema.names if n in frame.columns and n != "value"]
    schema = Schema(tuple(f for f in context.schema.fields if f.name not in folders))
    lines = frame.where(f"startswith(value, '{{') or trim(leading {literal(BLANKS)} from value) <> ''")
    reading = json_reading("value", schema, plainly=reads_plainly(frame.sparkSession))
    also = [*map(quote, folders), *beside]
    return read_values(lines, context, schema, reading, POSITION, also, not_text("value"))


def _csv_fields(frame: DataFrame, context: SourceContext, beside: Sequence[str]) -> DataFrame:
    """Spark keeps a line that it cannot read; one that it can, but Python cannot hold, is written again."""
    names, cells = [quote(n) for n in context.schema.names], csv_cells("", context.schema)
    wrong = [f"{TEXT} is not null", *csv_unfit("", context.schema)]
    line = f"if({' or '.join(wrong)}, coalesce({TEXT}, to_csv(struct({', '.join(names)}), map('escape', {literal(_QUOTE)}))), null) as {_LINE}"
    found = frame.selectExpr("*", line)
    cause = "cast(null as string)"
    if context.keeps_malformed:
        kept = [f"if({_LINE} is null, {sql}, null) as {quote(n)}" for n, sql in cells.items()]
        return found.selectExpr(*kept, *beside, described(f"{_LINE} is not null", POSITION, cause, _LINE))
    stop = f"if({_LINE} is null, true, {raised(context, POSITION, cause, _LINE)}) as __good"
    kept = [f"{sql} as {quote(n)}" for n, sql in cells.items()]
    return found.selectExpr(*kept, *beside, stop).where("__good").drop("__good")


POSITION = "input_file_name()"
_LINE = "__line"
"""The column of a line of CSV that cannot be read."""
_QUOTE = CSV["escape"]


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


def _reads(row: SparkRow, context: SourceContext, record: str) -> bool:
    """Whether it is the record looked for, and not another because partitions fell otherwise."""
    return all(repr(row[n]) in record for n in context.schema.names)


def _batch_files(spot: Spot) -> list[str]:
    """The files of a live batch, from Spark's log of them; empty in a bounded run."""
    log = spot.checkpoint / str(spot.batch) if spot.checkpoint is not None else None
    if log is None or not log.exists():
        return []
    entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
    return [e["path"] for e in entries if e["batchId"] == spot.batch]


def _options(context: SourceContext) -> dict[str, Any]:
    if context.options["format"] != "csv":
        return {}
    return {**CSV, "header": context.options["header"], "enforceSchema": False}
