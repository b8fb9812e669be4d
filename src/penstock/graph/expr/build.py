"""What users build expressions with: col, lit, fn, when, expr, sql.

>>> from penstock.graph.expr.text import to_text
>>> to_text(when(col("n") > 3, "many").otherwise(fn.upper(col("word"))))
"CASE WHEN n > 3 THEN 'many' ELSE upper(word) END"
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from penstock.errors import ExpressionError, nearest
from penstock.graph.expr.functions import AGGREGATES, FUNCTIONS
from penstock.graph.expr.model import Call, Case, Column, Expr, Raw, call, lit, operand
from penstock.graph.expr.parse import KEYWORDS, parse
from penstock.graph.schema import type_of


def col(name: str) -> Column:
    """A field of the stream, by its exact name; for parts of it use `.field(name)` or `[key]`.

    Args:
        name: the name of the field.

    Returns:
        The expression.

    Raises:
        ExpressionError: the name is no text.

    >>> import penstock as ps
    >>> ages = ps.Flow("demo").source("ages", ps.items([], "age int"))
    >>> ages.where("adults", ps.col("age") >= 18)
    Stream('adults': age int)
    """
    if not isinstance(name, str) or not name:
        raise ExpressionError(f"a column's name is a text, got {name!r}")
    return Column(name)


def expr(text: str) -> Expr:
    """The expression that a text spells.

    Args:
        text: the text, such as "price * n as total".

    Returns:
        The expression.

    Raises:
        ExpressionError: it cannot be read.

    >>> import penstock as ps
    >>> ps.expr("price * 2").same(ps.col("price") * 2)
    True
    """
    return parse(text)


def sql(text: str, type: Any, inputs: Iterable[str] = ()) -> Raw:
    """Spark SQL handed on as it is; it cannot run without Spark.

    Args:
        text: the SQL of an expression.
        type: the type it has: DDL text, a Python type or a DataType.
        inputs: the columns it reads.

    Returns:
        The expression.

    Raises:
        SchemaError: the type is not one.

    >>> import penstock as ps
    >>> words = ps.Flow("demo").source("words", ps.items([], "word string"))
    >>> words.select("sounds", sound=ps.sql("soundex(word)", "string", ["word"]))
    Stream('sounds': sound string)
    """
    return Raw(text, type_of(type), (inputs,) if isinstance(inputs, str) else tuple(inputs))


def as_expr(value: object) -> Expr:
    """An expression stays, a text is read as one."""
    if isinstance(value, Expr):
        return value.plain()
    if isinstance(value, str):
        return parse(value)
    if callable(value):
        raise ExpressionError(
            f"an expression is a text ('n > 3') or is built with col(), lit() and fn, got the function {getattr(value, '__name__', value)!r}; "
            f"make it with @ps.function and call it with the fields it takes"
        )
    raise ExpressionError(
        f"an expression is a text ('n > 3') or is built with col(), lit() and fn, got {value!r}; for a constant write lit({value!r})"
    )


@dataclass(frozen=True, eq=False)
class When(Expr):
    """A case that still takes further conditions; without `otherwise` the rest is null."""

    whens: tuple[tuple[Expr, Expr], ...]

    def when(self, condition: Expr | str, value: object) -> When:
        """One more condition, asked when those before did not hold."""
        return When((*self.whens, (as_expr(condition), operand(value))))

    def otherwise(self, value: object) -> Case:
        """The value when no condition holds."""
        return Case(self.whens, operand(value))

    def plain(self) -> Case:
        """The case as it stands, null where nothing holds."""
        return Case(self.whens)

    def shape(self) -> tuple[Any, ...]:
        """The shape of the case as it stands."""
        return self.plain().shape()

    def children(self) -> tuple[Expr, ...]:
        """Conditions and values in turn."""
        return self.plain().children()


def when(condition: Expr | str, value: object) -> When:
    """A choice: the value where the condition holds; go on with `.when(...)` and `.otherwise(...)`. Null where nothing holds.

    Args:
        condition: an expression that is true or false.
        value: an expression, or a constant.

    Returns:
        The expression.

    Raises:
        ExpressionError: the condition cannot be read, or the value is no constant.

    >>> import penstock as ps
    >>> numbers = ps.Flow("demo").source("numbers", ps.items([], "n int"))
    >>> numbers.select("sizes", size=ps.when("n > 9", "large").otherwise("small"))
    Stream('sizes': size string)
    """
    return When(((as_expr(condition), operand(value)),))


class Functions:
    """Every function of the table as a method: `fn.upper(col("word"))`; plain arguments are constants."""

    def __getattr__(self, name: str) -> Callable[..., Call]:
        plain = name.removesuffix("_")
        if plain == "count_distinct":
            return lambda *args: Call("count", call("count", *args).args, distinct=True)
        if plain not in FUNCTIONS and plain not in AGGREGATES:
            raise AttributeError(
                f'no function {name!r}; {nearest(name, dir(self))}; for one that only Spark has, write ps.sql("...", type="...")'
            )
        return lambda *args: _called(plain, args)

    def __dir__(self) -> list[str]:
        words = {*FUNCTIONS, *AGGREGATES, "count_distinct"} - KEYWORDS
        return sorted(name for name in words if name.isidentifier())


def _called(name: str, args: tuple[object, ...]) -> Call:
    if name == "count" and not args:
        return Call("count", (), star=True)
    if args and all(isinstance(a, str) for a in args):
        raise ExpressionError(
            f"fn.{name}({args[0]!r}): a plain text is a constant here; write col({args[0]!r}) for the column or lit({args[0]!r})"
        )
    return call(name, *args)


fn = Functions()
"""The functions, by name."""

__all__ = ["Functions", "When", "as_expr", "col", "expr", "fn", "lit", "sql", "when"]
