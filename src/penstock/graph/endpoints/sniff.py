"""Reads the schema of a file from the file, without a JVM."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.errors import SchemaError
from penstock.graph import types as t
from penstock.graph.schema import Schema

if TYPE_CHECKING:
    from types import ModuleType

    import pyarrow as pa

_SAMPLE = 1 << 20


def file_schema(path: str, kind: str, header: bool) -> Schema:
    """The schema of a Parquet, JSON-lines or CSV file, from its footer or its first megabyte."""
    try:
        fields = _READERS[kind](path, header)
    except (OSError, ValueError) as error:
        raise SchemaError(
            f"cannot read the schema of {path!r} ({error}); give it: files(..., schema='name type, ...')"
        ) from None
    return Schema(tuple(t.Field(f.name, type_from_arrow(f.type)) for f in fields))


def _parquet(path: str, header: bool) -> pa.Schema:
    import pyarrow.parquet as pq

    return pq.read_schema(path)


def _json(path: str, header: bool) -> pa.Schema:
    import pyarrow.json as pj

    return pj.read_json(_head(path)).schema


def _csv(path: str, header: bool) -> pa.Schema:
    import pyarrow.csv as pc

    options = pc.ReadOptions(autogenerate_column_names=not header)
    return pc.read_csv(_head(path), read_options=options).schema


_READERS = {"parquet": _parquet, "json": _json, "csv": _csv}


def _head(path: str) -> pa.Buffer:
    import pyarrow as pa

    with Path(path).open("rb") as file:
        data = file.read(_SAMPLE)
    whole = data if len(data) < _SAMPLE else data[: data.rfind(b"\n") + 1]
    return pa.BufferReader(whole)


def type_from_arrow(kind: pa.DataType) -> t.DataType:
    """The stream type of an Arrow type."""
    import pyarrow.types as pt

    for test, found in _tests(pt):
        if test(kind):
            return found
    if pt.is_list(kind) or pt.is_large_list(kind):
        return t.Array(type_from_arrow(kind.value_type))
    if pt.is_map(kind):
        return t.Map(type_from_arrow(kind.key_type), type_from_arrow(kind.item_type))
    if pt.is_struct(kind):
        return t.Struct(tuple(t.Field(f.name, type_from_arrow(f.type)) for f in kind))
    if pt.is_decimal(kind):
        return t.Decimal(kind.precision, kind.scale)
    if pt.is_timestamp(kind):
        return t.TIMESTAMP_NTZ if kind.tz is None else t.TIMESTAMP
    raise SchemaError(f"no stream type for the Arrow type {kind}; give the schema yourself")


def _tests(pt: ModuleType) -> list[tuple[Any, t.DataType]]:
    return [
        (pt.is_boolean, t.BOOLEAN),
        (pt.is_int8, t.TINYINT),
        (pt.is_int16, t.SMALLINT),
        (pt.is_int32, t.INT),
        (pt.is_integer, t.BIGINT),
        (pt.is_float32, t.FLOAT),
        (pt.is_floating, t.DOUBLE),
        (pt.is_string, t.STRING),
        (pt.is_large_string, t.STRING),
        (pt.is_binary, t.BINARY),
        (pt.is_large_binary, t.BINARY),
        (pt.is_date, t.DATE),
        (pt.is_null, t.STRING),
    ]
