"""What comes after the select list: DISTINCT, ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.hints import span_set
from penstock.frontends.sql.plan.queries.exact import exact
from penstock.frontends.sql.plan.statements.settings import TTL
from penstock.graph import types as t
from penstock.graph.expr import Column, Expr, lit
from penstock.graph.nodes import Port, Select, Sort, Top, Where
from penstock.graph.order import Term
from penstock.graph.relational.sets import add_distinct_rows


def plan_tail(planning: Planning, tree: exp.Expr, relation: Relation) -> Relation:
    """DISTINCT, ORDER BY and LIMIT."""
    distinct = tree.args.get("distinct") if isinstance(tree, exp.Select) else None
    if distinct is not None:
        if distinct.args.get("on") is not None:
            raise planning.text.error(
                tree, "expected DISTINCT, or ROW_NUMBER() OVER (PARTITION BY ...) = 1 for DISTINCT ON"
            )
        relation = without_doubles(planning, relation, tree)
    return plan_order(planning, tree, relation)


def without_doubles(planning: Planning, relation: Relation, place: exp.Expr) -> Relation:
    """Each row once."""
    relation = exact(planning, relation, place)
    name, ttl = planning.step("distinct"), span_set(planning, TTL)
    port = planning.adding(lambda: add_distinct_rows(planning.builder, name, relation.port, ttl), place)
    return relation.at(port)


def plan_order(planning: Planning, tree: exp.Expr, relation: Relation) -> Relation:
    """ORDER BY and LIMIT: the first rows of all, or all rows in the order of their time."""
    order, limit, offset = (tree.args.get(name) for name in ("order", "limit", "offset"))
    if order is None and limit is None and offset is None:
        return relation
    skipped = 0 if offset is None else _count(planning, offset.expression)
    if limit is None:
        if offset is not None or order is None:
            raise planning.text.error(offset, "expected LIMIT beside OFFSET")
        return _sorted(planning, order, relation)
    most = _count(planning, limit.args.get("count") if isinstance(limit, exp.Fetch) else limit.expression)
    return _limited(planning, relation, order, most, skipped, tree)


def _count(planning: Planning, tree: exp.Expr | None) -> int:
    if not isinstance(tree, exp.Literal) or tree.is_string or not str(tree.this).isdigit():
        raise planning.text.error(tree, "expected a whole number in LIMIT and OFFSET")
    return int(str(tree.this))


def _terms(planning: Planning, relation: Relation, order: exp.Expr) -> tuple[Relation, tuple[Term, ...]]:
    """The order as fields; what is computed becomes a field."""
    made: list[Term] = []
    added: dict[str, Expr] = {}
    schema = planning.schema(relation.port)
    for each in order.expressions:
        inner = each.this
        if isinstance(inner, exp.Literal) and not inner.is_string:
            inner = _at(planning, relation, inner)
        expr = inner if isinstance(inner, Column) else planning.translator(relation).checked(_bare(inner), schema)[0]
        name = expr.name if isinstance(expr, Column) else fresh("order", [*schema.names, *added])
        if not isinstance(expr, Column):
            added[name] = expr
        made.append(Term(name, bool(each.args.get("desc"))))
    if added:
        columns = (*((n, Column(n)) for n in schema.names), *added.items())
        relation = relation.at(planning.add(Select(planning.step("order"), (relation.port,), columns), order))
    return relation, tuple(made)


def _bare(tree: exp.Expr) -> exp.Expr:
    """An expression over the select list, in which no column names its table."""
    holder = exp.Paren(this=tree.copy())
    for column in list(holder.find_all(exp.Column)):
        if column.table and isinstance(column.this, exp.Identifier):
            column.set("table", None)
    made: exp.Expr = holder.this
    return made


def _at(planning: Planning, relation: Relation, tree: exp.Literal) -> Column:
    try:
        return Column(relation.columns[int(str(tree.this)) - 1].field)
    except (ValueError, IndexError):
        raise planning.text.error(
            tree, f"expected a position from 1 to {len(relation.columns)}, got {tree.this}"
        ) from None


def _sorted(planning: Planning, order: exp.Expr, relation: Relation) -> Relation:
    """All rows in the order of event time."""
    relation, terms = _terms(planning, relation, order)
    time = planning.output(relation.port).event_time
    if time is None or terms[0].descending or terms[0].column not in {time.column, *relation.times}:
        raise planning.text.error(
            order,
            "expected ORDER BY a time attribute first, upwards, or LIMIT beside it: rows that still come may belong before those that were shown",
        )
    return relation.at(planning.add(Sort(planning.step("sort"), (relation.port,), (), by=terms[1:]), order))


def _limited(
    planning: Planning, relation: Relation, order: exp.Expr | None, most: int, skipped: int, place: exp.Expr
) -> Relation:
    """The first rows of all; without an order those that are smallest by their columns."""
    relation = exact(planning, relation, place) if relation.window or relation.rank else relation
    if order is not None:
        relation, terms = _terms(planning, relation, order)
    else:
        terms = tuple(Term(f.name) for f in planning.schema(relation.port).fields if not _has_parts(f))
    if most == 0:
        return relation.at(planning.add(Where(planning.step("limit"), (relation.port,), lit(False)), place))
    if not terms:
        raise planning.text.error(place, "expected a column by which rows have an order beside LIMIT")
    names = planning.schema(relation.port).names
    key, rank = fresh("all_rows", names), fresh("row_rank", names)
    columns = (*((n, Column(n)) for n in names), (key, lit(0)))
    port: Port = planning.add(Select(planning.step("all"), (relation.port,), columns), place)
    port = planning.add(Top(planning.step("limit"), (port,), (key,), n=most + skipped, by=terms, into=rank), place)
    if skipped:
        port = planning.add(Where(planning.step("offset"), (port,), Column(rank) > skipped), place)
    return replace(relation, port=port, times=frozenset(), bounds=None)


def _has_parts(field: t.Field) -> bool:
    return isinstance(field.type, t.Array | t.Map | t.Struct)
