"""SELECT: FROM, WHERE, GROUP BY, HAVING, the select list, QUALIFY, DISTINCT, ORDER BY and LIMIT, in this order."""

from __future__ import annotations

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.hints import ttl_of
from penstock.frontends.sql.plan.joins.joins import narrowed
from penstock.frontends.sql.plan.queries.aggregate_calls import is_aggregated
from penstock.frontends.sql.plan.queries.aggregates import plan_aggregate
from penstock.frontends.sql.plan.queries.clocks import asked_in, with_clock
from penstock.frontends.sql.plan.queries.conditions import conjuncts, holds_over, holds_query
from penstock.frontends.sql.plan.queries.ordering import plan_tail
from penstock.frontends.sql.plan.queries.projection import items_of, projected, with_order
from penstock.frontends.sql.plan.queries.quantified import with_subqueries
from penstock.frontends.sql.plan.queries.query import AGGREGATE, FROM, QUERIES, WHERE
from penstock.frontends.sql.plan.queries.subqueries import plan_condition
from penstock.frontends.sql.plan.relations.sources import plan_from
from penstock.frontends.sql.plan.windows.ranking import plan_over, ranked
from penstock.frontends.sql.plan.windows.windows import settled

_REFUSED = (
    "laterals",
    "into",
    "cluster",
    "distribute",
    "sort",
    "connect",
    "sample",
    "locks",
    "prewhere",
    "pivots",
    "settings",
    "format",
)


def plan_select(planning: Planning, tree: exp.Select) -> Relation:
    """The relation of a SELECT."""
    for name in _REFUSED:
        if tree.args.get(name):
            raise planning.text.error(tree, f"{name.upper()} has no meaning here")
    ttl_of(planning, tree)  # hints are checked, whether a step needs them or not
    relation, rest = plan_from(planning, tree)
    relation = with_clock(planning, relation, asked_in(tree))
    relation = plan_where(planning, relation, rest)
    if is_aggregated(tree, planning.catalog):
        return plan_tail(planning, tree, plan_aggregate(planning, tree, relation))
    return plan_tail(planning, tree, plan_projection(planning, tree, relation))


def plan_where(planning: Planning, relation: Relation, conditions: list[exp.Expr]) -> Relation:
    """The rows for which all conditions are true; subqueries become joins."""
    plain = [c for c in conditions if not holds_query(c)]
    relation, plain = ranked(planning, relation, plain)
    if relation.window is not None and any(_reads_window(c) for c in plain):
        relation = settled(planning, relation, plain[0])
    whole = _together(plain)
    if whole is not None:
        relation = narrowed(planning, relation, whole)
    for each in conditions:
        if holds_query(each):
            relation = plan_condition(planning, settled(planning, relation, each), each)
    return relation


def _together(conditions: list[exp.Expr]) -> exp.Expr | None:
    whole: exp.Expr | None = None
    for each in conditions:
        whole = each if whole is None else exp.And(this=whole, expression=each)
    return whole


def _reads_window(tree: exp.Expr) -> bool:
    return any(c.name.lower() in ("window_start", "window_end", "window_time") for c in tree.find_all(exp.Column))


def plan_projection(planning: Planning, tree: exp.Select, relation: Relation) -> Relation:
    """The select list without aggregates."""
    if relation.window is not None:
        relation = settled(planning, relation, tree)
    relation, swap = with_subqueries(planning, relation, tree.expressions)
    qualify = tree.args.get("qualify")
    if qualify is not None or any(holds_over(each) for each in tree.expressions):
        return plan_over(planning, tree, relation, swap, conjuncts(qualify.this) if qualify is not None else [])
    translator, schema = planning.translator(relation, swap), planning.schema(relation.port)
    items = items_of(planning, tree, relation, lambda each: translator.checked(each, schema)[0])
    items = with_order(tree, items, relation, planning, lambda each: translator.checked(each, schema)[0])
    return projected(planning, relation, items, tree)


QUERIES[exp.Select] = plan_select
FROM.append(plan_from)
WHERE.append(plan_where)
AGGREGATE.append(plan_aggregate)
