"""What a subquery shares with the query around it: which of its conditions read that, and how they become keys."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation, Scope, VisibleColumn
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.queries.aggregate_calls import is_aggregated
from penstock.frontends.sql.plan.queries.conditions import columns_in, conjuncts, holds_query
from penstock.frontends.sql.plan.queries.query import FROM, WHERE
from penstock.frontends.sql.plan.relations.from_clause import plan_relation
from penstock.frontends.sql.plan.windows.windows import settled

INNER = "$"
"""How the names of the tables and columns of a subquery begin while its conditions are asked in the query around it."""
KEY = "$key"
"""How the names of the columns begin that a subquery shares with the query around it."""


def is_plain_query(planning: Planning, tree: exp.Expr) -> bool:
    """Whether a query is rows of FROM and WHERE, without groups, limits and the like."""
    if not isinstance(tree, exp.Select):
        return False
    other = ("group", "having", "qualify", "limit", "offset", "with_", "windows")
    return not any(tree.args.get(name) for name in other) and not is_aggregated(tree, planning.catalog)


def is_star(tree: exp.Expr) -> bool:
    """Whether an item of a select list is `*` or `t.*`."""
    return isinstance(tree, exp.Star) or (isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star))


def unwrapped(tree: exp.Expr) -> exp.Expr:
    """An expression without the parentheses and the alias around it."""
    while isinstance(tree, exp.Paren | exp.Alias):
        tree = tree.this
    return tree


def inside_of(
    planning: Planning, relation: Relation, query: exp.Expr, place: exp.Expr
) -> tuple[Relation, list[exp.Expr]]:
    """The rows of a subquery, and its conditions that read the query around it."""
    assert isinstance(query, exp.Select)
    inside = planning.inside(f"{planning.prefix}.sub", outer=planning.scope(relation))
    bare = query.copy()
    bare.set("expressions", [exp.Star()])
    inner, rest = FROM[0](inside, bare)
    inner = settled(inside, inner, place)
    own = [each for each in rest if not reads_outer(planning, inner, relation, each)]
    outside = [each for each in rest if reads_outer(planning, inner, relation, each)]
    return WHERE[0](inside, inner, own), outside


def reads_outer(planning: Planning, inner: Relation, outer: Relation, tree: exp.Expr) -> bool:
    """Whether an expression reads a column of the query around it."""
    if holds_query(tree):
        return False
    return any(not _is_in(planning, inner, c) and _is_in(planning, outer, c) for c in columns_in(tree))


def _is_in(planning: Planning, relation: Relation, column: exp.Column) -> bool:
    names = [part.name for part in column.parts if isinstance(part, exp.Identifier)]
    scope = Scope(planning.text, relation)
    if len(names) > 1 and scope.matches(names[0], names[1]):
        return True
    return bool(scope.matches("", names[0])) if len(names) == 1 else False


def marked(relation: Relation) -> Relation:
    """The tables and columns of a subquery under names that the query around it does not have."""
    columns = (replace(c, qualifier=f"{INNER}{c.qualifier}", name=f"{INNER}{c.name}") for c in relation.columns)
    return replace(relation, columns=tuple(columns))


def qualified(planning: Planning, inner: Relation, tree: exp.Expr) -> exp.Expr:
    """A condition in which the columns of a subquery name their table."""
    made = tree.copy()
    holder = exp.Paren(this=made)
    for column in list(columns_in(made)):
        if _is_in(planning, inner, column):
            names = [part.name for part in column.parts if isinstance(part, exp.Identifier)]
            found = Scope(planning.text, inner).find(
                names[0] if len(names) > 1 else "", names[min(1, len(names) - 1)], column
            )
            assert found is not None
            named = exp.column(f"{INNER}{found.name}", f"{INNER}{found.qualifier}")
            named.this.meta.update(column.this.meta)
            column.replace(named)
    replaced: exp.Expr = holder.this
    return replaced


def reads_around(planning: Planning, relation: Relation, query: exp.Select) -> bool:
    """Whether a subquery reads columns of the query around it."""
    known = tables_of(planning, query)
    shown = (each for each in query.expressions if not is_star(each))
    return bool(_asked_outside(planning, known, relation, query)) or any(
        reads_outer(planning, known, relation, each) for each in shown
    )


def check_sides(planning: Planning, relation: Relation, query: exp.Expr) -> None:
    """UNION, INTERSECT and EXCEPT of a condition stand for themselves: what is read around them is a condition over their result.

    Raises:
        SqlError: a side of them reads the query around; with the way out.
    """
    if not isinstance(query, exp.SetOperation):
        return
    for side in (query.this.unnest(), query.expression.unnest()):
        check_sides(planning, relation, side)
        if isinstance(side, exp.Select) and side.args.get("from_") and reads_around(planning, relation, side):
            kind = query.key.upper()
            raise planning.text.error(
                side,
                f"a side of {kind} reads the query around it; put {kind} into FROM of the subquery as a table, and compare its columns in WHERE",
            )


def read_around(planning: Planning, relation: Relation, query: exp.Select) -> list[exp.Column]:
    """The columns of the query around it that a subquery reads, in its conditions and its select list."""
    known = tables_of(planning, query)
    shown = (each for each in query.expressions if not is_star(each))
    read = [c for each in (*_asked_outside(planning, known, relation, query), *shown) for c in columns_in(each)]
    return [c for c in read if not _is_in(planning, known, c) and _is_in(planning, relation, c)]


def goes_by_keys(planning: Planning, relation: Relation, query: exp.Select) -> bool:
    """Whether a subquery shares nothing with the query around it but what equalities of its WHERE say."""
    known = tables_of(planning, query)
    shown = (each for each in query.expressions if not is_star(each))
    if any(reads_outer(planning, known, relation, each) for each in shown):
        return False
    outside = _asked_outside(planning, known, relation, query)
    return all(_sides(planning, known, relation, each) is not None for each in outside)


def _asked_outside(planning: Planning, known: Relation, relation: Relation, query: exp.Select) -> list[exp.Expr]:
    """The conditions of a subquery that read the query around it."""
    where = query.args.get("where")
    return [c for c in conjuncts(where.this if where else None) if reads_outer(planning, known, relation, c)]


def _sides(planning: Planning, known: Relation, relation: Relation, tree: exp.Expr) -> tuple[exp.Expr, exp.Expr] | None:
    """The side of an equality that reads the query around, and the side that reads the subquery; None where it is nothing like that."""
    tree = unwrapped(tree)
    if not isinstance(tree, exp.EQ):
        return None
    sides = (tree.this, tree.expression)
    outer = [s for s in sides if reads_outer(planning, known, relation, s)]
    mixed = any(_is_in(planning, known, c) for s in outer for c in columns_in(s))
    if len(outer) != 1 or mixed:
        return None
    mine, theirs = sides if outer[0] is sides[0] else sides[::-1]
    return (mine, theirs) if any(_is_in(planning, known, c) for c in columns_in(theirs)) else None


def decorrelated(
    planning: Planning, relation: Relation, query: exp.Select, grouped: bool = True
) -> tuple[exp.Select, list[exp.Expr]]:
    """A subquery by what it shares with the query around it: those values become its last columns, and where it is `grouped` keys of its groups."""
    if query.args.get("from_") is None:
        return query, []
    where = query.args.get("where")
    known = tables_of(planning, query)
    outside = _asked_outside(planning, known, relation, query)
    if not outside:
        return query, []
    mine, keys = [], []
    for each in outside:
        sides = _sides(planning, known, relation, each)
        if sides is None:
            raise planning.text.error(
                each, "expected an equality between a column of the subquery and one of the query around it"
            )
        mine.append(sides[0])
        keys.append(sides[1])
    rest = [c for c in conjuncts(where.this if where else None) if all(c is not o for o in outside)]
    alone = query.copy()
    alone.set("expressions", [*alone.expressions, *(exp.alias_(k.copy(), f"{KEY}{at}") for at, k in enumerate(keys))])
    if grouped:
        own = alone.args["group"].expressions if alone.args.get("group") else []
        alone.set("group", exp.Group(expressions=[*own, *(k.copy() for k in keys)]))
    whole = rest[0].copy() if rest else None
    for each in rest[1:]:
        whole = exp.And(this=whole, expression=each.copy())
    alone.set("where", exp.Where(this=whole) if whole is not None else None)
    return alone, mine


def tables_of(planning: Planning, query: exp.Select) -> Relation:
    """The columns of the tables in FROM of a subquery."""
    given = query.args.get("from_")
    if given is None:
        raise planning.text.error(query, "expected FROM in a subquery")
    with planning.session.trial():
        first = plan_relation(planning, given.this)
        columns: tuple[VisibleColumn, ...] = first.columns
        for join in query.args.get("joins") or ():
            if isinstance(join.this, exp.Table | exp.Subquery):
                columns += plan_relation(planning, join.this).columns
    return replace(first, columns=columns)
