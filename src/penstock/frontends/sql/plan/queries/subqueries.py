"""Subqueries in conditions and in the select list: IN and EXISTS are semi and anti joins, a single value is a join with one row."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.catalog.catalog import Catalog
from penstock.frontends.sql.expr.scope import Relation, Scope, VisibleColumn
from penstock.frontends.sql.expr.translate import Swap
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.joins.joins import JoinPart, joined
from penstock.frontends.sql.plan.queries.conditions import columns_in, conjuncts, holds_query
from penstock.frontends.sql.plan.queries.projection import exact
from penstock.frontends.sql.plan.queries.query import plan_query
from penstock.graph.expr import Call, Cast, Column, Expr, lit
from penstock.graph.expr.coerce import common_type
from penstock.graph.nodes import Select, Where
from penstock.graph.relational.sets import add_not_in

_INNER = "$"
"""How the names of the tables and columns of a subquery begin while its conditions are asked in the query around it."""
KEY = "$key"
"""How the names of the columns begin that a subquery shares with the query around it."""


def plan_condition(planning: Planning, relation: Relation, tree: exp.Expr) -> Relation:
    """A condition of WHERE with a subquery in it."""
    negated, inner = False, tree
    while isinstance(inner, exp.Paren | exp.Not):
        negated ^= isinstance(inner, exp.Not)
        inner = inner.this
    if isinstance(inner, exp.Exists):
        return _existing(planning, relation, inner.this, (), negated, tree)
    if isinstance(inner, exp.In) and inner.args.get("query") is not None:
        return _member(planning, relation, inner, negated)
    _check_places(planning, tree)
    relation, swap = with_scalars(planning, relation, [tree])
    made, _ = planning.translator(relation, swap).checked(tree, planning.schema(relation.port))
    return relation.at(planning.add(Where(planning.step("where"), (relation.port,), made), tree))


def _check_places(planning: Planning, tree: exp.Expr) -> None:
    """Refuses subqueries of many rows where only one value may stand."""
    for each in tree.find_all(exp.In, exp.Exists, exp.Any, exp.All):
        if isinstance(each, exp.Any | exp.All):
            name = type(each).__name__.upper()
            raise planning.text.error(
                each,
                f"{name} (subquery) is not supported; compare with a single value: x > (SELECT MIN(y) FROM t)",  # noqa: S608 - a message
            )
        if isinstance(each, exp.Exists) or each.args.get("query") is not None:
            raise planning.text.error(
                each,
                "IN and EXISTS with a subquery stand in WHERE alone, joined with AND; write OR as a UNION of two queries",
            )


def _member(planning: Planning, relation: Relation, tree: exp.In, negated: bool) -> Relation:
    """X [NOT] IN (subquery)."""
    query = tree.args["query"]
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    given = tree.this.expressions if isinstance(tree.this, exp.Tuple) else [_bare(tree.this)]
    if negated and len(given) == 1:
        found = _not_in(planning, relation, given[0], query, tree)
        if found is not None:
            return found
    if _is_plain(planning, query):
        wanted = query.expressions
        if len(wanted) == len(given) and not any(_is_star(each) for each in wanted):
            pairs = tuple((mine, _bare(theirs)) for mine, theirs in zip(given, wanted, strict=True))
            return _existing(planning, relation, query, pairs, negated, tree)
    inner = plan_query(planning.inside(f"{planning.prefix}.in"), query)
    if len(inner.columns) != len(given):
        raise planning.text.error(
            tree, f"expected {len(given)} columns in the subquery of IN, got {len(inner.columns)}"
        )
    right = _marked(inner.named(""))
    conditions = tuple(
        exp.EQ(this=mine.copy(), expression=exp.column(c.name, _INNER))
        for mine, c in zip(given, right.columns, strict=True)
    )
    return _semi(planning, relation, right, conditions, negated, tree)


def _not_in(
    planning: Planning, relation: Relation, value: exp.Expr, query: exp.Expr, place: exp.Expr
) -> Relation | None:
    """X NOT IN (subquery), with what SQL says of nulls; None where the subquery reads the query around it."""
    if _is_plain(planning, query) and _outside(planning, relation, query):
        return None
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


def _outside(planning: Planning, relation: Relation, query: exp.Expr) -> bool:
    """Whether a subquery reads columns of the query around it."""
    assert isinstance(query, exp.Select)
    known, where = _tables(planning, query), query.args.get("where")
    return any(_reads_outer(planning, known, relation, c) for c in conjuncts(where.this if where else None))


def _bare(tree: exp.Expr) -> exp.Expr:
    while isinstance(tree, exp.Paren | exp.Alias):
        tree = tree.this
    return tree


def _is_star(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Star) or (isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star))


def _is_plain(planning: Planning, tree: exp.Expr) -> bool:
    """Whether a query is rows of FROM and WHERE, without groups, limits and the like."""
    if not isinstance(tree, exp.Select):
        return False
    other = ("group", "having", "qualify", "limit", "offset", "with_", "windows")
    from penstock.frontends.sql.plan.queries.aggregates import is_aggregated

    return not any(tree.args.get(name) for name in other) and not is_aggregated(tree, planning.catalog)


def _existing(
    planning: Planning,
    relation: Relation,
    query: exp.Expr,
    pairs: tuple[tuple[exp.Expr, exp.Expr], ...],
    negated: bool,
    place: exp.Expr,
) -> Relation:
    """Rows for which a subquery has rows: what it asks of the query around it becomes the condition of a join."""
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    if not _is_plain(planning, query):
        raise planning.text.error(place, "expected SELECT ... FROM ... WHERE in EXISTS, without GROUP BY and LIMIT")
    inner, outside = _inside(planning, relation, query, place)
    conditions = [_qualified(planning, inner, each) for each in outside]
    conditions += [exp.EQ(this=mine.copy(), expression=_qualified(planning, inner, theirs)) for mine, theirs in pairs]
    return _semi(planning, relation, _marked(inner), tuple(conditions), negated, place)


def _inside(
    planning: Planning, relation: Relation, query: exp.Expr, place: exp.Expr
) -> tuple[Relation, list[exp.Expr]]:
    """The rows of a subquery, and its conditions that read the query around it."""
    from penstock.frontends.sql.plan.queries.select import plan_where
    from penstock.frontends.sql.plan.relations.sources import plan_from
    from penstock.frontends.sql.plan.windows.windows import settled

    assert isinstance(query, exp.Select)
    inside = planning.inside(f"{planning.prefix}.sub", outer=planning.scope(relation))
    bare = query.copy()
    bare.set("expressions", [exp.Star()])
    inner, rest = plan_from(inside, bare)
    inner = settled(inside, inner, place)
    own = [each for each in rest if not _reads_outer(planning, inner, relation, each)]
    outside = [each for each in rest if _reads_outer(planning, inner, relation, each)]
    return plan_where(inside, inner, own), outside


def _reads_outer(planning: Planning, inner: Relation, outer: Relation, tree: exp.Expr) -> bool:
    if holds_query(tree):
        return False
    return any(not _is_in(planning, inner, c) and _is_in(planning, outer, c) for c in columns_in(tree))


def _is_in(planning: Planning, relation: Relation, column: exp.Column) -> bool:
    names = [part.name for part in column.parts if isinstance(part, exp.Identifier)]
    scope = Scope(planning.text, relation)
    if len(names) > 1 and scope.matches(names[0], names[1]):
        return True
    return bool(scope.matches("", names[0])) if len(names) == 1 else False


def _marked(relation: Relation) -> Relation:
    """The tables and columns of a subquery under names that the query around it does not have."""
    columns = (replace(c, qualifier=f"{_INNER}{c.qualifier}", name=f"{_INNER}{c.name}") for c in relation.columns)
    return replace(relation, columns=tuple(columns))


def _qualified(planning: Planning, inner: Relation, tree: exp.Expr) -> exp.Expr:
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
            named = exp.column(f"{_INNER}{found.name}", f"{_INNER}{found.qualifier}")
            named.this.meta.update(column.this.meta)
            column.replace(named)
    replaced: exp.Expr = holder.this
    return replaced


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


def with_scalars(planning: Planning, relation: Relation, trees: list[exp.Expr]) -> tuple[Relation, Swap | None]:
    """A relation with the values of subqueries as columns, and what the subqueries stand for in expressions."""
    found = [each for tree in trees for each in scalars_in(tree)]
    if not found:
        return relation, None
    values: dict[int, Expr] = {}
    for each in found:
        relation, values[id(each)] = scalar_value(planning, relation, each)
    return relation, lambda tree: values.get(id(tree))


def scalars_in(tree: exp.Expr) -> list[exp.Subquery]:
    """The subqueries of an expression."""
    if isinstance(tree, exp.Subquery):
        return [tree]
    if isinstance(tree, exp.Query):
        return []
    return [each for part in tree.iter_expressions() for each in scalars_in(part)]


def scalar_value(planning: Planning, relation: Relation, tree: exp.Subquery) -> tuple[Relation, Expr]:
    """A subquery of one value: an aggregate, over all rows or over those that share something with the row."""
    from penstock.frontends.sql.plan.queries.aggregates import is_aggregated

    query = tree.this
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    if not isinstance(query, exp.Select) or len(query.expressions) != 1 or query.args.get("group") is not None:
        raise planning.text.error(tree, "expected a subquery of one value: SELECT with one aggregate, without GROUP BY")
    if not is_aggregated(query, planning.catalog):
        raise planning.text.error(tree, "expected an aggregate in a subquery of one value, such as MAX(x)")
    calls = aggregates_in(query.expressions[0], planning.catalog)
    split = query.copy()
    split.set("expressions", [exp.alias_(each.copy(), f"value{at}") for at, each in enumerate(calls)])
    bare, pairs = decorrelated(planning, relation, split)
    inner = _marked(plan_query(planning.inside(f"{planning.prefix}.value"), bare).named(""))
    conditions = tuple(
        exp.EQ(this=mine.copy(), expression=exp.column(c.name, _INNER))
        for mine, c in zip(pairs, inner.columns[len(calls) :], strict=True)
    )
    names = {c.field for c in relation.columns}
    both = joined(planning, relation, JoinPart(exp.Join(this=tree.copy()), inner, "left", conditions), None)
    found = both.columns[len(relation.columns) : len(relation.columns) + len(calls)]
    values = {id(call): over_none(call, c.field, query) for call, c in zip(calls, found, strict=True)}
    made = planning.translator(relation, lambda each: values.get(id(each))).expr(_bare(query.expressions[0]))
    hidden = tuple(
        c if c.field in names else replace(c, hidden=True, qualifier="", name=f"{_INNER}{c.field}")
        for c in both.columns
    )
    return replace(both, columns=hidden), made


def aggregates_in(tree: exp.Expr, catalog: Catalog) -> list[exp.Expr]:
    """The aggregates of an expression, each with its FILTER."""
    from penstock.frontends.sql.plan.queries.aggregates import is_aggregate_name

    if isinstance(tree, exp.Window | exp.Query):
        return []
    if isinstance(tree, exp.Filter) or (isinstance(tree, exp.Anonymous) and is_aggregate_name(str(tree.this), catalog)):
        return [tree]
    return [each for part in tree.iter_expressions() for each in aggregates_in(part, catalog)]


_COUNTS = ("count", "count_if", "approx_count_distinct")


def over_none(call: exp.Expr, field: str, query: exp.Select) -> Expr:
    """An aggregate that a join has found: over no rows a count is 0, and all others are null."""
    inner = call.this if isinstance(call, exp.Filter) else call
    counts = isinstance(inner, exp.Anonymous) and str(inner.this).lower() in _COUNTS and not query.args.get("having")
    return Call("coalesce", (Column(field), lit(0))) if counts else Column(field)


def decorrelated(
    planning: Planning, relation: Relation, query: exp.Select, grouped: bool = True
) -> tuple[exp.Select, list[exp.Expr]]:
    """A subquery by what it shares with the query around it: those values become its last columns, and where it is `grouped` keys of its groups."""
    where = query.args.get("where")
    known = _tables(planning, query)
    outside = [c for c in conjuncts(where.this if where else None) if _reads_outer(planning, known, relation, c)]
    if not outside:
        return query, []
    mine, keys = [], []
    for each in outside:
        sides = [each.this, each.expression] if isinstance(each, exp.EQ) else []
        outer = [s for s in sides if _reads_outer(planning, known, relation, s)]
        if len(sides) != 2 or len(outer) != 1:
            raise planning.text.error(
                each, "expected an equality between a column of the subquery and one of the query around it"
            )
        mine.append(outer[0])
        keys.append(next(s for s in sides if s is not outer[0]))
    rest = [c for c in conjuncts(where.this if where else None) if all(c is not o for o in outside)]
    bare = query.copy()
    bare.set("expressions", [*bare.expressions, *(exp.alias_(k.copy(), f"{KEY}{at}") for at, k in enumerate(keys))])
    if grouped:
        own = bare.args["group"].expressions if bare.args.get("group") else []
        bare.set("group", exp.Group(expressions=[*own, *(k.copy() for k in keys)]))
    whole = rest[0].copy() if rest else None
    for each in rest[1:]:
        whole = exp.And(this=whole, expression=each.copy())
    bare.set("where", exp.Where(this=whole) if whole is not None else None)
    return bare, mine


def _tables(planning: Planning, query: exp.Select) -> Relation:
    """The columns of the tables in FROM of a subquery."""
    from penstock.frontends.sql.plan.relations.from_clause import plan_relation

    given = query.args.get("from_")
    if given is None:
        raise planning.text.error(query, "expected FROM in a subquery")
    first = plan_relation(planning, given.this)
    columns: tuple[VisibleColumn, ...] = first.columns
    for join in query.args.get("joins") or ():
        if isinstance(join.this, exp.Table | exp.Subquery):
            columns += plan_relation(planning, join.this).columns
    return replace(first, columns=columns)
