"""Aggregates: what a keyed step keeps of many records.

An aggregate must be able to go on from where it stood, so each is described by parts that merge: an average
keeps a sum and a count. `PARTS` is the one table that says how.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.errors import ExpressionError, nearest
from penstock.graph import types as t
from penstock.graph.expr import Alias, Call, Expr, as_expr, to_sql, type_of_expr
from penstock.graph.schema import Schema, schema_of


class Aggregator:
    """The base of a user's own aggregate.

    >>> class Longest(Aggregator):
    ...     schema = "string"
    ...     def init(self): return ""
    ...     def add(self, so_far, row): return max(so_far, row.word, key=len)
    ...     def merge(self, one, other): return max(one, other, key=len)
    """

    schema: Any = None

    def init(self) -> Any:
        """What stands before the first record."""
        return None

    def add(self, so_far: Any, row: Any) -> Any:
        """What stands after one more record."""
        raise NotImplementedError

    def merge(self, one: Any, other: Any) -> Any:
        """What two parts give together; parts are made before the shuffle and across batches."""
        raise NotImplementedError

    def result(self, so_far: Any) -> Any:
        """What is given out."""
        return so_far


@dataclass(frozen=True)
class Part:
    """A part of an aggregate: a native aggregate over a batch, and how two of them merge."""

    sql: str
    merge: str


@dataclass(frozen=True)
class Recipe:
    """How an aggregate is made: its parts (with `{}` for the argument), its result type and how parts give it."""

    parts: tuple[Part, ...]
    type: Callable[[t.DataType], t.DataType]
    finish: str = "first"


def _sum_type(kind: t.DataType) -> t.DataType:
    if isinstance(kind, t.Decimal):
        return t.Decimal(min(38, kind.precision + 10), kind.scale)
    return t.BIGINT if kind in t.INTEGERS else t.DOUBLE


def _average_type(kind: t.DataType) -> t.DataType:
    return t.DOUBLE


def _always(kind: t.DataType) -> Callable[[t.DataType], t.DataType]:
    return lambda _: kind


ROWS = "__rows"
"""The field beside the parts of a live aggregate that says how many records they were made of."""

RECIPES: dict[str, Recipe] = {
    "count": Recipe((Part("count({})", "add"),), _always(t.BIGINT)),
    "count_if": Recipe((Part("count_if({})", "add"),), _always(t.BIGINT)),
    "sum": Recipe((Part("sum({})", "add"),), _sum_type),
    "min": Recipe((Part("min({})", "least"),), lambda kind: kind),
    "max": Recipe((Part("max({})", "greatest"),), lambda kind: kind),
    "avg": Recipe((Part("sum(cast({} as double))", "add"), Part("count({})", "add")), _average_type, "ratio"),
    "bool_and": Recipe((Part("bool_and({})", "least"),), _always(t.BOOLEAN)),
    "bool_or": Recipe((Part("bool_or({})", "greatest"),), _always(t.BOOLEAN)),
    "collect_set": Recipe((Part("sort_array(collect_set({}))", "unite"),), t.Array),
}
_OTHER_NAMES = {"mean": "avg", "every": "bool_and", "any": "bool_or", "some": "bool_or"}


@dataclass(frozen=True)
class Aggregate:
    """One aggregate of a keyed step: a native one (`call` of `argument`), or the user's own."""

    name: str
    type: t.DataType
    call: str = ""
    argument: Expr | None = None
    own: Aggregator | None = None

    def __str__(self) -> str:
        if self.own is not None:
            return type(self.own).__qualname__
        return f"{self.call}({to_sql(self.argument) if self.argument is not None else '*'})"

    @property
    def part_fields(self) -> tuple[t.Field, ...]:
        """The fields that hold its parts between the two halves of a live aggregate."""
        return tuple(t.Field(f"__{self.name}_{i}", self._part_type(p)) for i, p in enumerate(self.recipe.parts))

    def _part_type(self, part: Part) -> t.DataType:
        if part.sql.startswith("count"):
            return t.BIGINT
        return t.DOUBLE if "as double" in part.sql else self.type

    @property
    def recipe(self) -> Recipe:
        """How it is made; only native ones have a recipe."""
        return RECIPES[self.call]


def aggregate_of(name: str, given: Any, schema: Schema) -> Aggregate:
    """An aggregate from what the user wrote: 'sum(amount)', an expression, or an Aggregator."""
    if isinstance(given, type) and issubclass(given, Aggregator):
        given = given()
    if isinstance(given, Aggregator):
        return _own(name, given)
    written = as_expr(given)
    if isinstance(written, Alias):
        written = written.expr
    if not isinstance(written, Call):
        raise ExpressionError(f"{name!r} must be an aggregate such as 'sum(amount)'; {to_sql(written)!r} came")
    return _native(name, written, schema)


def _own(name: str, given: Aggregator) -> Aggregate:
    if given.schema is None:
        raise ExpressionError(f"aggregate {name!r}: {type(given).__qualname__} must say its result type in `schema`")
    kind = t.parse_type(given.schema) if isinstance(given.schema, str) else t.Struct(schema_of(given.schema).fields)
    return Aggregate(name, kind, own=given)


def _native(name: str, call: Call, schema: Schema) -> Aggregate:
    function = _OTHER_NAMES.get(call.name.lower(), call.name.lower())
    if function not in RECIPES:
        known = nearest(function, [*RECIPES, *_OTHER_NAMES])
        raise ExpressionError(
            f"aggregate {name!r}: no aggregate {call.name!r} that can go on from where it stood; {known}"
        )
    if call.distinct:
        raise ExpressionError(
            f"aggregate {name!r}: distinct cannot go on from where it stood; use size of collect_set(...)"
        )
    if call.star:
        return Aggregate(name, t.BIGINT, function)
    if len(call.args) != 1:
        raise ExpressionError(f"aggregate {name!r}: {function} takes one argument; {len(call.args)} came")
    kind = type_of_expr(call.args[0], schema)
    if function in ("sum", "avg") and not t.is_numeric(kind):
        raise ExpressionError(f"aggregate {name!r}: {function} needs a number; {to_sql(call.args[0])} is {kind}")
    if function in ("min", "max", "collect_set") and isinstance(kind, t.Array | t.Map | t.Struct):
        raise ExpressionError(f"aggregate {name!r}: {function} needs a plain value; {to_sql(call.args[0])} is {kind}")
    if function in ("count_if", "bool_and", "bool_or") and kind != t.BOOLEAN:
        raise ExpressionError(f"aggregate {name!r}: {function} needs a boolean; {to_sql(call.args[0])} is {kind}")
    return Aggregate(name, RECIPES[function].type(kind), function, call.args[0])
