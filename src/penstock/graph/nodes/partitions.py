"""Files in folders by value, `day=2026-05-01/`, as Hive and Spark lay them out: which fields may name folders."""

from __future__ import annotations

from collections.abc import Sequence

from penstock.errors import FlowError, SchemaError
from penstock.graph import types as t
from penstock.graph.schema import Schema

_NO_NAMES = (t.BINARY, t.FLOAT, t.DOUBLE)


def check_partitions(fields: Sequence[str], kind: str, schema: Schema) -> None:
    """Refuses fields that cannot name folders.

    Raises:
        SchemaError: a field is not there, or is no plain value.
        FlowError: one is named twice, no other field is left for the files, or the format holds one field only.
    """
    if kind == "text":
        raise FlowError("text files hold one field, so partition_by needs another format: parquet, json or csv")
    if len({name.lower() for name in fields}) < len(fields):
        raise FlowError(f"partition_by names a field twice: {', '.join(fields)}")
    for name in fields:
        _check_type(schema.field(name))
    if len(fields) == len(schema.fields):
        raise FlowError(f"partition_by names every field ({', '.join(fields)}), so that the files would be empty")


def _check_type(field: t.Field) -> None:
    if isinstance(field.type, t.Array | t.Map | t.Struct) or field.type in _NO_NAMES:
        raise SchemaError(
            f"partition_by takes plain and exact values; {field.name!r} is {field.type}. Pick a part of it or cast it first"
        )
