"""CURRENT_TIMESTAMP and the like: the processing time of a row's batch, which is the same when the batch runs again."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.expr.clocks import CLOCK, CLOCKS, NOW
from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning
from penstock.graph.nodes import BatchTime

_PARTS = ("expressions", "where", "group", "having", "qualify", "joins")


def clock_in(tree: exp.Expr | None) -> exp.Expr | None:
    """A function of processing time in an expression, those of subqueries left out."""
    if tree is None or isinstance(tree, exp.Query):
        return None
    if isinstance(tree, exp.Anonymous) and str(tree.this).lower() in CLOCKS:
        return tree if str(tree.this).lower() != "unix_timestamp" or not tree.expressions else None
    if isinstance(tree, exp.Column) and not tree.table and tree.name.lower() in CLOCKS:
        return tree
    return next((found for part in tree.iter_expressions() if (found := clock_in(part)) is not None), None)


def with_clock(planning: Planning, relation: Relation, trees: Iterable[exp.Expr]) -> Relation:
    """A relation with the processing time as a column, where an expression asks for it."""
    place = next((found for each in trees if (found := clock_in(each)) is not None), None)
    if place is None or any(
        c.name.lower() == place.name.lower() for c in relation.columns if isinstance(place, exp.Column)
    ):
        return relation
    field = f"__now{len(relation.columns)}"
    port = planning.add(BatchTime(planning.step("clock"), (relation.port,), into=field), place)
    column = VisibleColumn(CLOCK, NOW, field, hidden=True)
    return replace(relation, port=port, columns=(*relation.columns, column))


def asked_in(tree: exp.Select) -> list[exp.Expr]:
    """The expressions of a query, without its subqueries in FROM."""
    made: list[exp.Expr] = []
    for name in _PARTS:
        given = tree.args.get(name) or ()
        made += given if isinstance(given, list) else [given] if isinstance(given, exp.Expr) else []
    return made
