"""Conditions of WHERE with a subquery in them: IN and EXISTS are semi and anti joins, all others are computed of values beside the row."""

from __future__ import annotations

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.joins.joins import JoinPart, joined
from penstock.frontends.sql.plan.queries.conditions import holds_query
from penstock.frontends.sql.plan.queries.correlation import (
    INNER,
    check_sides,
    inside_of,
    is_plain_query,
    is_star,
    marked,
    qualified,
    reads_around,
    unwrapped,
)
from penstock.frontends.sql.plan.queries.exact import exact
from penstock.frontends.sql.plan.queries.quantified import SubqueryTest, test_of, with_subqueries
from penstock.frontends.sql.plan.queries.query import plan_query
from penstock.graph.expr import Cast, Column
from penstock.graph.expr.coerce import common_type
from penstock.graph.nodes import Select, Where
from penstock.graph.relational.sets import add_not_in


def plan_condition(planning: Planning, relation: Relation, tree: exp.Expr) -> Relation:
    """A condition of WHERE with a subquery in it."""
    negated, inner = False, tree
    while isinstance(inner, exp.Paren | exp.Not):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    test = test_of(inner)
    found = None if test is None else _by_join(planning, relation, test, negated ^ test.negated, tree)
    if found is not None:
        return found
    relation, swap = with_subqueries(planning, relation, [tree])
    made, _ = planning.translator(relation, swap).checked(tree, planning.schema(relation.port))
    return relation.at(planning.add(Where(planning.step("where"), (relation.port,), made), tree))


def _by_join(
    planning: Planning, relation: Relation, test: SubqueryTest, negated: bool, place: exp.Expr
) -> Relation | None:
    """The rows for which a test is true, where a join finds them; None where it needs to be computed."""
    check_sides(planning, relation, test.query)
    if test.operator not in ("", "=") or any(holds_query(each) for each in test.values):
        return None
    if not isinstance(test.query, exp.Select) or test.query.args.get("from_") is None:
        return _member(planning, relation, test, negated, place) if test.operator and len(test.values) == 1 else None
    if is_plain_query(planning, test.query):
        return (
            _existing(planning, relation, test, negated, place)
            if not test.operator
            else _member(planning, relation, test, negated, place)
        )
    if not test.operator or reads_around(planning, relation, test.query) or (negated and len(test.values) > 1):
        return None
    return _member(planning, relation, test, negated, place)


def _member(planning: Planning, relation: Relation, test: SubqueryTest, negated: bool, place: exp.Expr) -> Relation:
    """Values [NOT] IN (subquery)."""
    query, given = test.query, test.values
    is_plain = is_plain_query(planning, query) and query.args.get("from_") is not None
    outside = is_plain and isinstance(query, exp.Select) and reads_around(planning, relation, query)
    if negated and len(given) == 1 and not outside:
        return _not_in(planning, relation, given[0], query, place)
    if is_plain:
        wanted = query.expressions
        if len(wanted) == len(given) and not any(is_star(each) for each in wanted):
            pairs = tuple((mine, unwrapped(theirs)) for mine, theirs in zip(given, wanted, strict=True))
            return _existing(planning, relation, test, negated, place, pairs)
    inner = plan_query(planning.inside(f"{planning.prefix}.in"), query)
    if len(inner.columns) != len(given):
        raise planning.text.error(
            place, f"expected {len(given)} columns in the subquery of IN, got {len(inner.columns)}"
        )
    right = marked(inner.named(""))
    theirs = (exp.column(c.name, INNER) for c in right.columns)
    conditions = _equalities(list(zip(given, theirs, strict=True)), negated)
    return _semi(planning, relation, right, conditions, negated, place)


def _equalities(pairs: list[tuple[exp.Expr, exp.Expr]], negated: bool) -> tuple[exp.Expr, ...]:
    """What must hold of a row of the subquery: it is equal; or, where rows are wanted that are not in it, that it is not known to be different."""
    equal = [exp.EQ(this=mine.copy(), expression=theirs) for mine, theirs in pairs]
    if not negated:
        return tuple(equal)
    whole: exp.Expr = equal[0]
    for each in equal[1:]:
        whole = exp.And(this=whole, expression=each)
    is_false = exp.Is(this=exp.Paren(this=whole), expression=exp.false())
    return (exp.Not(this=is_false),)


def _not_in(planning: Planning, relation: Relation, value: exp.Expr, query: exp.Expr, place: exp.Expr) -> Relation:
    """X NOT IN (subquery), with what SQL says of nulls, where the subquery does not read the query around it."""
    inner = exact(planning, plan_query(planning.inside(f"{planning.prefix}.in"), query), place)
    if len(inner.columns) != 1:
        raise planning.text.error(place, f"expected one column in the subquery of NOT IN, got {len(inner.columns)}")
    schema = planning.schema(relation.port)
    made, kind = planning.translator(relation).checked(value, schema)
    theirs = planning.schema(inner.port).fields[0]
    common = kind if str(kind) == str(theirs.type) else common_type(kind, theirs.type)
    if common is None:
        raise planning.text.error(place, f"expected two values of one type, got {kind} and {theirs.type}; CAST one")
    key, member = fresh("value", schema.names), theirs.name
    columns = (*((n, Column(n)) for n in schema.names), (key, Cast(made, common)))
    port = planning.add(Select(planning.step("value"), (relation.port,), columns), place)
    values = planning.add(
        Select(planning.step("member"), (inner.port,), ((member, Cast(Column(member), common)),)), place
    )
    name = planning.step("not-in")
    found = planning.adding(lambda: add_not_in(planning.builder, name, port, key, values, member), place)
    return relation.at(found)


def _existing(
    planning: Planning,
    relation: Relation,
    test: SubqueryTest,
    negated: bool,
    place: exp.Expr,
    pairs: tuple[tuple[exp.Expr, exp.Expr], ...] = (),
) -> Relation:
    """Rows for which a subquery has rows: what it asks of the query around it becomes the condition of a join."""
    inner, outside = inside_of(planning, relation, test.query, place)
    conditions = [qualified(planning, inner, each) for each in outside]
    if pairs:
        conditions += _equalities([(mine, qualified(planning, inner, theirs)) for mine, theirs in pairs], negated)
    return _semi(planning, relation, marked(inner), tuple(conditions), negated, place)


def _semi(
    planning: Planning,
    relation: Relation,
    right: Relation,
    conditions: tuple[exp.Expr, ...],
    negated: bool,
    place: exp.Expr,
) -> Relation:
    join = exp.Join(this=place.copy())
    return joined(planning, relation, JoinPart(join, right, "anti" if negated else "semi", conditions), None)
