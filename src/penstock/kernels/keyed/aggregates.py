"""The parts of aggregates, in Python: what a record makes of each, how two go together, and what they give at last."""

from __future__ import annotations

import decimal
import heapq
import math
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

from penstock.graph.aggregates.aggregate import Aggregate, Part, RankedRows
from penstock.graph.schema import Schema
from penstock.kernels.expr.evaluate import compile_expr
from penstock.kernels.keyed import sketches
from penstock.kernels.keyed.own import own_of, taken_of

Begin = Callable[[Any, Any], Any]
"""What a record, given as its plain values and as a row, makes of a part."""
Merge = Callable[[Any, Any], Any]
_EXACT = decimal.Context(prec=76)


def begins(aggregate: Aggregate, schema: Schema) -> list[Begin]:
    """What a record makes of each part of an aggregate."""
    if aggregate.own is not None:
        return [_begin_own(aggregate, schema)]
    if not aggregate.arguments:
        return [lambda values, row: 1]
    of = [compile_expr(a, schema) for a in aggregate.arguments]
    return [_begin(_begin_of(part), of) for part in aggregate.recipe.parts]


def _begin_of(part: Part) -> Callable[..., Any]:
    return _summand if (part.merge, part.begin) == ("add", "value") else _BEGINS[part.begin]


def _summand(value: Any) -> Any:
    """A value as it is added to zero, which is where Spark's sums and Arrow's begin: -0.0 alone adds up to 0.0."""
    return value + 0.0 if isinstance(value, float) else value


def _begin_own(aggregate: Aggregate, schema: Schema) -> Begin:
    """What a record makes of the user's own aggregate; nothing where the condition does not hold."""
    own, taken = own_of(aggregate), taken_of(aggregate, schema)
    if aggregate.condition is None:
        return lambda values, row: own.add(own.init(), taken(values, row))
    holds = compile_expr(aggregate.condition, schema)
    return lambda values, row: own.add(own.init(), taken(values, row)) if holds(values) else None


def _begin(make: Callable[..., Any], of: list[Callable[[Any], Any]]) -> Begin:
    if len(of) == 1:
        only = of[0]
        return lambda values, row: make(only(values))
    return lambda values, row: make(*(each(values) for each in of))


def _pair(value: object, order: object) -> dict[str, object] | None:
    return None if order is None else {"o": order, "v": value}


_BEGINS: dict[str, Callable[..., Any]] = {
    "value": lambda value: value,
    "known": lambda value: int(value is not None),
    "true": lambda value: int(value is True),
    "double": lambda value: None if value is None else float(value) + 0.0,
    "list": lambda value: [] if value is None else [value],
    "doubles": lambda value: [] if value is None else [float(value)],
    "pair": _pair,
    "pairs": lambda value, order: [] if value is None else [{"o": order, "v": value}],
    "hll": sketches.distinct_of,
    "kll": sketches.values_of,
    "moments": lambda value: None if value is None else {"n": 1, "mean": float(value), "m2": 0.0},
}


def merges(aggregate: Aggregate) -> list[Merge]:
    """How each part of an aggregate goes together with another; null is nothing."""
    if aggregate.own is not None:
        return [aggregate.own.merge if aggregate.condition is None else _nullable(aggregate.own.merge)]
    return [merge_of(part, aggregate) for part in aggregate.recipe.parts]


def merge_of(part: Part, aggregate: Aggregate | None = None) -> Merge:
    """How two parts go together; null is nothing."""
    if aggregate is not None and aggregate.ranked is not None:
        return _nullable(partial(_ranked, rows=aggregate.ranked))
    if aggregate is not None and part.merge == "top":
        return _nullable(partial(_top, many=int(aggregate.number or 0)))
    return _nullable(_MERGES[part.merge])


def _nullable(together: Merge) -> Merge:
    def merge(one: Any, other: Any) -> object:
        if one is None or other is None:
            return other if one is None else one
        return together(one, other)

    return merge


def _sum(one: Any, other: Any) -> Any:
    return _EXACT.add(one, other) if isinstance(one, decimal.Decimal) else one + other


def _nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def rank(value: object) -> tuple[int, Any]:
    """What a value is ordered by: as in Spark, null is the smallest and not-a-number the largest of all."""
    if value is None:
        return (0, 0)
    if isinstance(value, dict):
        return (1, tuple(map(rank, value.values())))
    if isinstance(value, list):
        return (1, tuple(map(rank, value)))
    return (2, 0) if _nan(value) else (1, value)


def _least(one: Any, other: Any) -> Any:
    if _nan(one) or _nan(other):
        return other if _nan(one) else one
    return min(one, other)


def _greatest(one: Any, other: Any) -> Any:
    if _nan(one) or _nan(other):
        return one if _nan(one) else other
    return max(one, other)


def _pair_rank(pair: dict[str, Any]) -> tuple[object, ...]:
    return rank(pair["o"]), rank(pair["v"])


def _sorted(one: list[Any], other: list[Any]) -> list[Any]:
    return list(heapq.merge(one, other, key=rank))


def _top(one: list[Any], other: list[Any], many: int) -> list[Any]:
    return sorted([*one, *other], key=rank, reverse=True)[:many]


def _ranked(one: list[Any], other: list[Any], rows: RankedRows) -> list[Any]:
    made = sorted([*one, *other], key=_value_rank)
    for term in reversed(rows.by):
        made.sort(key=partial(_order_rank, column=term.column), reverse=term.descending)
    return made[: rows.n]


def _value_rank(pair: dict[str, Any]) -> Any:
    return rank(pair["v"])


def _order_rank(pair: dict[str, Any], column: str) -> Any:
    return rank(pair["o"][column])


def _unite(one: list[Any], other: list[Any]) -> list[Any]:
    known = {rank(value): value for value in (*one, *other)}
    return [known[at] for at in sorted(known)]


def _moments(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    if not one["n"] or not other["n"]:
        return one if one["n"] else other
    n = one["n"] + other["n"]
    apart = other["mean"] - one["mean"]
    m2 = one["m2"] + other["m2"] + apart * apart * one["n"] * other["n"] / n
    return {"n": n, "mean": one["mean"] + apart * other["n"] / n, "m2": m2}


_MERGES: dict[str, Merge] = {
    "add": _sum,
    "least": _least,
    "greatest": _greatest,
    "least_pair": lambda one, other: min(one, other, key=_pair_rank),
    "greatest_pair": lambda one, other: max(one, other, key=_pair_rank),
    "unite": _unite,
    "sorted": _sorted,
    "sorted_pairs": lambda one, other: list(heapq.merge(one, other, key=_pair_rank)),
    "moments": _moments,
    "hll": sketches.distinct_together,
    "kll": sketches.values_together,
}


def finish(aggregate: Aggregate, parts: tuple[Any, ...]) -> object:
    """The result that the parts stand for."""
    if aggregate.own is not None:
        own, none = own_of(aggregate), aggregate.condition is not None and parts[0] is None
        return own.result(own.init() if none else parts[0])
    how = aggregate.recipe.finish
    if aggregate.ranked is not None:
        into = aggregate.ranked.into
        return [{**pair["v"], into: at} for at, pair in enumerate(parts[0] or (), 1)]
    if how == "percentile":
        return _percentile(parts[0] or [], aggregate.number or 0.0)
    if how == "kll":
        return sketches.quantile(parts[0], aggregate.number or 0.0)
    return _FINISH[how](*parts)


def _percentile(values: list[float], at: float) -> float | None:
    """The value at a fraction of the way through sorted values, between two of them in proportion."""
    if not values:
        return None
    position = (len(values) - 1) * at
    over = position % 1
    return (1 - over) * values[math.floor(position)] + over * values[math.ceil(position)]


def _spread(part: Any, less: int, root: bool) -> float | None:
    if part is None or part["n"] <= less:
        return None
    variance = part["m2"] / (part["n"] - less)
    return math.sqrt(variance) if root else float(variance)


def _moments_of(values: list[Any]) -> Any:
    return reduce(_moments, ({"n": 1, "mean": float(value), "m2": 0.0} for value in values)) if values else None


_FINISH: dict[str, Callable[..., Any]] = {
    "first": lambda part: part,
    "ratio": lambda total, n: total / n if n else None,
    "value": lambda pair: None if pair is None else pair["v"],
    "values": lambda pairs: [p["v"] for p in pairs],
    "size": len,
    "sum_values": lambda values: reduce(_sum, map(_summand, values)) if values else None,
    "mean_values": lambda values: reduce(_sum, map(float, values), 0.0) / len(values) if values else None,
    "hll": sketches.how_many,
    "stddev_samp": lambda part: _spread(part, 1, True),
    "stddev_pop": lambda part: _spread(part, 0, True),
    "var_samp": lambda part: _spread(part, 1, False),
    "var_pop": lambda part: _spread(part, 0, False),
    "stddev_samp_values": lambda values: _spread(_moments_of(values), 1, True),
    "stddev_pop_values": lambda values: _spread(_moments_of(values), 0, True),
    "var_samp_values": lambda values: _spread(_moments_of(values), 1, False),
    "var_pop_values": lambda values: _spread(_moments_of(values), 0, False),
}
