"""Aggregates: what a step keeps of many records.

An aggregate must be able to go on from where it stood, so each is described by parts that merge: an average
keeps a sum and a count. `RECIPES` is the one table that says how.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Any

from penstock.graph import types as t
from penstock.graph.expr import (
    Case,
    Expr,
    as_expr,
    columns_of,
    lit,
    to_text,
)
from penstock.graph.order import Term

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

    def retract(self, so_far: Any, row: Any) -> Any:
        """Takes a record back that was added. Define it where that can be done: without it all records of a key are kept where they may go again.

        Args:
            so_far: what stands with it.
            row: the record.

        Returns:
            What stands without it.

        Raises:
            NotImplementedError: the class does not define it.
        """
        raise NotImplementedError

    @property
    def retracts(self) -> bool:
        """Whether the class can take a record back."""
        return type(self).retract is not Aggregator.retract

    def result(self, so_far: Any) -> Any:
        """What is emitted.

        Args:
            so_far: what stands after all records.

        Returns:
            A value of the type that `schema` says; what stands, unless you say otherwise.
        """
        return so_far

    def where(self, condition: str | Expr) -> FilteredAggregator:
        """The same aggregate over the records for which a condition is true: `Longest().where("lang = 'en'")`.

        Args:
            condition: an expression that is true or false.

        Returns:
            The aggregate over the records for which it is true.
        """
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


def _spread_of_values(finish: str) -> Recipe:
    return Recipe((_SET,), _always(t.DOUBLE), f"{finish}_values", "number")


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
    "sum_distinct": Recipe((_SET,), _sum_kind, "sum_values", "number"),
    "avg_distinct": Recipe((_SET,), _always(t.DOUBLE), "mean_values", "number"),
    "collect_list": Recipe((Part("sorted", "list", _list_kind),), _list_kind, needs="ordered"),
    "collect_list_by": Recipe((Part("sorted_pairs", "pairs", _pairs_kind),), _list_kind, "values", "ordered"),
    "top": Recipe((Part("top", "list", _list_kind),), _list_kind, needs="ordered"),
    "percentile": Recipe(
        (Part("sorted", "doubles", _always(t.Array(t.DOUBLE))),), _always(t.DOUBLE), "percentile", "number"
    ),
    "percentile_distinct": Recipe(
        (Part("unite", "doubles", _always(t.Array(t.DOUBLE))),), _always(t.DOUBLE), "percentile", "number"
    ),
    "approx_count_distinct": Recipe((Part("hll", "hll", _always(t.BINARY)),), _always(t.BIGINT), "hll", "plain"),
    "approx_percentile": Recipe((Part("kll", "kll", _always(t.BINARY)),), _always(t.DOUBLE), "kll", "number"),
    "stddev_samp": _spread("stddev_samp"),
    "stddev_pop": _spread("stddev_pop"),
    "var_samp": _spread("var_samp"),
    "var_pop": _spread("var_pop"),
    **{f"{name}_distinct": _spread_of_values(name) for name in ("stddev_samp", "stddev_pop", "var_samp", "var_pop")},
}

DISTINCT = {
    name.removesuffix("_distinct"): name
    for name in RECIPES
    if name.endswith("_distinct") and not name.startswith("approx")
} | {
    "collect_list": "collect_set",
    "approx_count_distinct": "approx_count_distinct",
    **{name: name for name in ("min", "max", "bool_and", "bool_or", "min_by", "max_by", "collect_set")},
}
"""The recipe over different values alone, by that over all; for some it makes no difference."""

RANKED = Recipe((Part("ranked", "pairs", _pairs_kind),), _list_kind, "ranked", "ordered")
"""How the first records of a group are kept; it has no name that users write."""

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
            inner = f"({', '.join(map(to_text, self.written))})" if self.written else ""
            return f"{self.call or type(self.own).__qualname__}{inner}{only}"
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
