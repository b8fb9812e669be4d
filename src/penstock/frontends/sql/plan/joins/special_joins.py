"""Joins that are written as joins and mean something else, such as those with a table as it was at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning

SpecialJoin: TypeAlias = Callable[[Planning, Relation, exp.Join], Relation]
SPECIAL_JOINS: list[tuple[Callable[[exp.Join], bool], SpecialJoin]] = []
"""Which joins are planned in a way of their own, and how: a test of the join, and its plan. A family adds itself here."""


def special_join(tree: exp.Join) -> SpecialJoin | None:
    """The plan of a join that has one of its own."""
    return next((plan for test, plan in SPECIAL_JOINS if test(tree)), None)
