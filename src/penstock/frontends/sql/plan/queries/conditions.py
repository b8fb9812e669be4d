"""Conditions taken apart: what is joined with AND, and which relations each part reads."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation, Scope
from penstock.frontends.sql.text.source import SqlText


def conjuncts(tree: exp.Expr | None) -> list[exp.Expr]:
    """The parts of a condition that must all hold, from left to right."""
    made: list[exp.Expr] = []
    waiting = [] if tree is None else [tree]
    while waiting:
        each = waiting.pop()
        if isinstance(each, exp.And):
            waiting += [each.expression, each.this]
        elif isinstance(each, exp.Paren) and isinstance(each.this, exp.And | exp.Paren):
            waiting.append(each.this)
        else:
            made.append(each)
    return made


def columns_in(tree: exp.Expr) -> Iterator[exp.Column]:
    """The columns that an expression reads, those of its subqueries left out."""
    if isinstance(tree, exp.Query):
        return
    if isinstance(tree, exp.Column):
        yield tree
        return
    for part in tree.iter_expressions():
        yield from columns_in(part)


def holds_query(tree: exp.Expr) -> bool:
    """Whether a subquery stands in an expression."""
    return next(iter(tree.find_all(exp.Query, exp.Values)), None) is not None


def holds_over(tree: exp.Expr) -> bool:
    """Whether an OVER window stands in an expression."""
    return next(iter(tree.find_all(exp.Window)), None) is not None


def reads(text: SqlText, relation: Relation, column: exp.Column) -> bool:
    """Whether a column may be one of a relation."""
    names = [part.name for part in column.parts if isinstance(part, exp.Identifier)]
    scope = Scope(text, relation)
    if len(names) > 1 and scope.matches(names[0], names[1]):
        return True
    owners = {q.lower() for q in relation.qualifiers}
    return bool(names) and bool(scope.matches("", names[0])) and (len(names) == 1 or names[0].lower() not in owners)


def owners_of(text: SqlText, relations: list[Relation], tree: exp.Expr) -> set[int] | None:
    """Which relations an expression reads; None where a column may be of none or of several."""
    made: set[int] = set()
    for column in columns_in(tree):
        found = [at for at, relation in enumerate(relations) if reads(text, relation, column)]
        if len(found) != 1:
            return None
        made.add(found[0])
    return made
