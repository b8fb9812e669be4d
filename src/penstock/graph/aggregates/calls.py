"""Aggregates as users write them: text, expressions, classes of their own; checked against the fields they are over."""

from __future__ import annotations

import decimal
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from penstock.errors import ExpressionError, nearest
from penstock.graph import types as t
from penstock.graph.aggregates.aggregate import DISTINCT, RECIPES, Aggregate, Aggregator, FilteredAggregator, RankedRows
from penstock.graph.aggregates.own import OverArguments, OverDifferent
from penstock.graph.expr import (
    AGGREGATES,
    AggregateFunction,
    AggregateFunctionCall,
    Alias,
    Call,
    Cast,
    Column,
    Expr,
    Literal,
    as_expr,
    to_text,
    type_of_expr,
)
from penstock.graph.expr.coerce import TypedExpr, implicit
from penstock.graph.expr.rewrite import each_of
from penstock.graph.schema import Schema, schema_of

Written: TypeAlias = str | Expr | Aggregator | type[Aggregator] | FilteredAggregator
"""An aggregate as the user writes it."""

_OTHER_NAMES = {
    "mean": "avg",
    "every": "bool_and",
    "any": "bool_or",
    "some": "bool_or",
    "first": "min_by",
    "first_value": "min_by",
    "last": "max_by",
    "last_value": "max_by",
    "array_agg": "collect_list",
    "top_k": "top",
    "median": "percentile",
    "percentile_approx": "approx_percentile",
    "stddev": "stddev_samp",
    "std": "stddev_samp",
    "variance": "var_samp",
}
_NUMBERED = ("top", "percentile", "percentile_distinct", "approx_percentile")
"""Aggregates that take a number beside the argument."""
SKETCHES = ("approx_count_distinct", "approx_percentile")


@dataclass(frozen=True)
class AggregateCall:
    """An aggregate as it is written, before it is known what it is over.

    It is an expression such as `sum(amount)` or `sum(a) / count(*)`, the user's own, or a list of ranked records.
    """

    name: str
    call: Expr | Aggregator | FilteredAggregator | RankedRows

    def __str__(self) -> str:
        return to_text(self.call) if isinstance(self.call, Expr) else str(self.call)

    def over(self, schema: Schema, time: str = "") -> Aggregate:
        """The aggregate over the fields of a stream; an expression over several is split by `split_calls` first.

        Args:
            schema: the fields.
            time: the field of the event time, by which `first`, `last` and `collect_list` go; empty where there is none.

        Raises:
            ExpressionError: there is no such aggregate, or its arguments do not fit it.
        """
        if isinstance(self.call, Aggregator):
            return _own(self.name, self.call)
        if isinstance(self.call, FilteredAggregator):
            made = _own(self.name, self.call.own)
            return replace(made, condition=_checked_condition(self.name, self.call.condition, schema))
        if isinstance(self.call, RankedRows):
            return _ranked(self.name, self.call, schema)
        if isinstance(self.call, AggregateFunctionCall):
            return _called(self.name, self.call, schema)
        if not isinstance(self.call, Call):
            raise ExpressionError(f"{self.name!r} must be an aggregate such as 'sum(amount)', got {self}")
        return _native(self.name, self.call, schema, time)


def aggregate_call(name: str, given: Written) -> AggregateCall:
    """An aggregate from what the user wrote: 'sum(amount)', an expression, or an Aggregator (a class or an instance).

    Raises:
        ExpressionError: it is not an aggregate.

    >>> str(aggregate_call("total", "sum(price)").over(schema_of("price double")))
    'sum(price)'
    """
    if isinstance(given, type) and issubclass(given, Aggregator):
        given = given()
    if isinstance(given, Aggregator | FilteredAggregator):
        return AggregateCall(name, given)
    written = as_expr(given)
    return AggregateCall(name, written.expr if isinstance(written, Alias) else written)


def calls_of(aggregates: Mapping[str, Written]) -> tuple[AggregateCall, ...]:
    """Aggregates by the names of the fields they fill."""
    return tuple(aggregate_call(name, given) for name, given in aggregates.items())


def _own(name: str, given: Aggregator) -> Aggregate:
    if given.schema is None:
        raise ExpressionError(f"aggregate {name!r}: {type(given).__qualname__} must say its result type in `schema`")
    kind = t.parse_type(given.schema) if isinstance(given.schema, str) else t.Struct(schema_of(given.schema).fields)
    return Aggregate(name, kind, own=given)


def _called(name: str, call: AggregateFunctionCall, schema: Schema) -> Aggregate:
    """A Python aggregate over arguments: as many as it takes, of the types that it says."""
    function = call.function
    assert function is not None, "a call of a Python aggregate has one"
    _check_flat(name, call)
    only = None if call.condition is None else _checked_condition(name, call.condition, schema)
    if not function.least <= len(call.args) <= len(function.takes):
        raise ExpressionError(
            f"aggregate {name!r}: {function} takes {len(function.takes)} arguments, got {len(call.args)}"
        )
    given = zip(call.args, function.takes, strict=False)
    written = tuple(_argument(name, function, arg, kind, schema) for arg, kind in given)
    own: Aggregator = OverArguments(function)
    if call.distinct:
        own = OverDifferent(OverArguments(function))
    shown = f"{function.name}{' distinct' if call.distinct else ''}"
    return Aggregate(name, function.returns, shown, written, function.takes, own=own, condition=only)


def _argument(name: str, function: AggregateFunction, arg: Expr, kind: t.DataType, schema: Schema) -> Expr:
    found = type_of_expr(arg, schema)
    if str(found) == str(kind):
        return arg
    if found != t.NULL and (t.STRING in (found, kind) or implicit(TypedExpr("column", found), kind) is None):
        raise ExpressionError(
            f"aggregate {name!r}: {function.name} takes {kind}, got {to_text(arg)}, which is {found}; cast it"
        )
    return Cast(arg, kind)


def is_aggregate(expr: Expr) -> bool:
    """Whether a node is a call of an aggregate."""
    if not isinstance(expr, Call):
        return False
    built_in = expr.name.lower() in AGGREGATES or expr.name.lower() in RECIPES
    return expr.star or expr.distinct or built_in or isinstance(expr, AggregateFunctionCall)


def aggregates_in(expr: Expr) -> list[Call]:
    """The calls of aggregates in an expression, those inside of others too."""
    return [each for each in each_of(expr) if isinstance(each, Call) and is_aggregate(each)]


def _checked_condition(name: str, condition: Expr, schema: Schema) -> Expr:
    inside = aggregates_in(condition)
    if inside:
        raise ExpressionError(f"aggregate {name!r}: FILTER looks at one record, and {to_text(inside[0])} at many")
    kind = type_of_expr(condition, schema)
    if kind != t.BOOLEAN:
        raise ExpressionError(f"aggregate {name!r}: FILTER needs a boolean; {to_text(condition)} is {kind}")
    return condition


def _check_flat(name: str, call: Call) -> None:
    for argument in call.args:
        inside = aggregates_in(argument)
        if inside:
            raise ExpressionError(
                f"aggregate {name!r}: {to_text(inside[0])} is an aggregate inside of {to_text(call)}; aggregate twice: "
                f"first {to_text(inside[0])} in a step of its own, then {call.name} over its result"
            )


def _ranked(name: str, rows: RankedRows, schema: Schema) -> Aggregate:
    fields = tuple(f for f in schema.fields if f.name not in rows.keys and not f.name.startswith("__"))
    for field in fields:
        _check_kind("top in a window", "ordered", Column(field.name), field.type)
    ordered = schema.only(tuple(dict.fromkeys(term.column for term in rows.by))).fields
    record, order = (Call("struct", tuple(Column(f.name) for f in given)) for given in (fields, ordered))
    kinds = (type_of_expr(record, schema), type_of_expr(order, schema))
    made = t.Array(t.Struct((*fields, t.Field(rows.into, t.INT))))
    return Aggregate(name, made, "ranked", (record, order), kinds, rows.n, ranked=rows)


def _native(name: str, call: Call, schema: Schema, time: str) -> Aggregate:
    _check_flat(name, call)
    only = None if call.condition is None else _checked_condition(name, call.condition, schema)
    function, arguments, number = _meant(name, call, time)
    if call.star:
        return Aggregate(name, t.BIGINT, function, condition=only)
    if function in SKETCHES:
        _check_sketches(name, call.name.lower())
    if function == "approx_count_distinct" and type_of_expr(arguments[0], schema) not in (*t.INTEGERS, t.STRING):
        arguments = (Cast(arguments[0], t.STRING),)
    kinds = tuple(type_of_expr(a, schema) for a in arguments)
    recipe = RECIPES[function]
    _check_kind(f"aggregate {name!r}: {call.name.lower()}", recipe.needs, arguments[0], kinds[0])
    if len(kinds) > 1:
        _check_kind(f"aggregate {name!r}: {call.name.lower()}", "plain", arguments[1], kinds[1])
    return Aggregate(name, recipe.type(kinds), function, arguments, kinds, number, condition=only)


def _check_sketches(name: str, written: str) -> None:
    if importlib.util.find_spec("datasketches") is None:
        raise ExpressionError(
            f"aggregate {name!r}: {written} needs the package datasketches; pip install 'penstock[sketches]'"
        )


def _meant(name: str, call: Call, time: str) -> tuple[str, tuple[Expr, ...], float | None]:
    """Which recipe a call stands for, its arguments, and its number."""
    written = call.name.lower()
    function = _OTHER_NAMES.get(written, written)
    if function not in RECIPES:
        known = nearest(function, [*RECIPES, *_OTHER_NAMES])
        raise ExpressionError(
            f"aggregate {name!r}: no aggregate {call.name!r} that can go on from where it stood; {known}"
        )
    arguments = list(call.args)
    number = _number_of(name, written, function, arguments)
    if call.distinct:
        function = _distinct(name, written, function)
    if function == "collect_list" and (len(arguments) == 2 or time):
        function = "collect_list_by"
    wanted = 2 if function in ("min_by", "max_by", "collect_list_by") else 1
    if wanted == 2 and len(arguments) == 1 and written not in ("min_by", "max_by"):
        arguments.append(_by_time(name, written, arguments, time))
    lacking = function in _NUMBERED and number is None
    if lacking or (not call.star and len(arguments) != wanted):
        raise ExpressionError(f"aggregate {name!r}: {_takes(written, wanted)}, got {len(call.args)}")
    return function, tuple(arguments), number


def _distinct(name: str, written: str, function: str) -> str:
    """The recipe of an aggregate over different values."""
    if function not in DISTINCT:
        known = ", ".join(sorted(DISTINCT))
        raise ExpressionError(f"aggregate {name!r}: {written} goes without distinct; it goes with: {known}")
    return DISTINCT[function]


def _takes(written: str, wanted: int) -> str:
    if _OTHER_NAMES.get(written, written) in _NUMBERED and written != "median":
        return f"{written} is written {written}({'3, score' if written.startswith('top') else 'ms, 0.99'})"
    return f"{written} takes {'one argument' if wanted == 1 else 'two arguments, a value and what it goes by'}"


def _shown(arguments: list[Expr]) -> str:
    return ", ".join(map(to_text, arguments))


def _by_time(name: str, written: str, arguments: list[Expr], time: str) -> Expr:
    if not time:
        by = "min_by" if written.startswith("first") else "max_by"
        raise ExpressionError(
            f"aggregate {name!r}: {written} goes by the event time, and this stream has none; say what it goes by: "
            f"{by}({_shown(arguments)}, a_field), or give the stream an event time with .event_time(...)"
        )
    return Column(time)


def _number_of(name: str, written: str, function: str, arguments: list[Expr]) -> float | None:
    """Takes the number of `top(3, x)` or `percentile(x, 0.9)` out of the arguments."""
    if written == "median":
        return 0.5
    if function not in _NUMBERED or len(arguments) != 2:
        return None
    given = arguments.pop(0 if function == "top" else 1)
    value = getattr(given, "value", None) if isinstance(given, Literal) else None
    number = float(value) if isinstance(value, int | float | decimal.Decimal) else None
    if function == "top" and (number is None or number < 1 or number != int(number)):
        raise ExpressionError(f"aggregate {name!r}: top is written top(3, score); {to_text(given)} is not how many")
    if function != "top" and (number is None or not 0 <= number <= 1):
        raise ExpressionError(
            f"aggregate {name!r}: {written} is written {written}(ms, 0.99); {to_text(given)} is not in 0..1"
        )
    return number


def _check_kind(where: str, needs: str, written: Expr, kind: t.DataType) -> None:
    if needs == "number" and not t.is_numeric(kind):
        raise ExpressionError(f"{where} needs a number; {to_text(written)} is {kind}")
    if needs == "boolean" and kind != t.BOOLEAN:
        raise ExpressionError(f"{where} needs a boolean; {to_text(written)} is {kind}")
    if needs == "plain" and isinstance(kind, t.Array | t.Map | t.Struct):
        raise ExpressionError(f"{where} needs a plain value; {to_text(written)} is {kind}")
    if needs == "ordered" and not t.is_ordered(kind):
        raise ExpressionError(
            f"{where} needs values that have an order, and maps have none; {to_text(written)} is {kind}"
        )
