"""Files without a JVM: text lines, JSON lines, CSV and Parquet of this machine's disk and of stores."""

from __future__ import annotations

import codecs
import glob
import itertools
import re
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pyarrow as pa

from penstock.connectors.base import REFUSED
from penstock.connectors.files.disk import LocalDisk, plain_path
from penstock.connectors.files.listing import is_stored, stored_files
from penstock.connectors.files.partitions import Folders, typed_values
from penstock.connectors.files.preflight import check_writable
from penstock.connectors.files.store import StoreDisk
from penstock.connectors.local import LocalSink, LocalSource, Record
from penstock.errors import RunError, SchemaError, nearest
from penstock.graph.endpoints.basic import matching_files
from penstock.graph.row import Row
from penstock.graph.schema import Schema
from penstock.kernels.records.arrow import arrow_schema, to_columns
from penstock.kernels.records.csv_text import cells_of
from penstock.kernels.records.reading import READERS, MalformedRecord, Unreadable, decoded
from penstock.kernels.records.writing import json_writer
from penstock.storage import Storage, storage_at

Write = Callable[[LocalSink, Sequence[Row], Path], None]
_BLANK = {"json": b" \t", "csv": bytes(range(33))}
"""What a line may hold and still be no record."""


def read_files(source: LocalSource) -> Iterator[Record]:
    """The records of all files, file by file in the order of their names.

    Lines that are no records come as `MalformedRecord`. Raises RunError when nothing is there.
    """
    read = _by_line if source.options["format"] in READERS else _table
    for path, load in _found(source.options["path"]):
        yield from read(path, load, source)


def _found(path: str) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """The files of a path, each with what reads it."""
    if not (stored_files(path) if is_stored(path) else glob.glob(plain_path(path))):
        below = "" if is_stored(path) or Path(plain_path(path)).is_absolute() else f" below {Path.cwd()}"
        raise RunError(f"there is nothing at {path!r}{below} to read")
    if is_stored(path):
        yield from ((file.url, file.read) for file in stored_files(path))
    else:
        yield from ((each, Path(each).read_bytes) for each in matching_files(plain_path(path)))


def _by_line(path: str, load: Callable[[], bytes], source: LocalSource) -> Iterator[Record]:
    """The records of a file of text, JSON or CSV, line by line, as Spark reads them."""
    form, values = source.options["format"], typed_values(path, source.schema)
    folders = Folders.of(source.schema, values)
    for number, line in data_lines(path, [load()], form, source.options["header"], folders.inside):
        try:
            found = READERS[form](decoded(line), folders.inside)
            yield folders.row_of(found, values) if values else found
        except Unreadable as error:
            yield MalformedRecord(line, f"{path}, line {number}", str(error))


def data_lines(
    path: str, content: Iterable[bytes], form: str, header: bool, schema: Schema
) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are records, with their numbers: not the header of CSV, which must fit, and no blank ones."""
    lines = enumerate(split_lines(content), 1)
    if form == "csv" and header:
        for _, line in itertools.islice(lines, 1):
            _check_header(path, line, schema)
    for number, line in lines:
        if line.strip(_BLANK.get(form, b"")) or form == "text":
            yield number, line


def split_lines(content: Iterable[bytes]) -> Iterator[bytes]:
    r"""The lines as Spark cuts them: at line feeds and carriage returns, and nowhere else; a mark of the byte order is none of them.

    >>> list(split_lines([b"a\r", b"\nb", b"c\n\n", b"d"]))
    [b'a', b'bc', b'', b'd']
    """
    begun, ending = list[bytes](), b""
    for part in _unmarked(content):
        text = ending + part
        ending = b"\r" if text.endswith(b"\r") else b""  # a line feed may follow
        first, *lines = _LINE_END.split(text.removesuffix(ending))
        begun.append(first)
        if lines:
            yield b"".join(begun)
            yield from lines[:-1]
            begun = lines[-1:]
    last = b"".join(begun)
    if last or ending:
        yield last


def _unmarked(content: Iterable[bytes]) -> Iterator[bytes]:
    parts = iter(content)
    yield from (part.removeprefix(codecs.BOM_UTF8) for part in itertools.islice(parts, 1))
    yield from parts


_LINE_END = re.compile(rb"\r\n|\n|\r")


def _table(path: str, load: Callable[[], bytes], source: LocalSource) -> Iterator[Record]:
    """The records of a file of Parquet."""
    values = typed_values(path, source.schema)
    folders = Folders.of(source.schema, values)
    table = parquet_table(path, pa.BufferReader(load()) if is_stored(path) else path, folders.inside)
    for row in zip(*to_columns(table), strict=True):
        yield folders.row_of(row, values) if values else row


def parquet_table(path: str, content: pa.BufferReader | str, schema: Schema) -> pa.Table:
    """The fields of a schema from a file of Parquet.

    Raises:
        RunError: It is no such file, a field is not in it, or one is of a type that does not fit.
    """
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(content, partitioning=None)
    except (pa.ArrowException, OSError) as error:
        raise RunError(f"{path} cannot be read as Parquet: {error}") from None
    missing = [name for name in schema.names if name not in table.column_names]
    if missing:
        raise RunError(f"{path} has no field {missing[0]!r}; {nearest(missing[0], table.column_names)}")
    try:
        return table.select(list(schema.names)).cast(arrow_schema(schema))
    except pa.ArrowException as error:
        raise RunError(f"{path} does not fit the schema ({schema}): {error}") from None


def _check_header(path: str, line: bytes, schema: Schema) -> None:
    """Spark reads CSV by position, and refuses a header that says otherwise; so does this."""
    header = cells_of(line.decode(errors="replace"))
    if header != list(schema.names):
        raise RunError(
            f"the header of {path} is {', '.join(header)}; the schema says {', '.join(schema.names)}, in this order"
        )


def write_files(sink: LocalSink, rows: Sequence[Row]) -> None:
    """One file in each folder, which appears as a whole; they replace those of the last bounded run of this sink."""
    if is_stored(sink.options["path"]):
        _write_stored(sink, rows, storage_at(sink.options["path"]))
        return
    folder, form = Path(plain_path(sink.options["path"])), sink.options["format"]
    folders = Folders.of(sink.schema, sink.options.get("partition_by", ()))
    prefix = _prefix(sink)
    check_writable(folder.absolute(), f"sink {sink.step!r}")
    folder.mkdir(parents=True, exist_ok=True)
    made = [
        (path, _aside(sink, folders, part, folder / path)) for path, part in _parted(folders, rows, sink.step).items()
    ]
    for old in LocalDisk().names(str(folder), prefix, len(folders.names)):
        (folder / old).unlink()
    for path, aside in made:
        aside.rename(folder / path / f"{prefix}00000.{_ENDINGS.get(form, form)}")


def _prefix(sink: LocalSink) -> str:
    return f"{sink.step}-{0:08d}-bounded-"


def _write_stored(sink: LocalSink, rows: Sequence[Row], storage: Storage) -> None:
    """The same in a store, where an object appears as a whole."""
    folders, form = Folders.of(sink.schema, sink.options.get("partition_by", ())), sink.options["format"]
    own, made = f"{_prefix(sink)}00000.{_ENDINGS.get(form, form)}", set[str]()
    with tempfile.TemporaryDirectory() as aside:
        for path, part in _parted(folders, rows, sink.step).items():
            name = f"{path}/{own}" if path else own
            storage.write(name, _aside(sink, folders, part, Path(aside)).read_bytes())
            made.add(name)
    old = StoreDisk(storage).names("", _prefix(sink), len(folders.names))
    storage.delete(*(name for name in old if name not in made))


def _parted(folders: Folders, rows: Sequence[Row], sink: str) -> dict[str, Sequence[Row]]:
    """The rows by the folder that they belong into."""
    if not folders.names:
        return {"": rows} if rows else {}
    made: dict[str, list[Row]] = {}
    for row in rows:
        try:
            made.setdefault(folders.path_of(row), []).append(row)
        except RunError as error:
            raise RunError(f"sink {sink!r} {REFUSED} {error}") from None
    return dict(made)


def _aside(sink: LocalSink, folders: Folders, rows: Sequence[Row], folder: Path) -> Path:
    """Writes a file that no reader sees yet."""
    form = sink.options["format"]
    folder.mkdir(parents=True, exist_ok=True)
    aside = folder / f"_{sink.step}-{uuid.uuid4().hex[:8]}.{form}"
    inside = [folders.row_inside(row) for row in rows] if folders.names else rows
    _WRITERS[form](replace(sink, schema=folders.inside), cast("Sequence[Row]", inside), aside)
    return aside


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
