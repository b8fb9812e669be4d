"""Expressions as text, in the language in which they are written: what errors and descriptions show reads back as the same expression.

A runtime that speaks another dialect makes a `Printer` of its own.

>>> from penstock.graph.expr.parse import parse
>>> to_text(parse("a + b * 2 > 3 or c is null"))
'((a + (b * 2)) > 3) OR (c IS NULL)'
"""

from __future__ import annotations

import datetime
import decimal
import math
from collections.abc import Callable
from typing import Any, ClassVar

from penstock.errors import ExpressionError
from penstock.graph import types as t
from penstock.graph.expr.model import (
    INTERVAL,
    INTERVAL_DAY,
    INTERVAL_MONTH,
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
from penstock.graph.expr.python import PythonCall
from penstock.graph.expr.python_aggregates import AggregateFunctionCall

_INFIX = frozenset({"+", "-", "*", "/", "%", "div", "=", "<>", "<", "<=", ">", ">=", "<=>", "and", "or"})
_INFIX_WORDS = frozenset({"like", "rlike", "ilike"})
_PREFIX = {"not": "NOT {}", "negative": "-{}", "isnull": "{} IS NULL", "isnotnull": "{} IS NOT NULL"}
_UNITS = (("HOURS", 3_600_000_000), ("MINUTES", 60_000_000), ("SECONDS", 1_000_000), ("MICROSECONDS", 1))


class Printer:
    """Writes expressions as text."""

    reserved: ClassVar[frozenset[str]] = KEYWORDS
    """Words that cannot be names unless they are quoted."""

    def text(self, expr: Expr) -> str:
        """The expression as text.

        Raises:
            ExpressionError: a constant is of a type that has no text.
        """
        plain = expr.plain()
        return _WRITERS[type(plain)](self, plain)

    def identifier(self, name: str) -> str:
        """A name as expressions take it; in backticks when it is a keyword or not plain."""
        if name.lower() in self.reserved or not name.isascii():
            return "`" + name.replace("`", "``") + "`"
        return t.quote(name)

    def literal(self, expr: Literal) -> str:
        """A constant."""
        if expr.value is None:
            return "NULL"
        writer = _VALUES.get(expr.type)
        if writer is not None:
            return writer(expr.value)
        if isinstance(expr.type, t.Decimal):
            return f"{decimal.Decimal(expr.value):f}BD"
        raise ExpressionError(f"no text for a constant of type {expr.type}")

    def call(self, expr: Call) -> str:
        """A function or an operator with its arguments."""
        name, args = expr.name, expr.args
        if name in _INFIX | _INFIX_WORDS and len(args) == 2:
            return f"{self._operand(args[0])} {name.upper()} {self._operand(args[1])}"
        if name == "in":
            return f"{self._operand(args[0])} IN ({', '.join(map(self.text, args[1:]))})"
        if name in _PREFIX and len(args) == 1:
            return _PREFIX[name].format(self._operand(args[0]))
        inner = "*" if expr.star else ", ".join(map(self.text, args))
        only = "" if expr.condition is None else f" FILTER (WHERE {self.text(expr.condition)})"
        return f"{name}({'DISTINCT ' if expr.distinct else ''}{inner}){only}"

    def python(self, expr: PythonCall) -> str:
        """A call of a Python function."""
        return f"{expr.function.name}({', '.join(map(self.text, expr.args))})"

    def cast(self, expr: Cast) -> str:
        """A value as another type."""
        return f"{'TRY_CAST' if expr.try_ else 'CAST'}({self.text(expr.expr)} AS {expr.type})"

    def case(self, expr: Case) -> str:
        """The value of the first condition that holds."""
        whens = " ".join(f"WHEN {self.text(given)} THEN {self.text(then)}" for given, then in expr.whens)
        otherwise = "" if expr.otherwise is None else f" ELSE {self.text(expr.otherwise)}"
        return f"CASE {whens}{otherwise} END"

    def field(self, expr: GetField) -> str:
        """A field of a struct."""
        return f"{self._base(expr.expr)}.{self.identifier(expr.name)}"

    def item(self, expr: GetItem) -> str:
        """An item of a list or a map."""
        return f"{self._base(expr.expr)}[{self.text(expr.key)}]"

    def alias(self, expr: Alias) -> str:
        """A value under a name."""
        return f"{self.text(expr.expr)} AS {self.identifier(expr.name)}"

    def _operand(self, expr: Expr) -> str:
        text = self.text(expr)
        return text if _is_atom(expr, text) else f"({text})"

    def _base(self, expr: Expr) -> str:
        return f"({self.text(expr)})" if isinstance(expr, Literal) else self._operand(expr)


def to_text(expr: Expr) -> str:
    """The expression as people read it, and as `parse` reads it back."""
    return _PLAIN.text(expr)


def name_of(expr: Expr) -> str:
    """The name of the column that the expression makes: its alias, its column or field, else its text."""
    if isinstance(expr, Alias | Column | GetField):
        return expr.name
    return to_text(expr)


def text_literal(value: str) -> str:
    """A text in quotes, with everything escaped that would be read otherwise."""
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    for sign, code in (("\n", "\\n"), ("\r", "\\r"), ("\t", "\\t"), ("\0", "\\0")):
        escaped = escaped.replace(sign, code)
    return f"'{escaped}'"


def _is_atom(expr: Expr, text: str) -> bool:
    if isinstance(expr, Call):
        return text.endswith(")") and expr.name not in _INFIX | _INFIX_WORDS | {"in", "not", "negative", "isnull"}
    if isinstance(expr, Literal):
        return not text.startswith(("-", "INTERVAL"))
    return not isinstance(expr, Alias | Raw)


def _number(value: float, suffix: str, kind: str) -> str:
    return f"{value!r}{suffix}" if math.isfinite(value) else f"CAST('{value}' AS {kind})"


def _timestamp(value: datetime.datetime) -> str:
    plain = value.astimezone(datetime.UTC).replace(tzinfo=None)
    return f"TIMESTAMP '{plain.isoformat(' ')}Z'"


def _interval(value: datetime.timedelta) -> str:
    micros = value // datetime.timedelta(microseconds=1)
    unit, size = next((unit, size) for unit, size in _UNITS if micros % size == 0)
    return f"INTERVAL {micros // size} {unit}"


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
    INTERVAL_MONTH: lambda value: f"INTERVAL {value} MONTHS",
}

_WRITERS: dict[type[Expr], Callable[[Printer, Any], str]] = {
    Column: lambda printer, expr: printer.identifier(expr.name),
    Literal: lambda printer, expr: printer.literal(expr),
    Call: lambda printer, expr: printer.call(expr),
    Cast: lambda printer, expr: printer.cast(expr),
    Case: lambda printer, expr: printer.case(expr),
    GetField: lambda printer, expr: printer.field(expr),
    GetItem: lambda printer, expr: printer.item(expr),
    Alias: lambda printer, expr: printer.alias(expr),
    Raw: lambda printer, expr: expr.text,
    PythonCall: lambda printer, expr: printer.python(expr),
    AggregateFunctionCall: lambda printer, expr: printer.call(expr),
}
_PLAIN = Printer()
