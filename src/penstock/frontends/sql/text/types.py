"""Types as statements spell them: those of Spark, and the other names that Flink and the standard have for them."""

from __future__ import annotations

from typing import Any

from sqlglot import exp

from penstock.frontends.sql.text.source import Place, SqlText
from penstock.graph import types as t

_K = exp.DataType.Type
_PLAIN: dict[Any, t.DataType] = {
    _K.BOOLEAN: t.BOOLEAN,
    _K.TINYINT: t.TINYINT,
    _K.SMALLINT: t.SMALLINT,
    _K.INT: t.INT,
    _K.BIGINT: t.BIGINT,
    _K.FLOAT: t.FLOAT,
    _K.DOUBLE: t.DOUBLE,
    _K.CHAR: t.STRING,
    _K.NCHAR: t.STRING,
    _K.VARCHAR: t.STRING,
    _K.NVARCHAR: t.STRING,
    _K.TEXT: t.STRING,
    _K.BINARY: t.BINARY,
    _K.VARBINARY: t.BINARY,
    _K.DATE: t.DATE,
    _K.TIMESTAMP: t.TIMESTAMP,
    _K.TIMESTAMPLTZ: t.TIMESTAMP,
    _K.TIMESTAMPTZ: t.TIMESTAMP,
    _K.DATETIME: t.TIMESTAMP,
    _K.TIMESTAMPNTZ: t.TIMESTAMP_NTZ,
}


def type_of_tree(text: SqlText, tree: exp.Expr | None, place: Place) -> t.DataType:
    """The type that a syntax tree names.

    Raises:
        SqlError: there is no such type.
    """
    if isinstance(tree, exp.DataType):
        found = _made(text, tree, place)
        if found is not None:
            return found
    shown = tree.sql() if isinstance(tree, exp.Expr) else str(tree)
    raise text.error(
        place,
        f"expected a type such as STRING, BIGINT, DECIMAL(10, 2), TIMESTAMP(3), ARRAY<INT> or ROW<a INT>, got {shown}",
    )


def _made(text: SqlText, tree: exp.DataType, place: Place) -> t.DataType | None:
    kind, inside = tree.this, tree.expressions
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind == _K.DECIMAL:
        numbers = [int(p.this.this) for p in inside]
        return t.Decimal(*numbers[:2]) if numbers else t.Decimal(10, 0)
    if kind in (_K.ARRAY, _K.LIST) and len(inside) == 1:
        return t.Array(type_of_tree(text, inside[0], place))
    if kind == _K.MAP and len(inside) == 2:
        return t.Map(*(type_of_tree(text, each, place) for each in inside))
    if kind in (_K.STRUCT, _K.NESTED) and inside:
        return t.Struct(tuple(_field(text, each, place) for each in inside))
    return None


def _field(text: SqlText, tree: exp.Expr, place: Place) -> t.Field:
    if not isinstance(tree, exp.ColumnDef) or tree.args.get("kind") is None:
        raise text.error(place, "expected ROW<name type, ...>, with a name for each field")
    return t.Field(tree.name, type_of_tree(text, tree.args["kind"], place))
