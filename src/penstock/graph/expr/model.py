"""The nodes of an expression: what a column of a stream is computed from.

Every node is a frozen dataclass. Python's operators build new nodes, so `==` does not compare: use `same`.

>>> (Column("n") + 1).same(Call("+", (Column("n"), lit(1))))
True
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from penstock.errors import ExpressionError
from penstock.graph import types as t
from penstock.graph.schema import type_of

INTERVAL = t.Simple("interval day to second")
"""The type of an interval; only `+` and `-` with a time take one."""

INTERVAL_DAY = t.Simple("interval day")
"""The type of an interval of whole days; a date moved by it stays a date."""

INTERVAL_MONTH = t.Simple("interval month")
"""The type of an interval of months and years, a number of months: the day stays, or is the last of its month."""

_NO_TRUTH = (
    "an expression has no truth value while the flow is built; write & | ~ with parentheses around comparisons, "
    "as in (col('a') > 1) & (col('b') < 2), instead of and, or, not and chained comparisons; use same() to compare nodes"
)


class Expr:
    """An expression over the fields of a stream: what `ps.col`, `ps.lit`, `ps.fn`, `ps.when`, `ps.expr` and `ps.sql` make.

    Operators build larger ones: `+ - * / %`, `== != < <= > >=`, `& | ~`, and `[]` for items of lists and maps.

    >>> import penstock as ps
    >>> ((ps.col("n") + 1 > 3) & ps.col("word").like("a%")).same(ps.expr("n + 1 > 3 and word like 'a%'"))
    True
    """

    def shape(self) -> tuple[Any, ...]:
        """The node as nested tuples, equal for nodes that are built alike.

        Returns:
            The type of the node, then its parts.
        """
        parts = (getattr(self, f.name) for f in dataclasses.fields(self))  # type: ignore[arg-type]
        return (type(self).__name__, *map(_shape, parts))

    def same(self, other: object) -> bool:
        """Whether another expression is built alike; `==` makes an expression.

        Args:
            other: the other.

        Returns:
            True or False.
        """
        return isinstance(other, Expr) and self.shape() == other.shape()

    def children(self) -> tuple[Expr, ...]:
        """The nodes this one is computed from.

        Returns:
            The nodes, in order.
        """
        return ()

    def plain(self) -> Expr:
        """The node as it is stored; what a builder leaves open is closed.

        Returns:
            The node.
        """
        return self

    def __hash__(self) -> int:
        return hash(self.shape())

    def __bool__(self) -> bool:
        raise ExpressionError(_NO_TRUTH)

    def __contains__(self, item: object) -> bool:
        raise ExpressionError("`x in expression` has no meaning; write expression.isin(...) or fn.array_contains(...)")

    def __iter__(self) -> Iterator[Expr]:
        raise ExpressionError("an expression cannot be looped over while the flow is built")

    def __add__(self, other: object) -> Expr:
        return call("+", self, other)

    def __radd__(self, other: object) -> Expr:
        return call("+", other, self)

    def __sub__(self, other: object) -> Expr:
        return call("-", self, other)

    def __rsub__(self, other: object) -> Expr:
        return call("-", other, self)

    def __mul__(self, other: object) -> Expr:
        return call("*", self, other)

    def __rmul__(self, other: object) -> Expr:
        return call("*", other, self)

    def __truediv__(self, other: object) -> Expr:
        return call("/", self, other)

    def __rtruediv__(self, other: object) -> Expr:
        return call("/", other, self)

    def __mod__(self, other: object) -> Expr:
        return call("%", self, other)

    def __rmod__(self, other: object) -> Expr:
        return call("%", other, self)

    def __neg__(self) -> Expr:
        return call("negative", self)

    def __eq__(self, other: object) -> Expr:  # type: ignore[override]
        return call("=", self, other)

    def __ne__(self, other: object) -> Expr:  # type: ignore[override]
        return call("<>", self, other)

    def __lt__(self, other: object) -> Expr:
        return call("<", self, other)

    def __le__(self, other: object) -> Expr:
        return call("<=", self, other)

    def __gt__(self, other: object) -> Expr:
        return call(">", self, other)

    def __ge__(self, other: object) -> Expr:
        return call(">=", self, other)

    def __and__(self, other: object) -> Expr:
        return call("and", self, other)

    def __rand__(self, other: object) -> Expr:
        return call("and", other, self)

    def __or__(self, other: object) -> Expr:
        return call("or", self, other)

    def __ror__(self, other: object) -> Expr:
        return call("or", other, self)

    def __invert__(self) -> Expr:
        return call("not", self)

    def __getitem__(self, key: object) -> Expr:
        return GetItem(self, operand(key))

    def alias(self, name: str) -> Alias:
        """The expression under another name.

        Args:
            name: the name.

        Returns:
            The expression.
        """
        return Alias(self.expr if isinstance(self, Alias) else self.plain(), name)

    def cast(self, kind: object) -> Expr:
        """The value as another type.

        Args:
            kind: DDL text such as "bigint", a Python type or a DataType.

        Returns:
            The expression.

        Raises:
            SchemaError: there is no such type.
        """
        return Cast(self, type_of(kind))

    def is_null(self) -> Expr:
        """Whether the value is missing.

        Returns:
            An expression that is true or false.
        """
        return call("isnull", self)

    def is_not_null(self) -> Expr:
        """Whether there is a value.

        Returns:
            An expression that is true or false.
        """
        return call("isnotnull", self)

    def isin(self, *values: object) -> Expr:
        """Whether the value is one of several.

        Args:
            values: expressions or constants; a list counts as its items.

        Returns:
            An expression that is true or false.

        Raises:
            ExpressionError: there is none.
        """
        flat = values[0] if len(values) == 1 and isinstance(values[0], list | tuple | set | frozenset) else values
        if not flat:
            raise ExpressionError("isin() needs at least one value")
        return call("in", self, *flat)

    def between(self, low: object, high: object) -> Expr:
        """Whether the value lies between two others, both included.

        Args:
            low: the least, an expression or a constant.
            high: the greatest.

        Returns:
            An expression that is true or false.

        Raises:
            ExpressionError: a bound is neither an expression nor a constant.
        """
        return call("and", call(">=", self, low), call("<=", self, high))

    def like(self, pattern: object) -> Expr:
        """Whether the text fits an SQL pattern.

        Args:
            pattern: % stands for any text, _ for one character.

        Returns:
            An expression that is true or false.

        Raises:
            ExpressionError: the pattern is neither an expression nor a constant.
        """
        return call("like", self, pattern)

    def rlike(self, pattern: object) -> Expr:
        """Whether a regular expression finds something in the text.

        Args:
            pattern: the regular expression, as Java has them.

        Returns:
            An expression that is true or false.

        Raises:
            ExpressionError: the pattern is neither an expression nor a constant.
        """
        return call("rlike", self, pattern)

    def field(self, name: str) -> Expr:
        """A field of a struct.

        Args:
            name: the name of the field.

        Returns:
            The expression.
        """
        return GetField(self, name)


@dataclass(frozen=True, eq=False)
class Column(Expr):
    """A field of the stream."""

    name: str


@dataclass(frozen=True, eq=False)
class Literal(Expr):
    """A constant."""

    value: Any
    type: t.DataType


@dataclass(frozen=True, eq=False)
class Call(Expr):
    """A function or an operator and its arguments; `star` is count(*), `distinct` count(distinct x).

    `condition` says over which rows an aggregate goes, as FILTER (WHERE ...) does; None means all.
    """

    name: str
    args: tuple[Expr, ...]
    distinct: bool = False
    star: bool = False
    condition: Expr | None = None

    def where(self, condition: Expr | str) -> Call:
        """The same aggregate over the rows for which a condition is true: `fn.sum(col("price")).where("n > 3")`.

        Args:
            condition: an expression that is true or false. A second one must hold too.

        >>> from penstock.graph.expr import fn, to_text
        >>> to_text(fn.count().where("n > 3"))
        'count(*) FILTER (WHERE n > 3)'
        """
        from penstock.graph.expr.build import as_expr  # the parser is written on top of this module

        given = as_expr(condition)
        both = given if self.condition is None else Call("and", (self.condition, given))
        return dataclasses.replace(self, condition=both)

    def children(self) -> tuple[Expr, ...]:
        """The arguments, and the condition."""
        return self.args if self.condition is None else (*self.args, self.condition)


@dataclass(frozen=True, eq=False)
class Cast(Expr):
    """A value as another type; with `try_` a value that does not fit becomes null."""

    expr: Expr
    type: t.DataType
    try_: bool = False

    def children(self) -> tuple[Expr, ...]:
        """The value inside."""
        return (self.expr,)


@dataclass(frozen=True, eq=False)
class Case(Expr):
    """The value of the first condition that holds."""

    whens: tuple[tuple[Expr, Expr], ...]
    otherwise: Expr | None = None

    def children(self) -> tuple[Expr, ...]:
        """Conditions and values in turn, then the last resort."""
        pairs = tuple(part for pair in self.whens for part in pair)
        return pairs if self.otherwise is None else (*pairs, self.otherwise)


@dataclass(frozen=True, eq=False)
class GetField(Expr):
    """A field of a struct."""

    expr: Expr
    name: str

    def children(self) -> tuple[Expr, ...]:
        """The value inside."""
        return (self.expr,)


@dataclass(frozen=True, eq=False)
class GetItem(Expr):
    """An item of an array (from 0) or of a map."""

    expr: Expr
    key: Expr

    def children(self) -> tuple[Expr, ...]:
        """The array or map, and the key."""
        return (self.expr, self.key)


@dataclass(frozen=True, eq=False)
class Alias(Expr):
    """An expression under a name."""

    expr: Expr
    name: str

    def children(self) -> tuple[Expr, ...]:
        """The value inside."""
        return (self.expr,)


@dataclass(frozen=True, eq=False)
class Raw(Expr):
    """Spark SQL that Penstock does not read; its type and the columns it needs are the user's word."""

    text: str
    type: t.DataType
    inputs: tuple[str, ...] = ()


def _shape(part: object) -> object:
    if isinstance(part, Expr):
        return part.shape()
    if isinstance(part, tuple):
        return tuple(map(_shape, part))
    if isinstance(part, str | bytes | t.DataType) or part is None:
        return part
    return (type(part).__name__, repr(part))


def call(name: str, *args: object) -> Call:
    """A call whose plain arguments are constants."""
    return Call(name, tuple(operand(a) for a in args))


def operand(value: object) -> Expr:
    """The value as a node: an expression stays, anything else is a constant."""
    return value.plain() if isinstance(value, Expr) else lit(value)


def lit(value: object) -> Expr:
    """A constant, with the type Spark gives it; a list is an array.

    Args:
        value: a number, a text, bytes, a bool, a date, a datetime, a timedelta, a list of these, or None; an expression stays what it is.

    Returns:
        The expression.

    Raises:
        ExpressionError: it is none of these.

    >>> import penstock as ps
    >>> str(ps.lit(1).type), str(ps.lit(10**12).type), str(ps.lit("x").type)
    ('int', 'bigint', 'string')
    """
    if isinstance(value, Expr):
        return value
    if isinstance(value, list | tuple):
        return call("array", *value)
    if isinstance(value, datetime.datetime):
        return Literal(as_utc(value), t.TIMESTAMP)
    return Literal(value, literal_type(value))


def as_utc(value: datetime.datetime) -> datetime.datetime:
    """The moment in UTC; a time without a zone is taken as UTC."""
    moment = value.replace(tzinfo=datetime.UTC) if value.tzinfo is None else value.astimezone(datetime.UTC)
    return moment.replace(fold=0)


_PLAIN: dict[type, t.DataType] = {
    type(None): t.NULL,
    bool: t.BOOLEAN,
    float: t.DOUBLE,
    str: t.STRING,
    bytes: t.BINARY,
    datetime.date: t.DATE,
}


def literal_type(value: object) -> t.DataType:
    """The type of a constant."""
    kind = _PLAIN.get(type(value))
    if kind is not None:
        return kind
    if isinstance(value, int):
        return _integer_type(value)
    if isinstance(value, decimal.Decimal):
        return decimal_type(value)
    if isinstance(value, datetime.timedelta):
        return INTERVAL_DAY if value % datetime.timedelta(days=1) == datetime.timedelta() else INTERVAL
    raise ExpressionError(
        f"{value!r} ({type(value).__name__}) cannot be a constant of an expression; take a number, a text, bytes, "
        f"a bool, a date, a datetime, a timedelta, a list of these, or None"
    )


def _integer_type(value: int) -> t.DataType:
    if -(2**31) <= value < 2**31:
        return t.INT
    return t.BIGINT if -(2**63) <= value < 2**63 else decimal_type(decimal.Decimal(value))


def decimal_type(value: decimal.Decimal) -> t.DataType:
    """The smallest decimal type that holds the value with all its digits."""
    if not value.is_finite():
        raise ExpressionError(f"{value} cannot be a decimal constant")
    _, digits, exponent = value.as_tuple()
    scale = max(-int(exponent), 0)
    precision = max(len(digits) + max(int(exponent), 0), scale)
    if precision > 38:
        raise ExpressionError(f"{value} has {precision} digits; a decimal holds at most 38")
    return t.Decimal(precision, scale)
