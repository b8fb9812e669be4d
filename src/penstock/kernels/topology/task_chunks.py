"""What a task emits: chunks that know their task, and the streams they belong to."""

from __future__ import annotations

from typing import Any, NamedTuple

import pyarrow as pa

from penstock.graph.nodes import Output
from penstock.graph.nodes.topology import visible
from penstock.graph.schema import Schema
from penstock.kernels.records.arrow import arrow_schema, decoded, with_columns
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.topology.readers import Choices


class TaskChunk(Chunk):
    """A chunk that knows the task it comes from."""

    __slots__ = ("choices", "emitter")

    def __init__(
        self, schema: Schema, emitter: int, columns: list[list[Any]] | None = None, batch: pa.RecordBatch | None = None
    ) -> None:
        super().__init__(schema, columns=columns, batch=batch)
        self.emitter = emitter
        self.choices: Choices = {}

    def batch(self) -> pa.RecordBatch:
        """The tuples with all their texts and roots."""
        made = super().batch()
        if any(isinstance(kind, pa.DictionaryType) for kind in made.schema.types):
            columns = [decoded(column) for column in made.columns]
            return pa.RecordBatch.from_arrays(columns, schema=arrow_schema(self.shape.schema))
        return made

    def by_number(self) -> pa.RecordBatch:
        """The tuples as they are at hand."""
        return super().batch()


class EmittedStream(NamedTuple):
    """A stream that a bolt emits: its output, the user's part of the schema, and the columns of Penstock's own."""

    output: str
    schema: Schema
    fields: Schema
    beside: tuple[str, ...]


def emitted_stream(output: Output) -> EmittedStream:
    """An output of a bolt as its tasks see it."""
    fields = visible(output.schema)
    return EmittedStream(output.name, output.schema, fields, output.schema.names[len(fields.names) :])


def visible_fields(schema: Schema) -> bool:
    """Whether a stream has any field of the user's; that of a bolt which emits nothing has none."""
    return any(not n.startswith("__") for n in schema.names)


def task_chunk(given: EmittedStream, number: int, made: Chunk, beside: list[Any], *, in_arrow: bool) -> TaskChunk:
    """Records that a task emits to a stream, with the columns that stand beside them."""
    if in_arrow:
        return TaskChunk(given.schema, number, batch=with_columns(made.batch(), beside, given.schema))
    return TaskChunk(given.schema, number, [*made.columns(), *beside])
