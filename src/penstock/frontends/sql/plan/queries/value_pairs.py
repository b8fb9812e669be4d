"""Subqueries of one value that read the query around them by more than equalities.

The rows around are put together by the values that are read of them; each of these meets the rows of the subquery for which its conditions
hold, the pairs are aggregated, and each row around has the row of its values beside it.
"""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning
from penstock.frontends.sql.plan.joins.joins import JoinPart, joined
from penstock.frontends.sql.plan.queries.conditions import columns_in
from penstock.frontends.sql.plan.queries.correlation import (
    goes_by_keys,
    inside_of,
    marked,
    qualified,
    reads_outer,
    tables_of,
    unwrapped,
)
from penstock.frontends.sql.plan.queries.query import AGGREGATE
from penstock.graph.expr import Column
from penstock.graph.nodes import Select
from penstock.graph.relational.sets import add_distinct_rows

_AROUND = "$around"


def needs_pairs(planning: Planning, relation: Relation, query: exp.Select, calls: list[exp.Expr]) -> bool:
    """Whether a subquery of one value cannot be aggregated by what it shares with the query around it."""
    if query.args.get("from_") is None:
        return False
    bare = query.copy()
    bare.set("expressions", [exp.Star()])
    if not goes_by_keys(planning, relation, bare):
        return True
    known = tables_of(planning, query)
    return any(reads_outer(planning, known, relation, each) for each in _of_groups(query, calls))


def aggregated_pairs(
    planning: Planning, relation: Relation, query: exp.Select, calls: list[exp.Expr], place: exp.Expr
) -> tuple[Relation, Relation, tuple[exp.Expr, ...]]:
    """The aggregates of a subquery by the values of the rows around that it reads.

    Returns:
        The rows around, the aggregates, of which the first columns are the calls, and what of both is equal.
    """
    _check_plain(planning, query, place)
    inner, outside = inside_of(planning, relation, query, place)
    trees = [qualified(planning, inner, each) for each in (*outside, *_of_groups(query, calls))]
    fields = _fields_read(planning, relation, trees)
    keys = tuple(VisibleColumn(_AROUND, f"{_AROUND}{f}", f, hidden=True) for f in fields)
    relation = replace(relation, columns=(*relation.columns, *keys))
    around = _different(planning, relation, fields, place)
    part = JoinPart(exp.Join(this=place.copy()), marked(inner), "inner", tuple(trees[: len(outside)]))
    pairs = joined(planning, around, part, None)
    written = [exp.column(each.name, _AROUND) for each in keys]
    made, having = trees[len(outside) : len(outside) + len(calls)], trees[len(outside) + len(calls) :]
    groups = _grouped(made, written, having)
    found = marked(AGGREGATE[0](planning.inside(f"{planning.prefix}.value"), groups, pairs).named(""))
    never_null = {f for each in outside for f in _of_equality(planning, relation, each)}
    same = tuple(
        (exp.EQ if field in never_null else exp.NullSafeEQ)(this=mine, expression=exp.column(c.name, c.qualifier))
        for field, mine, c in zip(fields, written, found.columns[len(calls) :], strict=True)
    )
    return relation, found, same


def _grouped(calls: list[exp.Expr], keys: list[exp.Column], having: list[exp.Expr]) -> exp.Select:
    """Aggregates by some keys."""
    shown = [*(exp.alias_(each, f"value{at}") for at, each in enumerate(calls)), *(each.copy() for each in keys)]
    made = exp.Select(expressions=shown, group=exp.Group(expressions=[each.copy() for each in keys]))
    made.set("having", exp.Having(this=having[0]) if having else None)
    return made


def _check_plain(planning: Planning, query: exp.Select, place: exp.Expr) -> None:
    """A subquery of which nothing is asked but its aggregates."""
    for name in ("limit", "offset", "qualify", "distinct"):
        if query.args.get(name):
            message = f"expected a subquery without {name.upper()}, since it reads the query around it"
            raise planning.text.error(place, message)


def _of_groups(query: exp.Select, calls: list[exp.Expr]) -> list[exp.Expr]:
    """What a subquery computes of its groups: its aggregates, and the condition of HAVING."""
    having = query.args.get("having")
    return [*calls, *([having.this] if having is not None else [])]


def _fields_read(planning: Planning, relation: Relation, trees: list[exp.Expr]) -> list[str]:
    """The fields of the rows around that some expressions read."""
    scope = planning.scope(relation)
    columns = (scope.find(c.table, c.name, c) for each in trees for c in columns_in(each))
    return list(dict.fromkeys(c.field for c in columns if c is not None))


def _different(planning: Planning, relation: Relation, fields: list[str], place: exp.Expr) -> Relation:
    """The different values of some fields."""
    port = planning.add(Select(planning.step("around"), (relation.port,), tuple((f, Column(f)) for f in fields)), place)
    name = planning.step("different")
    port = planning.adding(lambda: add_distinct_rows(planning.builder, name, port, None), place)
    return Relation(port, tuple(c for c in relation.columns if c.field in fields))


def _of_equality(planning: Planning, relation: Relation, tree: exp.Expr) -> list[str]:
    """The field of the rows around that is one side of an equality, and so no null in any pair."""
    tree = unwrapped(tree)
    sides = (tree.this, tree.expression) if isinstance(tree, exp.EQ) else ()
    return [f for each in sides if isinstance(each, exp.Column) for f in _fields_read(planning, relation, [each])]
