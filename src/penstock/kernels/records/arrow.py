"""Arrow: the form in which records travel between the JVM and Python."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from penstock.graph import types as t
from penstock.graph.schema import Schema
from penstock.graph.state.arrow import values_of

_SIMPLE: dict[str, Any] = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "timestamp_ntz": pa.timestamp("us"),
    "void": pa.null(),
}


def arrow_type(kind: t.DataType) -> pa.DataType:
    """The Arrow type of a stream type."""
    if isinstance(kind, t.Simple):
        return _SIMPLE[kind.name]
    if isinstance(kind, t.Decimal):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, t.Array):
        return pa.list_(pa.field("element", arrow_type(kind.item)))
    if isinstance(kind, t.Map):
        return pa.map_(arrow_type(kind.key), arrow_type(kind.value))
    if isinstance(kind, t.Struct):
        return pa.struct([pa.field(f.name, arrow_type(f.type)) for f in kind.fields])
    raise TypeError(f"no Arrow type for {kind}")


_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999
"""The years 1 to 9999, in milliseconds since 1970."""


def known_times(milliseconds: Any) -> Any:
    """A column of milliseconds since 1970 as timestamps, null where Python has no such time: producers may give a record any.

    >>> [str(at) for at in known_times(pa.array([0, 2**62, None], pa.int64())).to_pylist()]
    ['1970-01-01 00:00:00+00:00', 'None', 'None']
    """
    known = pc.and_(pc.greater_equal(milliseconds, _FIRST), pc.less_equal(milliseconds, _LAST))
    kept = pc.if_else(known, milliseconds, None)
    return kept.cast(pa.timestamp("ms", tz="UTC")).cast(_SIMPLE["timestamp"])


@lru_cache(maxsize=512)
def arrow_schema(schema: Schema) -> pa.Schema:
    """The Arrow schema of a stream."""
    return pa.schema([pa.field(f.name, arrow_type(f.type)) for f in schema.fields])


def declared(batch: pa.RecordBatch, schema: Schema) -> pa.RecordBatch:
    """A batch with the fields as its stream declares them, so that it fits together with batches of the same stream from elsewhere.

    Spark marks a field that it has proved never to be null; a batch from state or from another step has no such mark.

    >>> from penstock.graph.schema import schema_of
    >>> marked = pa.schema([pa.field("n", pa.int64(), nullable=False)])
    >>> declared(pa.RecordBatch.from_arrays([pa.array([1])], schema=marked), schema_of("n bigint")).schema
    n: int64
    """
    wanted = arrow_schema(schema)
    return batch if batch.schema.equals(wanted) else batch.cast(wanted)


def to_array(column: Sequence[Any], kind: t.DataType) -> pa.Array:
    """One checked column as an array."""
    return pa.array(column, arrow_type(kind))


def to_batch(columns: Sequence[Sequence[Any]], schema: Schema) -> pa.RecordBatch:
    """A record batch of checked columns."""
    shape = arrow_schema(schema)
    return pa.record_batch([pa.array(c, f.type) for c, f in zip(columns, shape, strict=True)], schema=shape)


_SURE = {str(kind) for kind in (pa.string(), pa.int64(), pa.float64(), pa.bool_())}


def to_batch_strictly(columns: list[list[Any]], schema: Schema) -> pa.RecordBatch | None:
    """A record batch of unchecked columns, or None when a value may not be of its type.

    Arrow is asked what it takes each column for; only when that is the type wanted is the column surely right.
    """
    shape = arrow_schema(schema)
    made = []
    for column, field, nullable in zip(columns, shape, (f.nullable for f in schema.fields), strict=True):
        if str(field.type) not in _SURE:
            return None
        try:
            made.append(pa.array(column))
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError, UnicodeError):
            return None
        if made[-1].type != field.type or (made[-1].null_count and not nullable):
            return None
    return pa.record_batch(made, schema=shape)


def to_columns(batch: pa.RecordBatch) -> list[list[Any]]:
    """The columns of a record batch as Python values; maps become dicts."""
    return [values_of(column) for column in batch.columns]


def with_columns(batch: pa.RecordBatch, columns: Sequence[list[Any] | pa.Array], schema: Schema) -> pa.RecordBatch:
    """A batch with further columns after its own; `schema` is that of all, but for the values of a column that has them by number."""
    whole = arrow_schema(schema)
    new = [
        column if isinstance(column, pa.Array) else pa.array(column, whole.field(at).type)
        for at, column in enumerate(columns, batch.num_columns)
    ]
    if any(pa.types.is_dictionary(column.type) for column in new):
        return pa.RecordBatch.from_arrays([*batch.columns, *new], schema.names)
    return pa.RecordBatch.from_arrays([*batch.columns, *new], schema=whole)


def decoded(column: pa.Array) -> pa.Array:
    """A column with its values in place of their numbers.

    >>> decoded(pa.array(["a", "b", "a"]).dictionary_encode()).to_pylist()
    ['a', 'b', 'a']
    """
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
