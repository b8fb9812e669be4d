"""Writes the rows of a batch as files of an object store: each task its own, in Python workers.

JSON and CSV are made by Spark's own functions, as its writers make them, so a worker has lines to write; Parquet is written by Arrow.
A task that runs twice writes under two names. The names that count are those that Spark got from the attempts that succeeded.
"""

from __future__ import annotations

import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, BinaryIO, Protocol

import pyarrow as pa

from penstock.errors import SchemaError
from penstock.graph.endpoints.hive import folder_of
from penstock.graph.types import quote
from penstock.storage import Storage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ENDINGS = {"text": "txt", "parquet": "snappy.parquet"}
_PART = 8 << 20
OPEN = 200
"""So many files a task has open at most; where its rows belong into more folders, files are sent before they are large."""
_LINE = "__line"
_FOLDER = "__folder_"


@dataclass(frozen=True)
class WrittenFile:
    """A file that a task has written: its name below the folder, and how many rows it has."""

    name: str
    rows: int


def write_parts(frame: DataFrame, kind: str, by: tuple[str, ...], storage: Storage, folder: str) -> list[WrittenFile]:
    """Writes the rows of a frame to files in a folder of a storage; by the values of some fields into folders of that."""
    inside = [name for name in frame.columns if name not in by]
    header = _csv_header(inside) if kind == "csv" else b""
    task = PartTask(storage, folder, kind, by, header)
    values = [f"cast({quote(name)} as string) as {_FOLDER}{at}" for at, name in enumerate(by)]
    prepared = frame.selectExpr(*values, *_contents(frame, kind, inside))
    found = prepared.mapInArrow(task, "name string, rows bigint").collect()
    return [WrittenFile(row["name"], row["rows"]) for row in found]


def _contents(frame: DataFrame, kind: str, inside: list[str]) -> list[str]:
    """What workers get of each row: a line, or the fields."""
    fields = [quote(name) for name in inside]
    if kind == "parquet":
        return fields
    if kind == "text":
        if [dict(frame.dtypes)[name] for name in inside] != ["string"]:
            raise SchemaError(f"text files hold one field, a string, got ({', '.join(inside)})")
        return [f"coalesce({fields[0]}, '') as {_LINE}"]
    row = f"struct({', '.join(fields)})"
    return [f"to_json({row}) as {_LINE}" if kind == "json" else f"to_csv({row}, map('escape', '\"')) as {_LINE}"]


def _csv_header(names: list[str]) -> bytes:
    quoted = (f'"{name.replace(chr(34), chr(34) * 2)}"' if set(name) & set(',"\r\n') else name for name in names)
    return f"{','.join(quoted)}\n".encode()


@dataclass(frozen=True)
class PartTask:
    """What a task does with its rows. `header` is the first line of each file."""

    storage: Storage
    folder: str
    kind: str
    by: tuple[str, ...]
    header: bytes = b""

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Writes the files of a task; yields their names and numbers of rows."""
        made: list[WrittenFile] = []
        files: dict[str, PartFile] = {}
        with ExitStack() as opened:
            for batch in batches:
                for folder, part in self._parted(batch):
                    if folder not in files:
                        made += [self._send(files.pop(next(iter(files))))] if len(files) == OPEN else []
                        files[folder] = self._file(folder, opened)
                    files[folder].add(part)
            made += [self._send(each) for each in files.values()]
        names, rows = [each.name for each in made], [each.rows for each in made]
        yield pa.RecordBatch.from_arrays([pa.array(names, pa.string()), pa.array(rows, pa.int64())], ["name", "rows"])

    def _send(self, file: PartFile) -> WrittenFile:
        with file.file:
            return file.send(self.storage, self.folder)

    def _file(self, folder: str, opened: ExitStack) -> PartFile:
        file = opened.enter_context(tempfile.TemporaryFile())  # noqa: SIM115 - the stack closes it
        name = f"part-{uuid.uuid4().hex}.{ENDINGS.get(self.kind, self.kind)}"
        file.write(self.header)
        write = ParquetPart if self.kind == "parquet" else LinesPart
        return PartFile(f"{folder}/{name}" if folder else name, file, write(file))

    def _parted(self, batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
        """The rows by the folder that they belong into, without the fields that name it."""
        count = len(self.by)
        inside = batch.select(range(count, batch.num_columns))
        if not count:
            if batch.num_rows:
                yield "", inside
            return
        rows: dict[tuple[str | None, ...], list[int]] = {}
        columns = (batch.column(at).to_pylist() for at in range(count))
        for at, values in enumerate(zip(*columns, strict=True)):
            rows.setdefault(values, []).append(at)
        for values, chosen in rows.items():
            yield self._path(values), inside.take(pa.array(chosen))

    def _path(self, values: tuple[str | None, ...]) -> str:
        return "/".join(map(folder_of, self.by, values))


class Part(Protocol):
    """Writes rows into a file."""

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds rows."""

    def finish(self) -> None:
        """Writes what ends the file."""


@dataclass
class LinesPart:
    """Rows that are lines already."""

    file: BinaryIO

    def add(self, rows: pa.RecordBatch) -> None:
        """Writes the lines."""
        lines = rows.column(0).to_pylist()
        self.file.write("".join(f"{line}\n" for line in lines).encode())

    def finish(self) -> None:
        """Nothing ends a file of lines."""


class ParquetPart:
    """Rows as Parquet, a row group for each batch of them."""

    def __init__(self, file: BinaryIO) -> None:
        self.file = file
        self._writer: pa.parquet.ParquetWriter | None = None

    def add(self, rows: pa.RecordBatch) -> None:
        """Writes a row group."""
        import pyarrow.parquet as pq

        if self._writer is None:
            self._writer = pq.ParquetWriter(self.file, rows.schema)
        self._writer.write_batch(rows)

    def finish(self) -> None:
        """Writes the footer."""
        if self._writer is not None:
            self._writer.close()


@dataclass
class PartFile:
    """A file that is being written, aside on this machine."""

    name: str
    file: BinaryIO
    part: Part
    rows: int = 0

    def add(self, rows: pa.RecordBatch) -> None:
        """Adds rows."""
        self.part.add(rows)
        self.rows += rows.num_rows

    def send(self, storage: Storage, folder: str) -> WrittenFile:
        """Writes it to the store, as a whole."""
        self.part.finish()
        self.file.seek(0)
        storage.write(f"{folder}/{self.name}", iter(lambda: self.file.read(_PART), b""))
        return WrittenFile(self.name, self.rows)
