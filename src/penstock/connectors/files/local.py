"""Files without a JVM: text lines, JSON lines, CSV and Parquet of this machine's disk."""

from __future__ import annotations

import glob
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from penstock.connectors.local import LocalSink, LocalSource, Options, Record
from penstock.errors import RunError, SchemaError
from penstock.graph.endpoints.basic import matching_files
from penstock.graph.row import Row
from penstock.kernels.records.arrow import arrow_schema, to_columns
from penstock.kernels.records.reading import READERS, Unread, Unreadable
from penstock.kernels.records.writing import json_writer

ReadTable = Callable[[str, Options, pa.Schema], pa.Table]
Write = Callable[[LocalSink, Sequence[Row], Path], None]


def read_files(source: LocalSource) -> Iterator[Record]:
    """The records of all files, file by file in the order of their names.

    Lines that are no records come as `Unread`. Raises RunError when nothing is there.
    """
    if not glob.glob(source.options["path"]):
        raise RunError(f"there is nothing at {source.options['path']!r} to read")
    for path in matching_files(source.options["path"]):
        if source.options["format"] == "text":
            yield from ((line,) for line in _lines(Path(path).read_bytes().decode()))
        else:
            yield from _table_or_lines(path, source)


def _table_or_lines(path: str, source: LocalSource) -> list[Record]:
    """The records of a file; where it cannot be read as a whole, line by line."""
    try:
        return list(_table(path, source))
    except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError):
        if source.options["format"] not in READERS:
            raise
        return list(_by_line(path, source))


def _by_line(path: str, source: LocalSource) -> Iterator[Record]:
    form = source.options["format"]
    first = 1 if form == "csv" and source.options["header"] else 0
    for number, line in enumerate(_lines(Path(path).read_bytes().decode()), 1):
        if number <= first or not line.strip():
            continue
        try:
            yield READERS[form](line, source.schema)
        except Unreadable as error:
            yield Unread(line.encode(), f"{path}, line {number}", str(error))


def _lines(text: str) -> list[str]:
    """The lines as Spark cuts them: at line feeds and carriage returns, and nowhere else."""
    lines = re.split(r"\r\n|\n|\r", text)
    return lines if lines[-1] else lines[:-1]


def _table(path: str, source: LocalSource) -> Iterator[Record]:
    fields = arrow_schema(source.schema)
    table = _TABLES[source.options["format"]](path, source.options, fields)
    yield from zip(*to_columns(table.select(list(source.schema.names)).cast(fields)), strict=True)


def _parquet(path: str, options: Options, fields: pa.Schema) -> pa.Table:
    import pyarrow.parquet as pq

    return pq.read_table(path)


def _json(path: str, options: Options, fields: pa.Schema) -> pa.Table:
    import pyarrow.json as pj

    return pj.read_json(path, parse_options=pj.ParseOptions(explicit_schema=fields))


def _csv(path: str, options: Options, fields: pa.Schema) -> pa.Table:
    import pyarrow.csv as pc

    if options["header"]:
        _check_header(path, fields.names)
    names = None if options["header"] else fields.names
    convert = pc.ConvertOptions(column_types={f.name: f.type for f in fields}, strings_can_be_null=True)
    return pc.read_csv(path, read_options=pc.ReadOptions(column_names=names), convert_options=convert)


def _check_header(path: str, expected: list[str]) -> None:
    """Spark reads CSV by position, and refuses a header that says otherwise; so does this."""
    import pyarrow.csv as pc

    with pc.open_csv(path) as reader:
        header = reader.schema.names
    if header != list(expected):
        raise RunError(
            f"the header of {path} is {', '.join(header)}; the schema says {', '.join(expected)}, in this order"
        )


_TABLES: dict[str, ReadTable] = {"parquet": _parquet, "json": _json, "csv": _csv}


def write_files(sink: LocalSink, rows: Sequence[Row]) -> None:
    """One file with all rows, which appears as a whole; it replaces those of the last bounded run of this sink."""
    folder, form = Path(sink.options["path"]), sink.options["format"]
    folder.mkdir(parents=True, exist_ok=True)
    prefix = f"{sink.step}-{0:08d}-bounded-"
    aside = folder / f"_{prefix}{uuid.uuid4().hex[:8]}.{form}"
    _WRITERS[form](sink, rows, aside)
    for old in folder.glob(f"{glob.escape(prefix)}*"):
        old.unlink()
    aside.rename(folder / f"{prefix}00000.{_ENDINGS.get(form, form)}") if rows else aside.unlink()


def _write_parquet(sink: LocalSink, rows: Sequence[Row], path: Path) -> None:
    import pyarrow.parquet as pq

    pq.write_table(pa.Table.from_batches([sink.arrow(rows)]), path)


def _write_csv(sink: LocalSink, rows: Sequence[Row], path: Path) -> None:
    import pyarrow.csv as pc

    pc.write_csv(pa.Table.from_batches([sink.arrow(rows)]), path, pc.WriteOptions(quoting_style="needed"))


def _write_json(sink: LocalSink, rows: Sequence[Row], path: Path) -> None:
    write = json_writer(sink.schema)
    path.write_text("".join(f"{write(row)}\n" for row in rows))


def _write_text(sink: LocalSink, rows: Sequence[Row], path: Path) -> None:
    if [str(f.type) for f in sink.schema.fields] != ["string"]:
        raise SchemaError(f"sink {sink.step!r}: text files hold one field, a string; there are ({sink.schema})")
    path.write_text("".join(f"{row[0] or ''}\n" for row in rows))


_ENDINGS = {"text": "txt"}
_WRITERS: dict[str, Write] = {
    "parquet": _write_parquet,
    "csv": _write_csv,
    "json": _write_json,
    "text": _write_text,
}
