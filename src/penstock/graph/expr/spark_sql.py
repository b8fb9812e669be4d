"""Nodes to Spark SQL text.

>>> from penstock.graph.expr.parse import parse
>>> to_sql(parse("a + b * 2 > 3 or c is null"))
'((a + (b * 2)) > 3) OR (c IS NULL)'
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any

from penstock.errors import ExpressionError
from penstock.graph import types as t
from penstock.graph.expr.model import (
    INTERVAL,
    INTERVAL_DAY,
    Alias,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    GetField,
    GetItem,
    Literal,
    Raw,
)
from penstock.graph.expr.parse import KEYWORDS

_INFIX = frozenset({"+", "-", "*", "/", "%", "div", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or"})
_INFIX_WORDS = frozenset({"like", "rlike", "ilike"})

_RESERVED_TEXT = """
    all any both collate cross current_date current_time current_timestamp current_user date distinct except exists
    filter for full group having inner intersect interval join lateral leading left localtime natural on order outer
    overlaps right select semi anti session_user some table timestamp timestamp_ltz timestamp_ntz trailing union
    unique user using where window with within
"""

_RESERVED = KEYWORDS | frozenset(_RESERVED_TEXT.split())


def to_sql(expr: Expr) -> str:
    """The expression as Spark SQL text."""
    plain = expr.plain()
    return _WRITERS[type(plain)](plain)


def name_of(expr: Expr) -> str:
    """The name of the column that the expression makes: its alias, its column or field, else its text."""
    if isinstance(expr, Alias | Column | GetField):
        return expr.name
    return to_sql(expr)


def identifier(name: str) -> str:
    """A name as SQL takes it; in backticks when it is a keyword or not plain."""
    if name.lower() in _RESERVED or not name.isascii():
        return "`" + name.replace("`", "``") + "`"
    return t.quote(name)


def text_literal(value: str) -> str:
    """A text in quotes, with everything escaped that Spark would read otherwise."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    for sign, code in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\0", "\\0")):
        escaped = escaped.replace(sign, code)
    return f"'{escaped}'"


def _operand(expr: Expr) -> str:
    text = to_sql(expr)
    return text if _is_atom(expr, text) else f"({text})"


def _base(expr: Expr) -> str:
    return f"({to_sql(expr)})" if isinstance(expr, Literal) else _operand(expr)


def _is_atom(expr: Expr, text: str) -> bool:
    if isinstance(expr, Call):
        return text.endswith(")") and expr.name not in _INFIX | _INFIX_WORDS | {"in", "not", "negative", "isnull"}
    if isinstance(expr, Literal):
        return not text.startswith(("-", "INTERVAL"))
    return not isinstance(expr, Alias | Raw)


def _call(expr: Call) -> str:
    name, args = expr.name, expr.args
    if name in _INFIX and len(args) == 2:
        return f"{_operand(args[0])} {name.upper()} {_operand(args[1])}"
    if name in _INFIX_WORDS and len(args) == 2:
        return f"{_operand(args[0])} {name.upper()} {_operand(args[1])}"
    if name == "in":
        return f"{_operand(args[0])} IN ({', '.join(map(to_sql, args[1:]))})"
    if name in _PREFIX and len(args) == 1:
        return _PREFIX[name].format(_operand(args[0]))
    inner = "*" if expr.star else ", ".join(map(to_sql, args))
    return f"{name}({'DISTINCT ' if expr.distinct else ''}{inner})"


_PREFIX = {"not": "NOT {}", "negative": "-{}", "isnull": "{} IS NULL", "isnotnull": "{} IS NOT NULL"}


def _cast(expr: Cast) -> str:
    return f"{'TRY_CAST' if expr.try_ else 'CAST'}({to_sql(expr.expr)} AS {expr.type})"


def _case(expr: Case) -> str:
    whens = " ".join(f"WHEN {to_sql(given)} THEN {to_sql(then)}" for given, then in expr.whens)
    otherwise = "" if expr.otherwise is None else f" ELSE {to_sql(expr.otherwise)}"
    return f"CASE {whens}{otherwise} END"


def _literal(expr: Literal) -> str:
    if expr.value is None:
        return "NULL"
    writer = _VALUES.get(expr.type)
    if writer is not None:
        return writer(expr.value)
    if isinstance(expr.type, t.Decimal):
        return f"{decimal.Decimal(expr.value):f}BD"
    raise ExpressionError(f"no SQL text for a constant of type {expr.type}")


def _number(value: float, suffix: str, kind: str) -> str:
    return f"{value!r}{suffix}" if math.isfinite(value) else f"CAST('{value}' AS {kind})"


def _timestamp(value: datetime.datetime) -> str:
    plain = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return f"TIMESTAMP '{plain.isoformat(' ')}Z'"


def _interval(value: datetime.timedelta) -> str:
    micros = value // datetime.timedelta(microseconds=1)
    unit, size = next((unit, size) for unit, size in _UNITS if micros % size == 0)
    return f"INTERVAL {micros // size} {unit}"


_UNITS = (("HOURS", 3_600_000_000), ("MINUTES", 60_000_000), ("SECONDS", 1_000_000), ("MICROSECONDS", 1))

_VALUES: dict[t.DataType, Callable[[Any], str]] = {
    t.BOOLEAN: lambda value: "true" if value else "false",
    t.TINYINT: lambda value: f"{value}Y",
    t.SMALLINT: lambda value: f"{value}S",
    t.INT: str,
    t.BIGINT: lambda value: f"{value}L",
    t.FLOAT: lambda value: _number(value, "F", "float"),
    t.DOUBLE: lambda value: _number(value, "D", "double"),
    t.STRING: text_literal,
    t.BINARY: lambda value: f"X'{value.hex().upper()}'",
    t.DATE: lambda value: f"DATE '{value.isoformat()}'",
    t.TIMESTAMP: _timestamp,
    INTERVAL: _interval,
    INTERVAL_DAY: lambda value: f"INTERVAL {value.days} DAYS",
}

_WRITERS: dict[type[Expr], Callable[[Any], str]] = {
    Column: lambda expr: identifier(expr.name),
    Literal: _literal,
    Call: _call,
    Cast: _cast,
    Case: _case,
    GetField: lambda expr: f"{_base(expr.expr)}.{identifier(expr.name)}",
    GetItem: lambda expr: f"{_base(expr.expr)}[{to_sql(expr.key)}]",
    Alias: lambda expr: f"{to_sql(expr.expr)} AS {identifier(expr.name)}",
    Raw: lambda expr: expr.text,
}
