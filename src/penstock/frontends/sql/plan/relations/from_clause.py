"""FROM: tables, views, subqueries, table functions, and the joins between them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import exp

from penstock.frontends.sql.catalog.catalog import StreamTable, View
from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.queries.query import plan_query
from penstock.frontends.sql.plan.relations.tables import hinted, read_table
from penstock.frontends.sql.text.hints import take_hint
from penstock.frontends.sql.text.source import Hint

RelationPlan = Callable[[Planning, Any], Relation]
TableFunctionPlan = Callable[[Planning, Any], Relation]


def plan_relation(planning: Planning, tree: exp.Expr) -> Relation:
    """The relation that an item of FROM stands for, under its alias."""
    plan = RELATIONS.get(type(tree))
    if plan is None:
        raise planning.text.error(
            tree, f"expected a table, a subquery or a table function in FROM, got {type(tree).__name__}"
        )
    return plan(planning, tree)


def aliased(planning: Planning, tree: exp.Expr, relation: Relation, default: str = "") -> Relation:
    """A relation under the alias that stands after it."""
    alias = tree.args.get("alias")
    name = alias.name if alias is not None and alias.this is not None else default
    columns = [c.name for c in (alias.args.get("columns") or ())] if alias is not None else []
    if columns and len(columns) != len(relation.columns):
        raise planning.text.error(
            tree, f"expected {len(relation.columns)} names of columns for {name!r}, got {len(columns)}"
        )
    return relation.named(name, columns)


def _table(planning: Planning, tree: exp.Table) -> Relation:
    if isinstance(tree.this, exp.Anonymous):
        return aliased(planning, tree, plan_function(planning, tree.this))
    for name in ("sample", "pivots", "partition", "rows_from", "changes", "when"):
        if tree.args.get(name):
            raise planning.text.error(tree, f"{name.upper()} has no meaning here")
    if not isinstance(tree.this, exp.Identifier):
        raise planning.text.error(tree, "expected the name of a table")
    if tree.args.get("version") is not None:
        raise planning.text.error(
            tree,
            "FOR SYSTEM_TIME AS OF goes with a join: a JOIN b FOR SYSTEM_TIME AS OF a.ts; tables keep no past to read",
        )
    return aliased(planning, tree, plan_table(planning, tree.name, tree, take_hint(planning.text, tree)), tree.name)


def plan_table(planning: Planning, name: str, place: exp.Expr, hint: Hint | None = None) -> Relation:
    """A table or view by its name, perhaps with options of its own."""
    found = planning.catalog.table(planning.text, name, place)
    if hint is not None:
        found = hinted(planning, found, hint.options, hint.at)
    if isinstance(found, StreamTable):
        return planning.relation(found.port, found.name)
    if isinstance(found, View):
        return plan_view(planning, found, place)
    return read_table(planning, found, place)


def plan_view(planning: Planning, view: View, place: exp.Expr) -> Relation:
    """A view, which is planned once however often it is read."""
    _, known = planning.session.views.get(id(view), (view, None))
    if known is None:
        if view.name.lower() in _ACTIVE:
            raise planning.text.error(place, f"view {view.name!r} reads itself")
        _ACTIVE.add(view.name.lower())
        try:
            catalog = view.scope if view.scope is not None else planning.session.catalog
            inside = Planning(planning.session, view.text, catalog, view.name)
            known = plan_query(inside, view.query)
        finally:
            _ACTIVE.discard(view.name.lower())
        if view.columns and len(view.columns) != len(known.columns):
            raise planning.text.error(
                place, f"view {view.name!r} names {len(view.columns)} columns, and its query has {len(known.columns)}"
            )
        known = known.named(view.name, view.columns)
        planning.session.views[id(view)] = (view, known)
    return known


_ACTIVE: set[str] = set()


def plan_function(planning: Planning, tree: exp.Expr) -> Relation:
    """A table function: TABLE(f(...)) or f(...)."""
    name = (tree.this.name if isinstance(tree.this, exp.Identifier) else str(tree.this)).upper()
    if name == "TABLE" and len(tree.expressions) == 1 and isinstance(tree.expressions[0], exp.Anonymous):
        return plan_function(planning, tree.expressions[0])
    plan = TABLE_FUNCTIONS.get(name)
    if plan is None:
        known = ", ".join(sorted(TABLE_FUNCTIONS)) or "none"
        raise planning.text.error(tree, f"no table function {name}; there are: {known}; your own stand after LATERAL")
    return plan(planning, tree)


def _subquery(planning: Planning, tree: exp.Subquery) -> Relation:
    prefix = f"{planning.prefix}.{tree.alias}" if tree.alias else planning.prefix
    return aliased(planning, tree, plan_query(planning.inside(prefix), tree.this))


RELATIONS: dict[type, RelationPlan] = {exp.Table: _table, exp.Subquery: _subquery}
"""How each kind of item in FROM is planned. A family adds itself here."""
TABLE_FUNCTIONS: dict[str, TableFunctionPlan] = {}
"""Table functions in FROM, by name in capitals."""
