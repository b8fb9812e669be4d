"""Expressions of statements as expressions of the graph: a tree for a tree, never text."""

from __future__ import annotations

import decimal
import re
from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

from sqlglot import exp

from penstock.errors import ExpressionError, SqlError
from penstock.frontends.sql.expr import clocks as _clocks  # noqa: F401 - functions of processing time
from penstock.frontends.sql.expr import json_functions as _json  # noqa: F401 - functions of JSON
from penstock.frontends.sql.expr import special as _special  # noqa: F401 - functions that are made of others
from penstock.frontends.sql.expr.flink import between
from penstock.frontends.sql.expr.functions import FunctionContext, called
from penstock.frontends.sql.expr.intervals import interval_of
from penstock.frontends.sql.expr.library import LIBRARY
from penstock.frontends.sql.expr.scope import Scope
from penstock.frontends.sql.expr.syntax import (
    escaped,
    extracted,
    mapped,
    negated,
    overlaid,
    overlapping,
    rounded,
    similar,
    substring,
    trimmed,
)
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.types import type_of_tree
from penstock.graph import types as t
from penstock.graph.expr import Call, Case, Cast, Column, Expr, GetField, PythonCall, lit, type_of_expr
from penstock.graph.expr.literals import read_date, read_number, read_timestamp
from penstock.graph.schema import Schema

NO_SUBQUERY = (
    "a subquery may be in FROM, ON, WHERE, GROUP BY, HAVING and the select list; a query below has it as a column"
)
Tree: TypeAlias = exp.Expr
Swap = Callable[[Tree], Expr | None]


class Functions(Protocol):
    """Where functions of the user's are found."""

    def function(self, name: str) -> Any:
        """The function of a name, or None."""


class Translator:
    """Translates the expressions of one query.

    Args:
        scope: the columns that it sees.
        functions: the functions of the user's.
        swap: what a node stands for where something else has computed it, such as a subquery; None for all others.
    """

    def __init__(self, scope: Scope, functions: Functions, swap: Swap | None = None) -> None:
        self.scope, self.functions = scope, functions
        self.swap: Swap = swap or (lambda tree: None)

    @property
    def text(self) -> SqlText:
        """The text, for errors."""
        return self.scope.text

    def expr(self, tree: Tree) -> Expr:
        """The expression that a tree stands for.

        Raises:
            SqlError: a name is not there, or it is nothing that an expression may hold.
        """
        swapped = self.swap(tree)
        if swapped is not None:
            return swapped
        handler = _HANDLERS.get(type(tree))
        if handler is not None:
            return negated(tree, handler(self, tree))
        binary = _BINARY.get(type(tree))
        if binary is not None:
            return Call(binary, (self.expr(tree.this), self.expr(tree.expression)))
        raise self.text.error(tree, f"expected an expression, got {_kind(tree)}, which has no meaning here")

    def checked(self, tree: Tree, schema: Schema) -> tuple[Expr, t.DataType]:
        """An expression and its type over the fields of a stream; what does not fit is shown at its place."""
        made = self.expr(tree)
        return made, self.type(tree, made, schema)

    def type(self, tree: Tree, made: Expr, schema: Schema) -> t.DataType:
        """The type of an expression that was made of a tree."""
        try:
            return type_of_expr(made, schema)
        except ExpressionError as error:
            raise self.misfit(tree, schema, error) from None

    def misfit(self, tree: Tree, schema: Schema, error: ExpressionError) -> SqlError:
        """The error at the smallest part of a tree that does not fit."""
        for part in _parts(tree):
            try:
                made = self.expr(part)
            except SqlError:
                continue
            try:
                type_of_expr(made, schema)
            except ExpressionError as inner:
                return self.misfit(part, schema, inner)
        return self.text.error(tree, str(error).split("\n")[0])

    def column(self, tree: exp.Column) -> Expr:
        """A column, perhaps with its table before it, and fields of structs after it."""
        if isinstance(tree.this, exp.Star):
            raise self.text.error(tree, "expected an expression, got *")
        parts = [part for part in tree.parts if isinstance(part, exp.Identifier)]
        names = [part.name for part in parts]
        if len(names) > 1:
            found = self.scope.find(names[0], names[1], tree)
            if found is not None:
                return _fields(Column(found.field), names[2:])
        found = self.scope.find("", names[0], tree)
        if found is not None:
            return _fields(Column(found.field), names[1:])
        if len(names) == 1 and not parts[0].args.get("quoted") and names[0].upper() in _WORDS:
            return self.call(exp.Anonymous(this=names[0]).update_positions(parts[0]))
        raise self.scope.unknown(names[0] if len(names) > 1 else "", names[min(1, len(names) - 1)], tree)

    def literal(self, tree: exp.Literal) -> Expr:
        """A text or a number."""
        if tree.is_string:
            return lit(str(tree.this))
        try:
            return read_number(str(tree.this))
        except (ExpressionError, decimal.InvalidOperation, OverflowError) as error:
            raise self.text.error(tree, str(error)) from None

    def cast(self, tree: exp.Cast) -> Expr:
        """CAST, TRY_CAST, and constants with their type before them."""
        kind = type_of_tree(self.text, tree.args["to"], tree)
        inner = tree.this
        if isinstance(inner, exp.Literal) and inner.is_string and kind in _TYPED:
            try:
                return _TYPED[kind](str(inner.this))
            except ExpressionError as error:
                if not isinstance(tree, exp.TryCast):
                    raise self.text.error(inner, str(error)) from None
        return _cut(Cast(self.expr(inner), kind, isinstance(tree, exp.TryCast)), tree.args["to"])

    def negative(self, tree: exp.Neg) -> Expr:
        """A sign before a value; a number with its sign is one constant."""
        if isinstance(tree.this, exp.Literal) and not tree.this.is_string:
            return read_number(f"-{tree.this.this}")
        return Call("negative", (self.expr(tree.this),))

    def between(self, tree: exp.Between) -> Expr:
        """BETWEEN low AND high."""
        value = self.expr(tree.this)
        return between(tree, value, self.expr(tree.args["low"]), self.expr(tree.args["high"]))

    def is_(self, tree: exp.Is) -> Expr:
        """IS NULL, IS TRUE, IS FALSE."""
        value, other = self.expr(tree.this), tree.expression
        if isinstance(other, exp.JSON):
            return self.is_json(value, other)
        if isinstance(other, exp.Null):
            return Call("isnull", (value,))
        if isinstance(other, exp.Boolean):
            return Call("<=>", (value, lit(bool(other.this))))
        raise self.text.error(tree, "expected NULL, TRUE, FALSE, UNKNOWN or DISTINCT FROM after IS")

    @staticmethod
    def is_json(value: Expr, tree: exp.JSON) -> Expr:
        """IS [NOT] JSON [VALUE | OBJECT | ARRAY | SCALAR]."""
        return PythonCall(LIBRARY["is_json"], (value, lit(str(tree.this or "VALUE").upper())))

    def in_(self, tree: exp.In) -> Expr:
        """IN (values); subqueries are planned before expressions are."""
        if tree.args.get("query") is not None or tree.args.get("unnest") is not None:
            raise self.text.error(tree, NO_SUBQUERY)
        return Call("in", (self.expr(tree.this), *map(self.expr, tree.expressions)))

    def case(self, tree: exp.Case) -> Expr:
        """CASE WHEN, or CASE value WHEN."""
        subject = None if tree.this is None else self.expr(tree.this)
        whens = []
        for each in tree.args["ifs"]:
            given = self.expr(each.this)
            then = self.expr(each.args["true"])
            whens.append((given if subject is None else Call("=", (subject, given)), then))
        default = tree.args.get("default")
        return Case(tuple(whens), None if default is None else self.expr(default))

    def bracket(self, tree: exp.Bracket) -> Expr:
        """An item: of an array from 1, as SQL counts, or of a map."""
        if self.is_map(tree):
            return Call("map", tuple(map(self.expr, tree.expressions)))
        if len(tree.expressions) != 1:
            raise self.text.error(tree, f"expected one index in [...], got {len(tree.expressions)}")
        inner, key = self.expr(tree.this), self.expr(tree.expressions[0])
        return Call("element_at", (inner, key))

    @staticmethod
    def is_map(tree: exp.Bracket) -> bool:
        """Whether it is MAP[key, value, ...]: an index is one value."""
        name = tree.this.name if isinstance(tree.this, exp.Column) and not tree.this.table else ""
        return name.upper() == "MAP" and len(tree.expressions) % 2 == 0 and bool(tree.expressions)

    def dot(self, tree: exp.Dot) -> Expr:
        """A field of a struct."""
        if not isinstance(tree.expression, exp.Identifier):
            raise self.text.error(tree, "expected the name of a field after the point")
        return GetField(self.expr(tree.this), tree.expression.name)

    def filter(self, tree: exp.Filter) -> Expr:
        """AGGREGATE FILTER (WHERE condition)."""
        made = self.expr(tree.this)
        if not isinstance(made, Call):
            raise self.text.error(tree, "expected an aggregate before FILTER")
        return made.where(self.expr(tree.expression.this))

    def array(self, tree: exp.Array) -> Expr:
        """ARRAY[...]."""
        return Call("array", tuple(map(self.expr, tree.expressions)))

    def row(self, tree: exp.Tuple) -> Expr:
        """(a, b), a row of values."""
        return Call("struct", tuple(map(self.expr, tree.expressions)))

    def like(self, tree: exp.Like | exp.ILike) -> Expr:
        """LIKE and ILIKE."""
        name = "ilike" if isinstance(tree, exp.ILike) else "like"
        return Call(name, (self.expr(tree.this), self.expr(tree.expression)))

    def call(self, tree: exp.Anonymous) -> Expr:
        """A function."""
        name = tree.this.name if isinstance(tree.this, exp.Identifier) else str(tree.this)
        return called(FunctionContext(self, name, tree))

    def window(self, tree: exp.Window) -> Expr:
        """OVER stands where the planner looks for it."""
        raise self.text.error(
            tree, "expected an OVER window in the select list or in QUALIFY, got one inside of another expression"
        )

    def subquery(self, tree: Tree) -> Expr:
        """A subquery that was not planned before."""
        raise self.text.error(tree, NO_SUBQUERY)

    def quantified(self, tree: exp.Any | exp.All) -> Expr:
        """ANY or ALL that no comparison with a subquery has before it."""
        name = type(tree).__name__.upper()
        raise self.text.error(
            tree,
            f"expected a comparison with {name} (SELECT ...), such as x > {name} (SELECT y FROM t)",  # noqa: S608 - a message
        )


def _fields(start: Expr, names: list[str]) -> Expr:
    for name in names:
        start = GetField(start, name)
    return start


def _kind(tree: Tree) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", " ", type(tree).__name__).upper()


def _parts(tree: Tree) -> list[Tree]:
    return [part for part in tree.iter_expressions() if isinstance(part, exp.Expr)]


def _cut(made: Expr, kind: exp.Expr) -> Expr:
    """A text of at most so many characters, as VARCHAR(n) has it, or of just so many, as CHAR(n) has it."""
    sizes = [each.this for each in kind.expressions if isinstance(each, exp.DataTypeParam)]
    if len(sizes) != 1 or kind.this not in _SIZED or not str(sizes[0].this).isdigit():
        return made
    size = lit(int(str(sizes[0].this)))
    return Call("rpad", (made, size, lit(" "))) if kind.this in _PADDED else Call("left", (made, size))


_PADDED = (exp.DataType.Type.CHAR, exp.DataType.Type.NCHAR)
_SIZED = (*_PADDED, exp.DataType.Type.VARCHAR, exp.DataType.Type.NVARCHAR)


def _moment(text: str) -> Expr:
    return read_timestamp(text)


_TYPED: dict[t.DataType, Callable[[str], Expr]] = {t.DATE: read_date, t.TIMESTAMP: _moment}
_WORDS = frozenset(
    ["CURRENT_TIMESTAMP", "CURRENT_DATE", "CURRENT_TIME", "LOCALTIMESTAMP", "LOCALTIME", "CURRENT_ROW_TIMESTAMP"]
)
"""Functions that are written without parentheses."""
_BINARY: dict[type, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.Mod: "%",
    exp.IntDiv: "div",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "concat",
    exp.RegexpLike: "rlike",
}
_HANDLERS: dict[type, Callable[[Translator, Any], Expr]] = {
    exp.Column: Translator.column,
    exp.Literal: Translator.literal,
    exp.Null: lambda self, tree: lit(None),
    exp.Boolean: lambda self, tree: lit(bool(tree.this)),
    exp.HexString: lambda self, tree: lit(bytes.fromhex(str(tree.this))),
    exp.Cast: Translator.cast,
    exp.TryCast: Translator.cast,
    exp.Neg: Translator.negative,
    exp.Paren: lambda self, tree: self.expr(tree.this),
    exp.Not: lambda self, tree: Call("not", (self.expr(tree.this),)),
    exp.NullSafeNEQ: lambda self, tree: Call("not", (Call("<=>", (self.expr(tree.this), self.expr(tree.expression))),)),
    exp.Between: Translator.between,
    exp.Is: Translator.is_,
    exp.In: Translator.in_,
    exp.Case: Translator.case,
    exp.If: lambda self, tree: Call(
        "if", tuple(self.expr(tree.args.get(n) or exp.Null()) for n in ("this", "true", "false"))
    ),
    exp.Bracket: Translator.bracket,
    exp.Dot: Translator.dot,
    exp.Filter: Translator.filter,
    exp.Array: Translator.array,
    exp.Tuple: Translator.row,
    exp.Like: Translator.like,
    exp.ILike: Translator.like,
    exp.Anonymous: Translator.call,
    exp.Interval: lambda self, tree: interval_of(self.text, tree),
    exp.Window: Translator.window,
    exp.Subquery: Translator.subquery,
    exp.Exists: Translator.subquery,
    exp.Any: Translator.quantified,
    exp.All: Translator.quantified,
    exp.Alias: lambda self, tree: self.expr(tree.this),
    exp.Extract: extracted,
    exp.Substring: substring,
    exp.StrPosition: lambda self, tree: Call("locate", (self.expr(tree.args["substr"]), self.expr(tree.this))),
    exp.Trim: trimmed,
    exp.Overlay: overlaid,
    exp.Overlaps: overlapping,
    exp.Ceil: lambda self, tree: rounded(self, tree, "ceil"),
    exp.Floor: lambda self, tree: rounded(self, tree, "floor"),
    exp.SimilarTo: similar,
    exp.Escape: escaped,
    exp.Map: mapped,
}
"""How each kind of node is translated. A family that adds syntax adds itself here."""
