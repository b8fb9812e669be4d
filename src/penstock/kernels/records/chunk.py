"""A chunk: some records of a stream, in whichever form they were last needed."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import compress, islice
from typing import TYPE_CHECKING, Any

from penstock.graph.row import Row
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import values_of
from penstock.kernels.records import arrow
from penstock.kernels.records.records import Shape

if TYPE_CHECKING:
    import pyarrow as pa


@lru_cache(maxsize=1024)
def _shape(schema: Schema, record: type | None) -> Shape:
    return Shape(schema)


def shape_of(schema: Schema) -> Shape:
    """The shape of a schema, made once."""
    return _shape(schema, schema.record)


class Chunk:
    """Records of one schema as rows, columns or an Arrow batch; each form is made when it is asked for.

    `key_hashes` has the hash of each record's key on its way to a keyed step, where the host has set it.
    """

    __slots__ = ("_batch", "_columns", "_rows", "key_hashes", "shape")

    def __init__(
        self,
        schema: Schema,
        *,
        rows: list[Any] | None = None,
        columns: list[list[Any]] | None = None,
        batch: pa.RecordBatch | None = None,
        key_hashes: list[int] | None = None,
    ) -> None:
        self.shape = shape_of(schema)
        self._rows = rows
        self._columns = columns
        self._batch = batch
        self.key_hashes = key_hashes

    @classmethod
    def of(cls, schema: Schema, records: list[Any], *, leaving: bool = False) -> Chunk:
        """A chunk of whatever records a function gave, checked against the schema.

        Records that leave Python next are checked by Arrow while it takes them, which saves a look at every value.
        """
        shape = shape_of(schema)
        if leaving and records:
            batch = arrow.to_batch_strictly(shape.split(records, quick=True), schema)
            if batch is not None:
                return cls(schema, batch=batch)
        return cls(schema, columns=shape.columns(records))

    def walk(self) -> Walk:
        """The records as rows, made one at a time as they are asked for."""
        return Walk(self)

    def __len__(self) -> int:
        if self._batch is not None:
            return int(self._batch.num_rows)
        return len(self._rows) if self._rows is not None else len((self._columns or [[]])[0])

    @property
    def is_arrow(self) -> bool:
        """Whether the records are at hand as an Arrow batch."""
        return self._batch is not None

    def rows(self) -> list[Any]:
        """The records as rows."""
        if self._rows is None:
            self._rows = self.shape.rows(self.columns())
        return self._rows

    def columns(self) -> list[list[Any]]:
        """The records as columns."""
        if self._columns is None:
            self._columns = self._make_columns()
        return self._columns

    def column(self, name: str) -> list[Any]:
        """One column; where the records are at hand as an Arrow batch the others are left alone."""
        at = self.shape.names.index(name)
        if self._columns is None and self._batch is not None:
            return values_of(self._batch.column(at))
        return self.columns()[at]

    def arrow_column(self, name: str) -> pa.Array:
        """One column as it is in the Arrow batch that is at hand."""
        assert self._batch is not None, "is_arrow says whether there is one"
        return self._batch.column(self.shape.names.index(name))

    def _make_columns(self) -> list[list[Any]]:
        if self._batch is not None:
            return arrow.to_columns(self._batch)
        return self.shape.columns(self._rows or [])

    def batch(self) -> pa.RecordBatch:
        """The records as an Arrow record batch."""
        if self._batch is None:
            self._batch = arrow.to_batch(self.columns(), self.shape.schema)
        return self._batch

    def by_number(self) -> pa.RecordBatch:
        """The same, where a column may have its values by number."""
        return self.batch()

    def keep(self, flags: list[bool]) -> Chunk:
        """The records whose flag is true."""
        if all(flags):
            return self
        if self._columns is None and self._rows is not None:
            return Chunk(self.shape.schema, rows=list(compress(self._rows, flags)))
        return Chunk(self.shape.schema, columns=[list(compress(column, flags)) for column in self.columns()])

    def plain_rows(self) -> list[Row]:
        """The records as rows of fields, whatever class they have in Python steps; what sinks get."""
        return [tuple.__new__(self.shape.row_class, values) for values in self.values()]

    def first(self, most: int) -> list[tuple[Any, ...]]:
        """The first records as plain tuples; the others are left in the form they have."""
        if len(self) > most and self._batch is not None:
            return list(zip(*arrow.to_columns(self._batch.slice(0, most)), strict=True))
        if len(self) > most and self._columns is None:
            return list(Chunk(self.shape.schema, rows=(self._rows or [])[:most]).values())
        return list(islice(self.values(), most))

    def values(self) -> Iterator[tuple[Any, ...]]:
        """The records as plain tuples."""
        return zip(*self.columns(), strict=True)


class ArrowColumns:
    """The columns of a chunk that is no Arrow batch as arrays, each made when it is asked for."""

    __slots__ = ("chunk", "num_rows")

    def __init__(self, chunk: Chunk) -> None:
        self.chunk = chunk
        self.num_rows = len(chunk)

    def column(self, at: int) -> pa.Array:
        """The column of this number."""
        return arrow.to_array(self.chunk.columns()[at], self.chunk.shape.schema.fields[at].type)


class CountedChunk(Chunk):
    """So many records that nobody reads: only their number is known."""

    __slots__ = ("many",)

    def __init__(self, schema: Schema, many: int) -> None:
        super().__init__(schema)
        self.many = many

    def __len__(self) -> int:
        return self.many


class Walk:
    """Goes over the rows of a chunk. A row that nobody keeps dies at once, which keeps the garbage collector quiet."""

    __slots__ = ("_first", "_length", "_rows")

    def __init__(self, chunk: Chunk) -> None:
        columns = chunk.columns()
        self._first: Any = iter(columns[0])
        self._length = len(columns[0])
        self._rows = map(chunk.shape.make, zip(self._first, *columns[1:], strict=False))

    def __iter__(self) -> Iterator[Any]:
        return self._rows

    @property
    def at(self) -> int:
        """The index of the row that was given last."""
        return self._length - int(self._first.__length_hint__()) - 1
