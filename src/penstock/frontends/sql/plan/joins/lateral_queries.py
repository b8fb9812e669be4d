"""LATERAL (query): a subquery that is asked for each row of the left, as a join by what it shares with the row."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.joins.joins import JoinPart, joined
from penstock.frontends.sql.plan.queries.aggregate_calls import aggregates_in, is_aggregated
from penstock.frontends.sql.plan.queries.correlation import decorrelated
from penstock.frontends.sql.plan.queries.query import plan_query
from penstock.frontends.sql.plan.queries.scalars import over_none
from penstock.graph.expr import Column, Expr
from penstock.graph.nodes import Select


def plan_lateral_query(planning: Planning, left: Relation, tree: exp.Lateral, how: str) -> Relation:
    """Each row of the left with the rows that the query has for it."""
    query = tree.this
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    if not isinstance(query, exp.Select):
        raise planning.text.error(tree, "expected SELECT after LATERAL")
    grouped = is_aggregated(query, planning.catalog)
    if grouped and query.args.get("limit") is not None:
        raise planning.text.error(tree, "expected LATERAL (SELECT ... LIMIT n) without aggregates")
    bare, pairs = decorrelated(planning, left, query, grouped)
    if query.args.get("limit") is not None:
        bare = _first_rows(bare, len(query.expressions))
    inner = plan_query(planning.inside(f"{planning.prefix}.lateral"), bare)
    shown = len(inner.columns) - len(pairs)
    right = _named(planning, inner, tree, shown)
    conditions = tuple(
        exp.EQ(this=mine.copy(), expression=exp.column(c.name, c.qualifier))
        for mine, c in zip(pairs, right.columns[shown:], strict=True)
    )
    total = grouped and query.args.get("group") is None and not query.args.get("having")
    part = JoinPart(exp.Join(this=tree.copy()), right, "left" if total else how, conditions)
    both = joined(planning, left, part, None)
    return _with_zeros(planning, both, query, len(left.columns), tree) if total else both


def _first_rows(query: exp.Select, shown: int) -> exp.Select:
    """ORDER BY and LIMIT for each row of the left: the first rows of each partition."""
    made = query.copy()
    keys = [each.this.copy() for each in made.expressions[shown:]]
    order = made.args.get("order") or exp.Order(expressions=[each.this.copy() for each in made.expressions[:shown]])
    number = exp.Window(this=exp.Anonymous(this="ROW_NUMBER", expressions=[]), partition_by=keys, order=order.copy())
    made.set("qualify", exp.Qualify(this=exp.LTE(this=number, expression=made.args["limit"].expression.copy())))
    made.set("order", None)
    made.set("limit", None)
    return made


def _named(planning: Planning, inner: Relation, tree: exp.Lateral, shown: int) -> Relation:
    """The query under its alias; what it shares with the left is not shown again."""
    alias = tree.args.get("alias")
    owner = alias.name if alias is not None and alias.this is not None else "$lateral"
    names = [c.name for c in (alias.args.get("columns") or ())] if alias is not None else []
    if names and len(names) != shown:
        raise planning.text.error(tree, f"expected {shown} names of columns for {owner!r}, got {len(names)}")
    wanted = [*(names or [c.name for c in inner.columns[:shown]]), *(c.name for c in inner.columns[shown:])]
    columns = tuple(
        replace(c, qualifier=owner, name=name, hidden=at >= shown)
        for at, (c, name) in enumerate(zip(inner.columns, wanted, strict=True))
    )
    return replace(inner, columns=columns)


def _with_zeros(planning: Planning, both: Relation, query: exp.Select, before: int, tree: exp.Lateral) -> Relation:
    """Aggregates over no rows: a row is there all the same, with 0 where the query counts."""
    made: dict[str, Expr] = {n: Column(n) for n in planning.schema(both.port).names}
    for item, column in zip(query.expressions, both.columns[before:], strict=False):
        bare = item.this if isinstance(item, exp.Alias) else item
        calls = aggregates_in(bare, planning.catalog)
        if len(calls) != 1 or calls[0] is not bare:
            raise planning.text.error(
                item, "expected aggregates alone in LATERAL without GROUP BY, such as COUNT(*) AS n"
            )
        made[column.field] = over_none(bare, column.field, query)
    port = planning.add(Select(planning.step("lateral"), (both.port,), tuple(made.items())), tree)
    return both.at(port)
