"""What a spout emits: tuples on their way from its tasks, as columns and as records, and what is no tuple of its stream."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple, overload

import numpy as np
import pyarrow as pa

from penstock.errors import UnknownName, nearest
from penstock.graph.logic.tagged import TaggedRecord
from penstock.graph.logic.topology.components import Spout, streams_of
from penstock.graph.logic.topology.tuples import DEFAULT
from penstock.graph.nodes import Source
from penstock.graph.nodes.topology import ROOTS, SEQUENCE, SOURCE, TASK
from penstock.graph.schema import Schema
from penstock.kernels.records.chunk import shape_of
from penstock.kernels.records.reading import MalformedRecord, decoded, read_json
from penstock.kernels.records.records import BadRecord
from penstock.kernels.records.unreadable import ESCAPES, reason

STREAM = "__stream"


class SpoutRecord(tuple[Any, ...]):
    """A record with all its fields, those of Penstock's own among them; `emitter` is the task it comes from."""

    emitter: int = 0


_ROOT = 8
"""The bytes of a root."""


class PackedRoots(Sequence[bytes]):
    """The roots of tuples that have one each, packed: Arrow takes them as they are, and a root is cut out when somebody looks at it.

    >>> PackedRoots(b"one rootanother!")[1], list(PackedRoots(b"one root"))
    (b'another!', [b'one root'])
    """

    __slots__ = ("packed",)

    def __init__(self, packed: bytes) -> None:
        self.packed = packed

    def __len__(self) -> int:
        return len(self.packed) // _ROOT

    @overload
    def __getitem__(self, at: int) -> bytes: ...

    @overload
    def __getitem__(self, at: slice) -> list[bytes]: ...

    def __getitem__(self, at: Any) -> Any:
        return list(self)[at]

    def __iter__(self) -> Iterator[bytes]:
        packed = self.packed
        return (packed[at : at + _ROOT] for at in range(0, len(packed), _ROOT))

    def __arrow_array__(self, type: pa.DataType | None = None) -> pa.Array:
        """The roots as an Arrow column."""
        ends = np.arange(0, len(self.packed) + 1, _ROOT, dtype=np.int32)
        return pa.BinaryArray.from_buffers(
            pa.binary(), len(self), [None, pa.py_buffer(ends), pa.py_buffer(self.packed)]
        )


def joined_columns(parts: Sequence[SpoutColumns]) -> list[Sequence[Any]]:
    """The columns of all parts."""
    return [_joined(columns) for columns in zip(*(part.columns for part in parts), strict=True)]


def _joined(columns: Sequence[Sequence[Any]]) -> Sequence[Any]:
    packed = [column.packed for column in columns if isinstance(column, PackedRoots)]
    if len(packed) == len(columns):
        return PackedRoots(b"".join(packed))
    return list(chain.from_iterable(columns))


class EmittedTuples(NamedTuple):
    """What a task gave on a stream: the records, and beside them, where the stream carries them, tasks and roots."""

    stream: str
    records: list[Any]
    tasks: list[int] | None = None
    roots: list[bytes | None] | None = None
    emitter: int = 0


class SpoutColumns(NamedTuple):
    """The records of a task, column by column, with all their fields."""

    emitter: int
    columns: Sequence[Sequence[Any]]
    malformed: list[MalformedRecord] | None = None
    """What was emitted in place of records, if these are none: the columns are empty then, and as long."""

    @property
    def many(self) -> int:
        """How many records."""
        return len(self.columns[0])

    def records(self) -> list[SpoutRecord | MalformedRecord]:
        """The records, one by one; those that are none as they were emitted."""
        if self.malformed is not None:
            return [*self.malformed]
        made = list(map(SpoutRecord, zip(*self.columns, strict=True)))
        for record in made if self.emitter else ():
            record.emitter = self.emitter
        return [*made]


class SpoutShape:
    """How the records of a spout travel: fields, then number, task and roots; several streams as a struct each."""

    def __init__(self, node: Source) -> None:
        self.node = node
        self.spout: Spout = node.endpoint.options["spout"]
        self.streams: dict[str, Schema] = streams_of(self.spout)
        self.names = node.output().schema.names
        self.tagged = STREAM in self.names

    def full(self, emitted: EmittedTuples, number: int) -> list[list[Any]]:
        """The records of a stream as columns, checked, complete, and numbered from `number` on."""
        if emitted.stream not in self.streams:
            raise UnknownName(f"no stream {emitted.stream!r}; {nearest(emitted.stream, self.streams)}")
        count = len(emitted.records)
        columns = shape_of(self.streams[emitted.stream]).columns(emitted.records)
        if self.tagged:
            rows, none = list(zip(*columns, strict=True)), [None] * count
            columns = [[emitted.stream] * count, *(rows if s == emitted.stream else none for s in self.streams)]
        beside: dict[str, list[Any]] = {
            SEQUENCE.name: list(range(number, number + count)),
            SOURCE.name: [emitted.emitter] * count,
            TASK.name: emitted.tasks or [None] * count,
            ROOTS.name: emitted.roots or [None] * count,
        }
        return [*columns, *(beside[n] for n in self.names if n in beside)]

    def why_not(self, stream: str, record: object) -> str:
        """Why something is no record of a stream; empty where it is one."""
        try:
            shape_of(self.streams[stream]).columns([record])
        except BadRecord as error:
            return str(error)
        return ""

    def raw(self, stream: str, record: object) -> bytes:
        """What was emitted in place of a record, as JSON: its fields by their names, as far as it has them."""
        names = self.streams[stream].names
        values = record if isinstance(record, list | tuple) else [record]
        found = record if isinstance(record, dict) else dict(zip(names, values, strict=False))
        try:
            return json.dumps({STREAM: stream, **found} if self.tagged else found, default=repr).encode()
        except ESCAPES:
            return repr(record).encode(errors="backslashreplace")

    def reread(self, raw: bytes, number: int) -> SpoutColumns:
        """The record that somebody has made of what `raw` says, or the same once more."""
        try:
            text = decoded(raw)
            stream = json.loads(text).get(STREAM, DEFAULT) if self.tagged else DEFAULT
            values = read_json(text, self.streams[stream])
            return SpoutColumns(0, self.full(EmittedTuples(stream, [values]), number))
        except (AttributeError, *ESCAPES) as error:
            return self.aside(0, [MalformedRecord(raw, "replayed", reason(error))])

    def aside(self, emitter: int, malformed: list[MalformedRecord]) -> SpoutColumns:
        """What is no record, among those that are."""
        return SpoutColumns(emitter, [[None] * len(malformed) for _ in self.names], malformed)


def completed(node: Source, record: object, number: int) -> SpoutRecord:
    """A record that a test emits instead of a spout, as the spout would have given it.

    `ps.to(stream, record)` says which stream it is of, when the spout has several.
    """
    if isinstance(record, SpoutRecord):
        return record
    tagged = record if isinstance(record, TaggedRecord) else TaggedRecord(DEFAULT, record)
    columns = SpoutShape(node).full(EmittedTuples(tagged.output, [tagged.record]), number)
    return SpoutRecord(column[0] for column in columns)
