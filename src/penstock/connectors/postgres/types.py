"""Values on their way to and from PostgreSQL: column types, Arrow to CSV for COPY, and PostgreSQL's text back to Arrow."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv

from penstock.connectors.texts import from_text, json_text
from penstock.graph import types as t

if TYPE_CHECKING:
    from types import ModuleType

    from psycopg.sql import Identifier

_COLUMNS = {
    "boolean": "boolean",
    "tinyint": "smallint",
    "smallint": "smallint",
    "int": "integer",
    "bigint": "bigint",
    "float": "real",
    "double": "double precision",
    "string": "text",
    "binary": "bytea",
    "date": "date",
    "timestamp": "timestamp with time zone",
    "timestamp_ntz": "timestamp without time zone",
    "void": "text",
}


def column_type(kind: t.DataType) -> str:
    """The type of a column that holds such values; what has parts becomes jsonb, lists of plain values arrays.

    >>> column_type(t.parse_type("decimal(12,2)")), column_type(t.parse_type("array<int>")), column_type(t.parse_type("map<string,int>"))
    ('numeric(12,2)', 'integer[]', 'jsonb')
    """
    if isinstance(kind, t.Decimal):
        return f"numeric({kind.precision},{kind.scale})"
    if isinstance(kind, t.Array) and isinstance(kind.item, t.Simple | t.Decimal):
        return f"{column_type(kind.item)}[]"
    return _COLUMNS[kind.name] if isinstance(kind, t.Simple) else "jsonb"


class Encoder:
    """Record batches as CSV for `COPY ... (format csv)`: nothing unquoted is a null, so an empty text stays one."""

    def __init__(self, columns: Sequence[tuple[str, str]]) -> None:
        self.columns = tuple(columns)
        self.options = pcsv.WriteOptions(include_header=False, quoting_style="all_valid")

    def encode(self, batch: pa.RecordBatch, first: int) -> bytes:
        """The rows, with their numbers after them."""
        made = [_written(batch.column(n), kind) for n, kind in self.columns]
        numbers = pa.array(np.arange(first, first + batch.num_rows))
        out = pa.BufferOutputStream()
        names = [n for n, _ in self.columns]
        pcsv.write_csv(pa.record_batch([*made, numbers], names=[*names, "penstock_row"]), out, self.options)
        return bytes(out.getvalue())


def _written(column: pa.Array, kind: str) -> pa.Array:
    """A column as CSV can write it. Points in time are written without their zone, many times as fast: the session is in UTC."""
    if pa.types.is_nested(column.type):
        text = _array_text if kind.endswith("[]") else json_text
        values = column.to_pylist(maps_as_pydicts="strict") if _has_map(column.type) else column.to_pylist()
        return pa.array([None if v is None else text(v) for v in values], pa.string())
    if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
        return pa.array([None if v is None else "\\x" + v.hex() for v in column.to_pylist()], pa.string())
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), pa.string())
    if pa.types.is_timestamp(column.type) and column.type.tz:
        return column.cast(pa.timestamp("us"))
    return column


def _has_map(kind: pa.DataType) -> bool:
    return pa.types.is_map(kind) or any(_has_map(kind.field(i).type) for i in range(kind.num_fields))


def _array_text(values: list[Any]) -> str:
    """A list as PostgreSQL writes arrays.

    >>> _array_text(["a", None, "b c", 1])
    '{"a",NULL,"b c","1"}'
    """
    return "{" + ",".join(_item_text(v) for v in values) + "}"


def _item_text(value: object) -> str:
    if value is None:
        return "NULL"
    text = "\\x" + value.hex() if isinstance(value, bytes) else str(value)
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def selected(name: Identifier, kind: t.DataType, sql: ModuleType) -> Any:
    """How a column is asked for, so that its text can be read back: what has parts comes as JSON, bytes as hex."""
    if isinstance(kind, t.Array | t.Map | t.Struct):
        return sql.SQL("to_json({})::text").format(name)
    if kind == t.BINARY:
        return sql.SQL("encode({}, 'hex')").format(name)
    return sql.SQL("{}::text").format(name) if kind == t.STRING else name


_BY_CSV = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal, pa.types.is_date, pa.types.is_timestamp)


class Decoder:
    """PostgreSQL's CSV as record batches of a schema."""

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        kinds = {f.name: f.type if _read_by_csv(f.type) else pa.string() for f in schema}
        self.convert = pcsv.ConvertOptions(
            column_types=kinds,
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
            true_values=["t"],
            false_values=["f"],
            check_utf8=False,
        )
        self.read = pcsv.ReadOptions(column_names=schema.names, use_threads=False, block_size=1 << 24)
        self.parse = pcsv.ParseOptions(newlines_in_values=True, ignore_empty_lines=False)

    def decode(self, lines: Iterable[bytes]) -> pa.Table:
        """A table of CSV lines."""
        table = pcsv.read_csv(io.BytesIO(b"".join(lines)), self.read, self.parse, self.convert)
        return pa.table(
            [from_text(table.column(f.name), f.type) for f in self.schema],
            schema=self.schema,
        )


def _read_by_csv(kind: pa.DataType) -> bool:
    return pa.types.is_boolean(kind) or any(test(kind) for test in _BY_CSV)
