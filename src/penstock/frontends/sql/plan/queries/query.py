"""A query of any kind: its plan is a relation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from penstock.frontends.sql.catalog.catalog import View
from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning

QueryPlan = Callable[[Planning, Any], Relation]
QUERIES: dict[type, QueryPlan] = {}
"""How each kind of query is planned. A family adds itself here."""
FromPlan = Callable[[Planning, exp.Select], tuple[Relation, list[exp.Expr]]]
WherePlan = Callable[[Planning, Relation, list[exp.Expr]], Relation]
FROM: list[FromPlan] = []
"""How FROM is planned, for subqueries in conditions: the conditions of a join may hold such again."""
WHERE: list[WherePlan] = []
"""How conditions are planned, for the same."""
AggregatePlan = Callable[[Planning, exp.Select, Relation], Relation]
AGGREGATE: list[AggregatePlan] = []
"""How GROUP BY and aggregates are planned, for subqueries of one value."""


def plan_query(planning: Planning, tree: exp.Expr) -> Relation:
    """The relation that a query stands for.

    Raises:
        SqlError: it cannot be planned; with the place.
    """
    plan = QUERIES.get(type(tree))
    if plan is None:
        raise planning.text.error(tree, f"expected a query, got {type(tree).__name__.upper()}")
    return plan(with_views(planning, tree), tree)


def with_views(planning: Planning, tree: exp.Expr) -> Planning:
    """The planning with the views of WITH, each of which sees those before it."""
    given = tree.args.get("with_")
    if given is None:
        return planning
    if given.args.get("recursive"):
        raise planning.text.error(
            given, "WITH RECURSIVE is not supported; loops are written in Python, with flow.feedback"
        )
    catalog = planning.catalog.child()
    for each in given.expressions:
        columns = tuple(c.name for c in (each.args["alias"].args.get("columns") or ()))
        catalog.define(View(each.alias, columns, each.this, planning.text, scope=catalog_before(catalog)))
    return planning.inside(catalog=catalog)


def catalog_before(catalog: Any) -> Any:
    """The names as they stand now."""
    made = catalog.parent.child()
    made.tables.update(catalog.tables)
    return made


def _nested(planning: Planning, tree: exp.Subquery) -> Relation:
    return plan_query(planning, tree.this)


QUERIES[exp.Subquery] = _nested
QUERIES[exp.Paren] = _nested
