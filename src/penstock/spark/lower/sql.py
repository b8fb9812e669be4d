"""Expressions and aggregates as Spark SQL."""

from __future__ import annotations

from typing import ClassVar

from penstock.graph.aggregates.aggregate import Aggregate, RankedRows
from penstock.graph.expr import Call, Expr, Printer
from penstock.graph.types import quote

_RESERVED_TEXT = """
    all any both collate cross current_date current_time current_timestamp current_user date distinct except exists
    filter for full group having inner intersect interval join lateral leading left localtime natural on order outer
    overlaps right select semi anti session_user some table timestamp timestamp_ltz timestamp_ntz trailing union
    unique user using where window with within
"""


class SparkPrinter(Printer):
    """Writes expressions as Spark reads them."""

    reserved: ClassVar[frozenset[str]] = Printer.reserved | frozenset(_RESERVED_TEXT.split())

    def call(self, expr: Call) -> str:
        """A function; a value as JSON is what stands in a list of it alone."""
        if expr.name != "json_string":
            return super().call(expr)
        value = self.text(expr.args[0])
        listed = f"to_json(array({value}), map('ignoreNullFields', 'false'))"
        return f"if(({value}) is null, null, substring({listed}, 2, length({listed}) - 2))"


_SPARK = SparkPrinter()


def to_sql(expr: Expr) -> str:
    """The expression as Spark SQL.

    >>> from penstock.graph.expr import as_expr
    >>> to_sql(as_expr("`table` + 1"))
    '`table` + 1'
    """
    return _SPARK.text(expr)


_DOUBLE = "cast({0} as double)"
_PAIR = "named_struct('o', {1}, 'v', {0})"
_KNOWN = " filter (where {1} is not null)"
_SET = "sort_array(collect_set({0}))"
_MOMENTS = f"named_struct('n', count({{0}}), 'mean', avg({_DOUBLE}), 'm2', var_pop({_DOUBLE}) * count({{0}}))"

_PARTS: dict[str, tuple[str, ...]] = {
    "count": ("count({0})",),
    "count_if": ("count_if({0})",),
    "sum": ("sum({0})",),
    "min": ("min({0})",),
    "max": ("max({0})",),
    "avg": (f"sum({_DOUBLE})", "count({0})"),
    "bool_and": ("bool_and({0})",),
    "bool_or": ("bool_or({0})",),
    "min_by": (f"min({_PAIR}){_KNOWN}",),
    "max_by": (f"max({_PAIR}){_KNOWN}",),
    "collect_set": (_SET,),
    "count_distinct": (_SET,),
    "sum_distinct": (_SET,),
    "avg_distinct": (_SET,),
    "percentile_distinct": (f"sort_array(collect_set({_DOUBLE}))",),
    "stddev_samp_distinct": (_SET,),
    "stddev_pop_distinct": (_SET,),
    "var_samp_distinct": (_SET,),
    "var_pop_distinct": (_SET,),
    "collect_list": ("sort_array(collect_list({0}))",),
    "collect_list_by": (f"sort_array(collect_list({_PAIR}) filter (where {{0}} is not null))",),
    "top": ("slice(sort_array(collect_list({0}), false), 1, {n})",),
    "ranked": (f"slice(array_sort(collect_list({_PAIR}), (l, r) -> {{by}}), 1, {{n}})",),
    "percentile": (f"sort_array(collect_list({_DOUBLE}))",),
    "approx_count_distinct": ("hll_sketch_agg({0}, 12)",),
    "approx_percentile": (f"kll_sketch_agg_double({_DOUBLE})",),
    "stddev_samp": (_MOMENTS,),
    "stddev_pop": (_MOMENTS,),
    "var_samp": (_MOMENTS,),
    "var_pop": (_MOMENTS,),
}
"""The parts of each aggregate over a batch, with `{0}`, `{1}` for the arguments and `{n}` for the number; `{by}` compares two ranked records."""

_TOTAL = "aggregate({0}, 0D, (a, x) -> a + cast(x as double))"
_MEAN = f"({_TOTAL} / size({{0}}))"
_SQUARES = f"aggregate({{0}}, 0D, (a, x) -> a + power(cast(x as double) - {_MEAN}, 2))"

_FINISH: dict[str, str] = {
    "first": "{0}",
    "ratio": "case when {1} > 0 then {0} / {1} end",
    "value": "{0}.v",
    "values": "transform({0}, x -> x.v)",
    "size": "size({0})",
    "sum_values": "case when size({0}) > 0 then aggregate({0}, cast(0 as {type}), (a, x) -> cast(a + x as {type})) end",
    "mean_values": f"case when size({{0}}) > 0 then {_MEAN} end",
    "stddev_samp_values": f"case when size({{0}}) > 1 then sqrt({_SQUARES} / (size({{0}}) - 1)) end",
    "stddev_pop_values": f"case when size({{0}}) > 0 then sqrt({_SQUARES} / size({{0}})) end",
    "var_samp_values": f"case when size({{0}}) > 1 then {_SQUARES} / (size({{0}}) - 1) end",
    "var_pop_values": f"case when size({{0}}) > 0 then {_SQUARES} / size({{0}}) end",
    "percentile": "case when size({0}) > 0 then "
    "(1 - pmod((size({0}) - 1) * {n}, 1)) * element_at({0}, cast(floor((size({0}) - 1) * {n}) as int) + 1) + "
    "pmod((size({0}) - 1) * {n}, 1) * element_at({0}, cast(ceil((size({0}) - 1) * {n}) as int) + 1) end",
    "hll": "hll_sketch_estimate({0})",
    "kll": "case when kll_sketch_get_n_double({0}) > 0 then kll_sketch_get_quantile_double({0}, {n}) end",
    "stddev_samp": "case when {0}.n > 1 then sqrt({0}.m2 / ({0}.n - 1)) end",
    "stddev_pop": "case when {0}.n > 0 then sqrt({0}.m2 / {0}.n) end",
    "var_samp": "case when {0}.n > 1 then {0}.m2 / ({0}.n - 1) end",
    "var_pop": "case when {0}.n > 0 then {0}.m2 / {0}.n end",
}
"""The result of each way to finish, over the parts, with `{0}`, `{1}` for the parts, `{n}` for the number and `{type}` for the type."""


def part_sql(aggregate: Aggregate) -> list[str]:
    """The parts of an aggregate as native aggregates, each under the name of its field."""
    written = [*map(to_sql, aggregate.arguments)] or ["*"]
    by = "" if aggregate.ranked is None else _compared(aggregate.ranked)
    made = [part.format(*written, n=_number(aggregate), by=by) for part in _PARTS[aggregate.call]]
    fields = aggregate.part_fields
    return [f"cast({sql} as {x.type}) as {quote(x.name)}" for sql, x in zip(made, fields, strict=True)]


def result_sql(aggregate: Aggregate) -> str:
    """The result of an aggregate as a native expression over the fields of its parts."""
    names = [quote(x.name) for x in aggregate.part_fields]
    made = _FINISH[aggregate.recipe.finish].format(*names, n=_number(aggregate), type=aggregate.type)
    return f"cast({made} as {aggregate.type}) as {quote(aggregate.name)}"


def _compared(rows: RankedRows) -> str:
    """Which of two records `l` and `r` is ranked first: null is the smallest value, and equal ranks go by all fields."""
    orders = ((f"o.{quote(term.column)}", term.descending) for term in rows.by)
    whens = [when for value, descending in (*orders, ("v", False)) for when in _whens(value, descending)]
    return f"case {' '.join(whens)} else 0 end"


def _whens(value: str, descending: bool) -> list[str]:
    first, last = (1, -1) if descending else (-1, 1)
    left, right = f"l.{value}", f"r.{value}"
    return [
        f"when {left} is null and {right} is not null then {first}",
        f"when {left} is not null and {right} is null then {last}",
        f"when {left} < {right} then {first}",
        f"when {left} > {right} then {last}",
    ]


def _number(aggregate: Aggregate) -> str:
    if aggregate.number is None:
        return ""
    return str(int(aggregate.number)) if aggregate.call in ("top", "ranked") else f"{aggregate.number!r}D"
