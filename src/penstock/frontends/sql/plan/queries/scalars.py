"""Subqueries of one value: a join with the row that has it."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.joins.joins import JoinPart, joined
from penstock.frontends.sql.plan.queries.aggregate_calls import aggregates_in, is_aggregated
from penstock.frontends.sql.plan.queries.correlation import INNER, decorrelated, marked, unwrapped
from penstock.frontends.sql.plan.queries.query import plan_query
from penstock.frontends.sql.plan.queries.value_pairs import aggregated_pairs, needs_pairs
from penstock.frontends.sql.plan.windows.windows import settled
from penstock.graph.expr import Call, Column, Expr, lit


def scalar_value(planning: Planning, relation: Relation, tree: exp.Subquery) -> tuple[Relation, Expr]:
    """A subquery of one value: an aggregate, over all rows or over those that share something with the row."""
    query = tree.this
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    if not isinstance(query, exp.Select) or len(query.expressions) != 1 or query.args.get("group") is not None:
        raise planning.text.error(tree, "expected a subquery of one value: SELECT with one aggregate, without GROUP BY")
    if not is_aggregated(query, planning.catalog):
        raise planning.text.error(tree, "expected an aggregate in a subquery of one value, such as MAX(x)")
    calls = aggregates_in(query.expressions[0], planning.catalog)
    if needs_pairs(planning, relation, query, calls):
        relation, rows, same = aggregated_pairs(planning, settled(planning, relation, tree), query, calls, tree)
        both, found = _joined(planning, relation, rows, same, tree)
    else:
        split = query.copy()
        split.set("expressions", [exp.alias_(each.copy(), f"value{at}") for at, each in enumerate(calls)])
        alone, shared = decorrelated(planning, relation, split)
        both, found = beside(planning, relation, alone, shared, tree)
    values = {id(call): over_none(call, c.field, query) for call, c in zip(calls, found[: len(calls)], strict=True)}
    made = planning.translator(relation, lambda each: values.get(id(each))).expr(unwrapped(query.expressions[0]))
    return both, made


def beside(
    planning: Planning, relation: Relation, query: exp.Select, shared: list[exp.Expr], place: exp.Expr
) -> tuple[Relation, tuple[VisibleColumn, ...]]:
    """Each row with the one row that a query has for it, or nulls: the last columns of the query are equal to what is `shared`.

    Returns:
        The relation, in which the columns of the query are hidden, and those of its columns that are not shared.
    """
    inside = planning.inside(f"{planning.prefix}.value", outer=planning.scope(relation))
    inner = marked(plan_query(inside, query).named(""))
    wanted = len(inner.columns) - len(shared)
    conditions = tuple(
        exp.EQ(this=mine.copy(), expression=exp.column(c.name, INNER))
        for mine, c in zip(shared, inner.columns[wanted:], strict=True)
    )
    both, found = _joined(planning, relation, inner, conditions, place)
    return both, found[:wanted]


def _joined(
    planning: Planning, relation: Relation, rows: Relation, conditions: tuple[exp.Expr, ...], place: exp.Expr
) -> tuple[Relation, tuple[VisibleColumn, ...]]:
    """Each row with the one row that it shares something with, or nulls, whose columns are hidden."""
    before = len(relation.columns)
    both = joined(planning, relation, JoinPart(exp.Join(this=place.copy()), rows, "left", conditions), None)
    hidden = tuple(replace(c, hidden=True, qualifier="", name=f"{INNER}{c.field}") for c in both.columns[before:])
    return replace(both, columns=both.columns[:before] + hidden), hidden


COUNTS = ("count", "count_if", "approx_count_distinct")
"""The aggregates that are 0 over no rows; all others are null."""


def over_none(call: exp.Expr, field: str, query: exp.Select) -> Expr:
    """An aggregate that a join has found: over no rows a count is 0, and all others are null."""
    inner = call.this if isinstance(call, exp.Filter) else call
    counts = isinstance(inner, exp.Anonymous) and str(inner.this).lower() in COUNTS and not query.args.get("having")
    return Call("coalesce", (Column(field), lit(0))) if counts else Column(field)
