"""Joins in FROM."""

from __future__ import annotations

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning


def plan_join(planning: Planning, left: Relation, tree: exp.Join) -> Relation:
    """A relation joined with another one."""
    raise planning.text.error(tree, "joins are not planned yet")
