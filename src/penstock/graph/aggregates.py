"""Aggregates: what a step keeps of many records.

An aggregate must be able to go on from where it stood, so each is described by parts that merge: an average
keeps a sum and a count. `RECIPES` is the one table that says how.
"""

from __future__ import annotations

import decimal
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any, TypeAlias

from penstock.errors import ExpressionError, nearest
from penstock.graph import types as t
from penstock.graph.expr import (
    AGGREGATES,
    Alias,
    Call,
    Case,
    Cast,
    Column,
    Expr,
    Literal,
    as_expr,
    columns_of,
    lit,
    to_text,
    type_of_expr,
)
from penstock.graph.expr.rewrite import each_of
from penstock.graph.order import Term
from penstock.graph.schema import Schema, schema_of

Kinds = tuple[t.DataType, ...]


class Aggregator:
    """The base of an aggregate of your own, for `aggregate`. `schema` is the type of its result.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> class Longest(ps.Aggregator):
    ...     schema = "string"
    ...     def init(self):
    ...         return ""
    ...     def add(self, so_far, row):
    ...         return max(so_far, row.word, key=len)
    ...     def merge(self, one, other):
    ...         return max(one, other, key=len)
    >>> words = ps.Flow("demo").source("words", ps.items([("x", "a"), ("x", "bb")], "k string, word string"))
    >>> words.key_by("k").aggregate("longest", word=Longest).sink("out", ps.console())
    >>> run_local(words.flow)["out"]
    [Row(k='x', word='bb')]
    """

    schema: Any = None

    def init(self) -> Any:
        """What stands before the first record.

        Returns:
            A new part; None unless you say otherwise.
        """
        return None

    def add(self, so_far: Any, row: Any) -> Any:
        """Takes in one more record. You must define it.

        Args:
            so_far: what stands before it.
            row: the record.

        Returns:
            What stands after it.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def add_all(self, so_far: Any, rows: Sequence[Any]) -> Any:
        """Takes in several records of one key. Define it where that is quicker than one by one; the answer must be the same.

        Args:
            so_far: what stands before them.
            rows: the records.

        Returns:
            What stands after them.
        """
        return reduce(self.add, rows, so_far)

    def merge(self, one: Any, other: Any) -> Any:
        """Puts two parts together, which were made before the shuffle or in different batches. You must define it; it must not matter how parts are paired.

        Args:
            one: a part.
            other: another.

        Returns:
            What both are together.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    def result(self, so_far: Any) -> Any:
        """What is emitted.

        Args:
            so_far: what stands after all records.

        Returns:
            A value of the type that `schema` says; what stands, unless you say otherwise.
        """
        return so_far

    def where(self, condition: str | Expr) -> FilteredAggregator:
        """The same aggregate over the records for which a condition is true: `Longest().where("lang = 'en'")`."""
        return FilteredAggregator(self, as_expr(condition))


@dataclass(frozen=True)
class FilteredAggregator:
    """An aggregate of the user's own over some of the records; `Aggregator.where` makes one."""

    own: Aggregator
    condition: Expr


@dataclass(frozen=True)
class RankedRows:
    """The first `n` records of a group in an order, each with its rank, as one list.

    `keys` are the fields that all records of a group share; they are left out. `into` is the field of the rank.
    """

    n: int
    by: tuple[Term, ...]
    keys: tuple[str, ...]
    into: str = "rank"


Written: TypeAlias = str | Expr | Aggregator | type[Aggregator] | FilteredAggregator
"""An aggregate as the user writes it."""


def _first_kind(kinds: Kinds) -> t.DataType:
    return kinds[0]


def _always(kind: t.DataType) -> Callable[[Kinds], t.DataType]:
    return lambda _: kind


def _sum_kind(kinds: Kinds) -> t.DataType:
    kind = kinds[0]
    if isinstance(kind, t.Decimal):
        return t.Decimal(min(38, kind.precision + 10), kind.scale)
    return t.BIGINT if kind in t.INTEGERS else t.DOUBLE


def _list_kind(kinds: Kinds) -> t.DataType:
    return t.Array(kinds[0])


def _pair_kind(kinds: Kinds) -> t.DataType:
    """A value and what it is ordered by."""
    return t.Struct((t.Field("o", kinds[1]), t.Field("v", kinds[0])))


def _pairs_kind(kinds: Kinds) -> t.DataType:
    return t.Array(_pair_kind(kinds))


_MOMENTS = t.Struct((t.Field("n", t.BIGINT), t.Field("mean", t.DOUBLE), t.Field("m2", t.DOUBLE)))


@dataclass(frozen=True)
class Part:
    """A part of an aggregate.

    `merge` names how two of them go together, `begin` what a single record makes of it (`kernels/keyed/aggregates.py` has both);
    `type` is that of the part. How a runtime computes it over a batch is the runtime's own affair.
    """

    merge: str
    begin: str = "value"
    type: Callable[[Kinds], t.DataType] = _first_kind


@dataclass(frozen=True)
class Recipe:
    """How an aggregate is made: its parts, its result type, and how the result comes of the parts."""

    parts: tuple[Part, ...]
    type: Callable[[Kinds], t.DataType]
    finish: str = "first"
    needs: str = "anything"
    """What the argument must be: a `number`, a `boolean`, a `plain` value, one that can be `ordered`, or anything."""


def _count(begin: str) -> Part:
    return Part("add", begin, _always(t.BIGINT))


_SET = Part("unite", "list", _list_kind)
_LEAST, _GREATEST = Part("least"), Part("greatest")


def _spread(finish: str) -> Recipe:
    return Recipe((Part("moments", "moments", _always(_MOMENTS)),), _always(t.DOUBLE), finish, "number")


RECIPES: dict[str, Recipe] = {
    "count": Recipe((_count("known"),), _always(t.BIGINT)),
    "count_if": Recipe((_count("true"),), _always(t.BIGINT), needs="boolean"),
    "sum": Recipe((Part("add", type=_sum_kind),), _sum_kind, needs="number"),
    "min": Recipe((_LEAST,), _first_kind, needs="plain"),
    "max": Recipe((_GREATEST,), _first_kind, needs="plain"),
    "avg": Recipe((Part("add", "double", _always(t.DOUBLE)), _count("known")), _always(t.DOUBLE), "ratio", "number"),
    "bool_and": Recipe((_LEAST,), _always(t.BOOLEAN), needs="boolean"),
    "bool_or": Recipe((_GREATEST,), _always(t.BOOLEAN), needs="boolean"),
    "min_by": Recipe((Part("least_pair", "pair", _pair_kind),), _first_kind, "value", "ordered"),
    "max_by": Recipe((Part("greatest_pair", "pair", _pair_kind),), _first_kind, "value", "ordered"),
    "collect_set": Recipe((_SET,), _list_kind, needs="plain"),
    "count_distinct": Recipe((_SET,), _always(t.BIGINT), "size", "plain"),
    "collect_list": Recipe((Part("sorted", "list", _list_kind),), _list_kind, needs="ordered"),
    "collect_list_by": Recipe((Part("sorted_pairs", "pairs", _pairs_kind),), _list_kind, "values", "ordered"),
    "top": Recipe((Part("top", "list", _list_kind),), _list_kind, needs="ordered"),
    "percentile": Recipe(
        (Part("sorted", "doubles", _always(t.Array(t.DOUBLE))),), _always(t.DOUBLE), "percentile", "number"
    ),
    "approx_count_distinct": Recipe((Part("hll", "hll", _always(t.BINARY)),), _always(t.BIGINT), "hll", "plain"),
    "approx_percentile": Recipe((Part("kll", "kll", _always(t.BINARY)),), _always(t.DOUBLE), "kll", "number"),
    "stddev_samp": _spread("stddev_samp"),
    "stddev_pop": _spread("stddev_pop"),
    "var_samp": _spread("var_samp"),
    "var_pop": _spread("var_pop"),
}

RANKED = Recipe((Part("ranked", "pairs", _pairs_kind),), _list_kind, "ranked", "ordered")
"""How the first records of a group are kept; it has no name that users write."""

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
_NUMBERED = ("top", "percentile", "approx_percentile")
"""Aggregates that take a number beside the argument."""
SKETCHES = ("approx_count_distinct", "approx_percentile")
ROWS = "__rows"
"""The field beside the parts of an aggregate that says how many records they were made of."""


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a step: a native one (`call` of what is `written`, and a number), or the user's own.

    `kinds` are the types of the arguments. `condition` says which records it is over, None means all; `ranked` how it
    orders whole records, where it is a list of those.
    """

    name: str
    type: t.DataType
    call: str = ""
    written: tuple[Expr, ...] = ()
    kinds: Kinds = ()
    number: float | None = None
    own: Aggregator | None = None
    condition: Expr | None = None
    ranked: RankedRows | None = None

    def __str__(self) -> str:
        only = "" if self.condition is None else f" FILTER (WHERE {to_text(self.condition)})"
        if self.own is not None:
            return f"{type(self.own).__qualname__}{only}"
        if self.ranked is not None:
            return f"first {self.ranked.n} by {', '.join(map(str, self.ranked.by))}"
        written = [*map(to_text, self.written)] or ["*"]
        return f"{self.call}({', '.join([*written, *([f'{self.number:g}'] if self.number is not None else [])])}){only}"

    @cached_property
    def arguments(self) -> tuple[Expr, ...]:
        """What it is computed of, none for count(*). Where a condition does not hold they are null, which counts for nothing."""
        if self.condition is None or self.own is not None:
            return self.written
        if not self.written:
            return (_where(self.condition, lit(1)),)
        decides = 1 if self.recipe.parts[0].begin == "pair" else 0
        return tuple(_where(self.condition, e) if at == decides else e for at, e in enumerate(self.written))

    @property
    def reads(self) -> frozenset[str]:
        """The fields that it is computed of; one of the user's own may read all."""
        return frozenset().union(*map(columns_of, self.arguments))

    @property
    def part_fields(self) -> tuple[t.Field, ...]:
        """The fields that hold its parts between the two halves of an aggregate."""
        return tuple(t.Field(f"__{self.name}_{i}", p.type(self.kinds)) for i, p in enumerate(self.recipe.parts))

    @property
    def recipe(self) -> Recipe:
        """How it is made; only native ones have a recipe."""
        return RANKED if self.ranked is not None else RECIPES[self.call]


def _where(condition: Expr, value: Expr) -> Expr:
    return Case(((condition, value),))


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


def is_aggregate(expr: Expr) -> bool:
    """Whether a node is a call of an aggregate."""
    if not isinstance(expr, Call):
        return False
    return expr.star or expr.distinct or expr.name.lower() in AGGREGATES or expr.name.lower() in RECIPES


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
    if call.distinct:
        if function != "count":
            raise ExpressionError(f"aggregate {name!r}: distinct goes with count; use collect_set({_shown(arguments)})")
        function = "count_distinct"
    number = _number_of(name, written, function, arguments)
    if function == "collect_list" and (len(arguments) == 2 or time):
        function = "collect_list_by"
    wanted = 2 if function in ("min_by", "max_by", "collect_list_by") else 1
    if wanted == 2 and len(arguments) == 1 and written not in ("min_by", "max_by"):
        arguments.append(_by_time(name, written, arguments, time))
    lacking = function in _NUMBERED and number is None
    if lacking or (not call.star and len(arguments) != wanted):
        raise ExpressionError(f"aggregate {name!r}: {_takes(written, wanted)}, got {len(call.args)}")
    return function, tuple(arguments), number


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
