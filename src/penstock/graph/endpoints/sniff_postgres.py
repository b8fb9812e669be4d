"""The schema of a table or a query, asked of the server. Only this and the connectors need psycopg."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.errors import SchemaError, SetupError
from penstock.graph import types as t
from penstock.graph.schema import Schema

if TYPE_CHECKING:
    from types import ModuleType

    import psycopg

_TYPES: dict[str, t.DataType] = {
    "bool": t.BOOLEAN,
    "int2": t.SMALLINT,
    "int4": t.INT,
    "int8": t.BIGINT,
    "oid": t.BIGINT,
    "float4": t.FLOAT,
    "float8": t.DOUBLE,
    "bytea": t.BINARY,
    "date": t.DATE,
    "timestamptz": t.TIMESTAMP,
    "timestamp": t.TIMESTAMP_NTZ,
}
_WIDEST = t.Decimal(38, 18)


def row_schema(url: str, password: str | None, table: str, query: str) -> Schema:
    """The fields of a row; types that Spark does not have come as text."""
    psycopg = driver()
    try:
        with psycopg.connect(url, password=password, connect_timeout=10) as connection:
            cursor = connection.execute(_empty(psycopg, table, query))
            return Schema(tuple(t.Field(c.name, _kind(connection, c)) for c in cursor.description or ()))
    except psycopg.Error as error:
        what = f"table {table!r}" if table else "query"
        raise SchemaError(
            f"postgres_schema(): the schema of the {what} cannot be read ({error}); give it with schema=..."
        ) from None


def driver() -> Any:
    """The psycopg module."""
    try:
        import psycopg
    except ImportError:
        raise SetupError("PostgreSQL needs the package psycopg: pip install 'penstock[postgres]'") from None
    return psycopg


def _empty(psycopg: ModuleType, table: str, query: str) -> Any:
    sql = psycopg.sql
    if table:
        return sql.SQL("select * from {} limit 0").format(sql.Identifier(*table.split(".", 1)))
    return sql.SQL("select * from ({}) q limit 0").format(sql.SQL(query.rstrip().rstrip(";")))


def _kind(connection: psycopg.Connection[Any], column: psycopg.Column) -> t.DataType:
    found = connection.adapters.types.get(column.type_code)
    if found is None:
        return t.STRING
    if found.array_oid == column.type_code:
        return t.Array(_WIDEST if found.name == "numeric" else _TYPES.get(found.name, t.STRING))
    if found.name == "numeric":
        precision, scale = column.precision or 0, column.scale or 0
        return t.Decimal(precision, scale) if 0 < precision <= 38 and 0 <= scale <= precision else _WIDEST
    return _TYPES.get(found.name, t.STRING)
