"""Files of a store as a source of Spark: listed by the driver, read by tasks in Python, without Hadoop and its JARs.

A live flow notes the files that it has found, in lists that it keeps in its checkpoint; an offset is the number of lists. So a batch that runs again
reads the same files, and a file is read once, whatever its name and whenever it appeared. A driver that was replaced while it was paused may still note
a list: it counts as any other does, but for the files that a list before it has.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from penstock.connectors.files.listing import Listing, StoredFile
from penstock.connectors.files.local import data_lines, parquet_table
from penstock.connectors.files.partitions import Folders, typed_values
from penstock.connectors.ranges import Offset, Ranges, Stretch
from penstock.errors import RunError
from penstock.graph.schema import Schema
from penstock.kernels.records.arrow import arrow_schema
from penstock.storage import Storage, names_under

LISTS = "stored/"
POSITION = "__position"
_FILES, _BYTES = 16, 64 << 20
"""How many files and bytes a task reads at most, if they are more than one file."""
_LINES, _LINE_BYTES = 10_000, 16 << 20
"""How many lines, or bytes of them, are handed to Spark at once."""


@dataclass
class StoredRanges(Ranges):
    """The files of a URL.

    Attributes:
        storage: keeps the lists; None keeps them as long as this lives, for a bounded run.
        folders: the fields that folders name, in files that are read by lines.
        lists: the files of each list, each in the first that names it.
        known: the files of all lists.
    """

    listing: Listing
    kind: str
    fields: Schema
    header: bool
    storage: Storage | None = None
    files_per_batch: int | None = None
    folders: tuple[str, ...] = ()
    lists: list[list[str]] = field(default_factory=list)
    known: set[str] = field(default_factory=set)

    def first(self) -> Offset:
        """Before the first list."""
        return {"lists": 0}

    def latest(self, start: Offset, most: int | None) -> Offset:
        """With a limit, one list more; else all that there are now."""
        self._find()
        self._check(start)
        there = len(self.lists)
        return {"lists": min(start["lists"] + 1, there) if self.files_per_batch else there}

    def target(self) -> Offset:
        """All lists, with what is there now."""
        self._find()
        return {"lists": len(self.lists)}

    def within(self, offset: Offset, target: Offset) -> Offset:
        """The lesser number of lists."""
        return min(offset, target, key=lambda each: int(each["lists"]))

    def stretches(self, start: Offset, end: Offset) -> Sequence[Stretch]:
        """Some files for each task."""
        self._load(end["lists"])
        self._check(end)
        names = [name for each in self.lists[start["lists"] : end["lists"]] for name in each]
        found = {file.url: file for file in self.listing.files()} if names else {}
        missing = [name for name in names if name not in found]
        if missing:
            raise RunError(f"{missing[0]} is gone, and a batch that is to run again has read it")
        return [Stretch(start, part) for part in _parts([found[name] for name in names])]

    def read(self, part: Stretch) -> Iterator[pa.RecordBatch]:
        """The lines of some files, or the rows of Parquet."""
        for file in part.high:
            yield from self._rows(file) if self.kind == "parquet" else self._lines(file)

    def _check(self, offset: Offset) -> None:
        if offset["lists"] > len(self.lists):
            raise RunError(
                f"the checkpoint has {len(self.lists)} lists of the files at {self.listing.url}, expected {offset['lists']}: "
                f"restore the checkpoint, or start over with --fresh"
            )

    def _find(self) -> None:
        """Notes the files that are new. A list that is there already, of a driver that died, is taken as it is."""
        self._load()
        found = [file.url for file in self.listing.files() if file.url not in self.known]
        while found:
            self._note(found[: self.files_per_batch])
            found = [name for name in found if name not in self.known]

    def _note(self, names: list[str]) -> None:
        if self.storage is not None:
            name = _list_name(len(self.lists))
            if not self.storage.put_if_absent(name, json.dumps(names).encode()):
                names = json.loads(self.storage.read(name))
        self._add(names)

    def _add(self, names: list[str]) -> None:
        self.lists.append([name for name in names if name not in self.known])
        self.known.update(names)

    def _load(self, count: int | None = None) -> None:
        """Reads the lists that are kept, if there may be more of them than are known."""
        if self.storage is None or (count is not None and len(self.lists) >= count):
            return
        there = set(names_under(self.storage, LISTS))
        while (name := _list_name(len(self.lists))) in there:
            self._add(json.loads(self.storage.read(name)))

    def _lines(self, file: StoredFile) -> Iterator[pa.RecordBatch]:
        values = typed_values(file.url, self.fields)
        if set(values) != set(self.folders):
            raise RunError(
                f"{file.url} lies in folders that name {_listed(values)}, but those of the files that were there when the flow started name "
                f"{_listed(self.folders)}. Start the flow again if no others were there; else read the folders as sources of their own"
            )
        inside = Folders.of(self.fields, values).inside
        lines = data_lines(file.url, file.parts(), self.kind, self.header, inside)
        for some in _batched(lines):
            columns = {
                "value": pa.array([line for _, line in some], pa.binary()),
                POSITION: pa.array([f"{file.url}, line {number}" for number, _ in some], pa.string()),
            }
            yield pa.RecordBatch.from_pydict(columns | self._constant(values, len(some)))

    def _rows(self, file: StoredFile) -> Iterator[pa.RecordBatch]:
        values = typed_values(file.url, self.fields)
        inside = Folders.of(self.fields, values).inside
        for batch in parquet_table(file.url, pa.BufferReader(file.read()), inside).to_batches():
            columns = dict(zip(inside.names, batch.columns)) | self._constant(values, batch.num_rows)
            yield pa.RecordBatch.from_pydict({name: columns[name] for name in self.fields.names})

    def _constant(self, values: dict[str, object], count: int) -> dict[str, pa.Array]:
        """Columns of the values that folders name, in the order of the schema."""
        types, named = arrow_schema(self.fields), (name for name in self.fields.names if name in values)
        return {name: pa.array([values[name]] * count, types.field(name).type) for name in named}


def _parts(files: Iterable[StoredFile]) -> Iterator[tuple[StoredFile, ...]]:
    """Files put together for tasks."""
    part: list[StoredFile] = []
    for file in files:
        if part and (len(part) == _FILES or sum(each.size for each in part) + file.size > _BYTES):
            yield tuple(part)
            part = []
        part.append(file)
    if part:
        yield tuple(part)


def _list_name(number: int) -> str:
    return f"{LISTS}{number:08d}.json"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "no field"


def _batched(lines: Iterable[tuple[int, bytes]]) -> Iterator[list[tuple[int, bytes]]]:
    some, size = list[tuple[int, bytes]](), 0
    for number, line in lines:
        if some and (len(some) == _LINES or size + len(line) > _LINE_BYTES):
            yield some
            some, size = [], 0
        some.append((number, line))
        size += len(line)
    if some:
        yield some
