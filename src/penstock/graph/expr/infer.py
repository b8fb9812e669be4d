"""The type of an expression over a schema, found without Spark.

`resolve` writes out every implicit cast, so that typing and evaluation cannot drift apart.

>>> from penstock.graph.expr.parse import parse
>>> from penstock.graph.schema import schema_of
>>> str(type_of_expr(parse("n + 1.5"), schema_of("n int")))
'decimal(12,1)'
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from penstock.errors import ExpressionError, nearest
from penstock.graph import types as t
from penstock.graph.expr.coerce import TypedExpr, can_cast, cast_to, common_of, implicit
from penstock.graph.expr.functions import AGGREGATES, FUNCTIONS, Misfit
from penstock.graph.expr.model import Alias, Call, Case, Cast, Column, Expr, GetField, GetItem, Literal, Raw
from penstock.graph.expr.parse import KEYWORDS
from penstock.graph.expr.python import PythonCall
from penstock.graph.expr.python_aggregates import AggregateFunctionCall
from penstock.graph.expr.rewrite import each_of
from penstock.graph.expr.text import name_of, to_text
from penstock.graph.schema import Schema


def type_of_expr(expr: Expr, schema: Schema) -> t.DataType:
    """The type of the expression's value; an ExpressionError says what does not fit."""
    return resolve(expr, schema).type


def columns_of(expr: Expr) -> frozenset[str]:
    """The names of the stream's fields that the expression reads."""
    if isinstance(expr, Column):
        return frozenset({expr.name})
    if isinstance(expr, Raw):
        return frozenset(expr.inputs)
    return frozenset().union(*(columns_of(child) for child in expr.children()))


def resolve(expr: Expr, schema: Schema) -> TypedExpr:
    """The expression with its types, every implicit cast written out."""
    return _Resolver(schema).resolve(expr)


class _Resolver:
    """Resolves nodes against one schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.indexes = {name: index for index, name in enumerate(schema.names)}

    def resolve(self, expr: Expr) -> TypedExpr:
        """The node with its type."""
        plain = expr.plain()
        return _RESOLVERS[type(plain)](self, plain)

    def column(self, expr: Column) -> TypedExpr:
        """A field of the stream."""
        index = self.indexes.get(expr.name)
        if index is None:
            raise ExpressionError(f"no column {expr.name!r}; {nearest(expr.name, self.schema.names)}")
        return TypedExpr("column", self.schema.fields[index].type, (), index)

    def literal(self, expr: Literal) -> TypedExpr:
        """A constant."""
        return TypedExpr("literal", expr.type, (), expr.value)

    def raw(self, expr: Raw) -> TypedExpr:
        """SQL for Spark alone; its inputs must be there."""
        for name in expr.inputs:
            self.column(Column(name))
        return TypedExpr("raw", expr.type, (), expr.text)

    def alias(self, expr: Alias) -> TypedExpr:
        """A name changes nothing."""
        return self.resolve(expr.expr)

    def cast(self, expr: Cast) -> TypedExpr:
        """A cast that was asked for."""
        inner = self.resolve(expr.expr)
        if not can_cast(inner.type, expr.type):
            raise ExpressionError(f"{to_text(expr)}: a value of type {inner.type} cannot become {expr.type}")
        return inner if inner.type == expr.type else TypedExpr("cast", expr.type, (inner,), expr.try_)

    def case(self, expr: Case) -> TypedExpr:
        """Conditions are boolean; the values share a type."""
        whens = [(self.resolve(given), self.resolve(then)) for given, then in expr.whens]
        for given, _ in whens:
            if given.type != t.BOOLEAN:
                raise ExpressionError(f"{to_text(expr)}: a condition must be boolean, got {given.type}")
        otherwise = TypedExpr("literal", t.NULL) if expr.otherwise is None else self.resolve(expr.otherwise)
        values = [*(then for _, then in whens), otherwise]
        kind = common_of(v.type for v in values)
        if kind is None:
            got = ", ".join(str(v.type) for v in values)
            raise ExpressionError(f"{to_text(expr)}: all values must share a type, got {got}; cast them")
        parts = [part for given, then in whens for part in (given, cast_to(then, kind))]
        return TypedExpr("case", kind, (*parts, cast_to(otherwise, kind)))

    def field(self, expr: GetField) -> TypedExpr:
        """A field of a struct, or of every struct in an array."""
        return self._field(expr, self.resolve(expr.expr), expr.name)

    def _field(self, expr: Expr, inner: TypedExpr, name: str) -> TypedExpr:
        if isinstance(inner.type, t.Map):
            return self._item(expr, inner, TypedExpr("literal", t.STRING, (), name))
        if not isinstance(inner.type, t.Struct):
            raise ExpressionError(f"{to_text(expr)}: only a struct has fields, got {inner.type}")
        for field in inner.type.fields:
            if field.name == name:
                return TypedExpr("field", field.type, (inner,), name)
        names = [f.name for f in inner.type.fields]
        raise ExpressionError(f"{to_text(expr)}: no field {name!r}; {nearest(name, names)}")

    def item(self, expr: GetItem) -> TypedExpr:
        """An item of an array or a map; a text picks a field of a struct."""
        inner = self.resolve(expr.expr)
        if isinstance(inner.type, t.Struct) and isinstance(expr.key, Literal) and expr.key.type == t.STRING:
            return self._field(expr, inner, expr.key.value)
        return self._item(expr, inner, self.resolve(expr.key))

    def _item(self, expr: Expr, inner: TypedExpr, key: TypedExpr) -> TypedExpr:
        if isinstance(inner.type, t.Array) and key.type in (*t.INTEGERS, t.NULL):
            return TypedExpr("item", inner.type.item, (inner, key))
        if isinstance(inner.type, t.Map):
            fitting = self._map_key(inner.type.key, key)
            if fitting:
                return TypedExpr("item", inner.type.value, (inner, fitting))
        wanted = inner.type.key if isinstance(inner.type, t.Map) else "a whole number"
        if not isinstance(inner.type, t.Array | t.Map):
            raise ExpressionError(f"{to_text(expr)}: [...] needs an array or a map, got {inner.type}")
        raise ExpressionError(f"{to_text(expr)}: the key must be {wanted}, got {key.type}")

    def _map_key(self, wanted: t.DataType, key: TypedExpr) -> TypedExpr | None:
        from_null = key.type == t.NULL
        fits = from_null or key.type == wanted or (key.type in t.INTEGERS and wanted in t.INTEGERS)
        return cast_to(key, wanted) if fits else None

    def call(self, expr: Call) -> TypedExpr:
        """A function or an operator."""
        if expr.name in AGGREGATES or expr.star or expr.distinct or isinstance(expr, AggregateFunctionCall):
            raise ExpressionError(
                f"{to_text(expr)}: {expr.name} is an aggregate; it belongs in aggregate(), where there is a group to work on"
            )
        if expr.condition is not None:
            raise ExpressionError(f"{to_text(expr)}: FILTER goes with an aggregate, and {expr.name} is none")
        function = FUNCTIONS.get(expr.name)
        if function is None:
            raise ExpressionError(
                f"unknown function {expr.name!r}; {nearest(expr.name, _spoken())}\n"
                f"a function of yours is known to text by ps.Flow(name, functions=[...]); "
                f'to hand this to Spark as it is, write ps.sql("{to_text(expr)}", type="...")'
            )
        self._check_count(expr, function.least, function.most)
        if expr.name == "struct":
            return self._struct(expr)
        try:
            args, kind = function.rule(tuple(self.resolve(arg) for arg in expr.args))
        except Misfit as misfit:
            raise ExpressionError(f"{to_text(expr)}: {misfit}") from None
        return TypedExpr("call", kind, args, function.name)

    def python(self, expr: PythonCall) -> TypedExpr:
        """A call of a Python function: as many arguments as it takes, of the types that it says."""
        function = expr.function
        most = len(function.takes)
        if not function.least <= len(expr.args) <= most:
            wanted = f"{most}" if function.least == most else f"{function.least} to {most}"
            raise ExpressionError(f"{to_text(expr)}: {function.name} takes {wanted} arguments, got {len(expr.args)}")
        given = zip(expr.args, function.takes, strict=False)
        args = tuple(self._argument(expr, at, arg, kind) for at, (arg, kind) in enumerate(given, 1))
        return TypedExpr("python", function.returns, args, function)

    def _argument(self, expr: PythonCall, at: int, arg: Expr, kind: t.DataType) -> TypedExpr:
        if any(isinstance(each, Raw) for each in each_of(arg)):
            raise ExpressionError(
                f"{to_text(expr)}: ps.sql runs on Spark, and the arguments of {expr.function.name} are computed in Python; "
                f"compute it before, with with_columns"
            )
        typed = self.resolve(arg)
        fitting = implicit(typed, kind) if t.STRING not in (typed.type, kind) or typed.type == kind else None
        if typed.type == t.NULL:
            fitting = cast_to(typed, kind)
        if fitting is None:
            raise ExpressionError(
                f"{to_text(expr)}: {expr.function.name} takes {kind} as argument {at}, got {typed.type}; cast it"
            )
        return fitting

    def _check_count(self, expr: Call, least: int, most: int | None) -> None:
        count = len(expr.args)
        if count < least or (most is not None and count > most):
            wanted = f"{least}" if least == most else f"at least {least}" if most is None else f"{least} to {most}"
            raise ExpressionError(f"{to_text(expr)}: {expr.name} takes {wanted} arguments, got {count}")

    def _struct(self, expr: Call) -> TypedExpr:
        args = tuple(self.resolve(arg) for arg in expr.args)
        names = [
            name_of(arg) if isinstance(arg, Alias | Column | GetField) else f"col{index}"
            for index, arg in enumerate(expr.args, 1)
        ]
        fields = tuple(t.Field(name, arg.type) for name, arg in zip(names, args, strict=True))
        return TypedExpr("call", t.Struct(fields), args, "struct")


def _spoken() -> list[str]:
    return sorted(name for name in FUNCTIONS if name.isidentifier() and name not in KEYWORDS)


_RESOLVERS: dict[type[Expr], Callable[[_Resolver, Any], TypedExpr]] = {
    Column: _Resolver.column,
    Literal: _Resolver.literal,
    Call: _Resolver.call,
    Cast: _Resolver.cast,
    Case: _Resolver.case,
    GetField: _Resolver.field,
    GetItem: _Resolver.item,
    Alias: _Resolver.alias,
    Raw: _Resolver.raw,
    PythonCall: _Resolver.python,
    AggregateFunctionCall: _Resolver.call,
}
