"""Files without a JVM: text lines, JSON lines, CSV and Parquet of this machine's disk."""

from __future__ import annotations

import csv
import glob
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow as pa

from penstock.connectors.local import LocalSink, LocalSource, Record
from penstock.errors import RunError, SchemaError
from penstock.graph.endpoints.basic import matching_files
from penstock.graph.row import Row
from penstock.graph.schema import Schema
from penstock.kernels.records.arrow import arrow_schema, to_columns
from penstock.kernels.records.reading import READERS, Unread, Unreadable, decoded
from penstock.kernels.records.writing import json_writer

Write = Callable[[LocalSink, Sequence[Row], Path], None]


def read_files(source: LocalSource) -> Iterator[Record]:
    """The records of all files, file by file in the order of their names.

    Lines that are no records come as `Unread`. Raises RunError when nothing is there.
    """
    if not glob.glob(source.options["path"]):
        raise RunError(f"there is nothing at {source.options['path']!r} to read")
    read = _by_line if source.options["format"] in READERS else _table
    for path in matching_files(source.options["path"]):
        yield from read(path, source)


def _by_line(path: str, source: LocalSource) -> Iterator[Record]:
    """The records of a file of text, JSON or CSV, line by line, as Spark reads them."""
    form = source.options["format"]
    lines = _lines(Path(path).read_bytes())
    first = 1 if form == "csv" and source.options["header"] else 0
    if first and lines:
        _check_header(path, lines[0], source.schema)
    for number, line in enumerate(lines[first:], 1 + first):
        if form != "text" and not line.strip():
            continue
        try:
            yield READERS[form](decoded(line), source.schema)
        except Unreadable as error:
            yield Unread(line, f"{path}, line {number}", str(error))


def _lines(content: bytes) -> list[bytes]:
    """The lines as Spark cuts them: at line feeds and carriage returns, and nowhere else."""
    lines = re.split(rb"\r\n|\n|\r", content)
    return lines if lines[-1] else lines[:-1]


def _table(path: str, source: LocalSource) -> Iterator[Record]:
    """The records of a file of Parquet."""
    import pyarrow.parquet as pq

    table = pq.read_table(path).select(list(source.schema.names)).cast(arrow_schema(source.schema))
    yield from zip(*to_columns(table), strict=True)


def _check_header(path: str, line: bytes, schema: Schema) -> None:
    """Spark reads CSV by position, and refuses a header that says otherwise; so does this."""
    header = next(csv.reader([line.decode(errors="replace")]), [])
    if header != list(schema.names):
        raise RunError(
            f"the header of {path} is {', '.join(header)}; the schema says {', '.join(schema.names)}, in this order"
        )


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
