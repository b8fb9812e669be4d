"""Functions by name: those of the graph, other names for them, and those that are written in a way of their own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from penstock.errors import nearest
from penstock.graph.aggregates.aggregate import RECIPES
from penstock.graph.expr import (
    AGGREGATES,
    FUNCTIONS,
    AggregateFunction,
    AggregateFunctionCall,
    Call,
    Cast,
    Expr,
    PythonCall,
    ScalarFunction,
    lit,
)
from penstock.graph.types import STRING

if TYPE_CHECKING:
    from penstock.frontends.sql.expr.translate import Translator


@dataclass(frozen=True)
class FunctionContext:
    """A call as it is written.

    Args:
        translator: translates the arguments.
        name: the name of the function.
        tree: the call.
    """

    translator: Translator
    name: str
    tree: exp.Expr

    @property
    def arguments(self) -> list[exp.Expr]:
        """The arguments, as trees."""
        return list(self.tree.expressions)

    def values(self) -> tuple[Expr, ...]:
        """The arguments, as expressions."""
        return tuple(map(self.translator.expr, self.arguments))

    def error(self, message: str) -> Exception:
        """An error at the call."""
        return self.translator.text.error(self.tree, message)

    def word(self, at: int) -> str:
        """An argument that is a word, such as the unit of TIMESTAMPDIFF."""
        given = self.arguments[at]
        return str(given.this if isinstance(given, exp.Literal) else given.name).upper()


Builder = Callable[[FunctionContext], Expr]


def called(context: FunctionContext) -> Expr:
    """The expression of a call.

    Raises:
        SqlError: there is no such function.
    """
    name = context.name.lower()
    own = context.translator.functions.function(name)
    if own is not None:
        return _own(context, own)
    special = SPECIAL.get(name)
    if special is not None:
        return special(context)
    name = OTHER_NAMES.get(name, name)
    if name in AGGREGATES or name in RECIPES:
        return _aggregate(context, name)
    if name not in FUNCTIONS or not name.isidentifier():
        raise context.error(f"no function {context.name.upper()}; {nearest(name, _known(context))}")
    return Call(name, context.values())


def _known(context: FunctionContext) -> list[str]:
    named: dict[str, Any] = getattr(context.translator.functions, "all_functions", dict)()
    return sorted({n for n in (*FUNCTIONS, *AGGREGATES, *SPECIAL, *OTHER_NAMES, *named) if n.isidentifier()})


def _own(context: FunctionContext, own: Any) -> Expr:
    if isinstance(own, ScalarFunction):
        return PythonCall(own, context.values())
    if isinstance(own, AggregateFunction):
        arguments, distinct = _different(context.arguments)
        return AggregateFunctionCall(own.name, tuple(map(context.translator.expr, arguments)), distinct, function=own)
    maker = getattr(own, "as_call", None)
    if maker is None:
        raise context.error(
            f"{context.name} is a function of tables; it stands in FROM, as LATERAL TABLE({context.name}(...))"
        )
    made: Expr = maker(context)
    return made


def _aggregate(context: FunctionContext, name: str) -> Expr:
    arguments = context.arguments
    if len(arguments) == 1 and isinstance(arguments[0], exp.Star):
        if name != "count":
            raise context.error(f"expected a column in {context.name.upper()}(...), got *")
        return Call("count", (), star=True)
    arguments, distinct = _different(arguments)
    values = tuple(map(context.translator.expr, arguments))
    if name == "count" and len(values) > 1:
        values = (_all_there(values),)
    return Call(name, values, distinct=distinct)


def _all_there(values: tuple[Expr, ...]) -> Expr:
    """Several values as one text, for COUNT(DISTINCT a, b): null as soon as one of them is, and else each with its length."""
    texts = tuple(Cast(each, STRING) for each in values)
    sized = (part for each in texts for part in (Cast(Call("length", (each,)), STRING), lit(":"), each))
    return Call("concat", tuple(sized))


def _different(arguments: list[exp.Expr]) -> tuple[list[exp.Expr], bool]:
    """The arguments, and whether DISTINCT stands before them."""
    if len(arguments) == 1 and isinstance(arguments[0], exp.Distinct):
        return list(arguments[0].expressions), True
    return arguments, False


OTHER_NAMES: dict[str, str] = {
    "char_length": "length",
    "first_value": "first",
    "last_value": "last",
    "collect": "collect_list",
    "log": "ln",
    "any_value": "min",
    "array_size": "size",
}
"""Names that mean a function of the graph."""

MADE = ("json_objectagg", "json_arrayagg")
"""Aggregates that are made of others."""
SPECIAL: dict[str, Builder] = {}
"""Functions that are written or typed in a way of their own, by name. A family that needs one adds it here."""
