"""SELECT: FROM, WHERE, GROUP BY, HAVING, the select list, DISTINCT, QUALIFY, ORDER BY and LIMIT, in this order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.aggregates import is_aggregated, plan_aggregate
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.from_clause import plan_relation
from penstock.frontends.sql.plan.joins import plan_join
from penstock.frontends.sql.plan.query import QUERIES
from penstock.graph.expr import Column, Expr
from penstock.graph.nodes import Distinct, Select, Where
from penstock.graph.nodes.base import follow

_REFUSED = (
    "laterals",
    "into",
    "cluster",
    "distribute",
    "sort",
    "connect",
    "sample",
    "locks",
    "prewhere",
    "pivots",
    "settings",
    "format",
)


def plan_select(planning: Planning, tree: exp.Select) -> Relation:
    """The relation of a SELECT."""
    for name in _REFUSED:
        if tree.args.get(name):
            raise planning.text.error(tree, f"{name.upper()} has no meaning here")
    relation = plan_from(planning, tree)
    relation = plan_where(planning, tree, relation)
    if is_aggregated(tree):
        relation = plan_aggregate(planning, tree, relation)
    else:
        relation = plan_projection(planning, tree, relation)
    return plan_tail(planning, tree, relation)


def plan_from(planning: Planning, tree: exp.Select) -> Relation:
    """FROM and its joins."""
    given = tree.args.get("from_")
    if given is None:
        raise planning.text.error(tree, "expected FROM; a query without it has no rows to read, use VALUES")
    relation = plan_relation(planning, given.this)
    for join in tree.args.get("joins") or ():
        relation = plan_join(planning, relation, join)
    return relation


def plan_where(planning: Planning, tree: exp.Select, relation: Relation) -> Relation:
    """WHERE: the rows for which a condition is true."""
    given = tree.args.get("where")
    return relation if given is None else filtered(planning, relation, given.this, "where")


def filtered(planning: Planning, relation: Relation, condition: exp.Expr, part: str) -> Relation:
    """The rows of a relation for which a condition is true."""
    made, _ = planning.translator(relation).checked(condition, planning.schema(relation.port))
    return relation.at(planning.add(Where(planning.step(part), (relation.port,), made), condition))


@dataclass(frozen=True)
class Item:
    """A column of the select list: its name and where it comes from."""

    name: str
    tree: exp.Expr
    expr: Expr


def items_of(
    planning: Planning, tree: exp.Select, relation: Relation, translate: Callable[[exp.Expr], Expr]
) -> list[Item]:
    """The select list, with `*` written out; names are made unique."""
    made: list[Item] = []
    for each in tree.expressions:
        if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
            made += _starred(planning, relation, each)
        else:
            made.append(Item(_name(each, len(made)), each, translate(each)))
    names: list[str] = []
    for at, item in enumerate(made):
        names.append(fresh(item.name, names))
        made[at] = replace(item, name=names[-1])
    return made


def _starred(planning: Planning, relation: Relation, tree: exp.Expr) -> list[Item]:
    owner = tree.table if isinstance(tree, exp.Column) else ""
    star = tree.this if isinstance(tree, exp.Column) else tree
    left_out = {c.name.lower() for c in (star.args.get("except_") or ())}
    columns = [c for c in relation.columns if not c.hidden and (not owner or c.qualifier.lower() == owner.lower())]
    if not columns:
        raise planning.scope(relation).unknown(owner, "*", tree)
    return [
        Item(c.name, tree, Column(c.field))
        for c in columns
        if c.name.lower() not in left_out and c.field not in relation.clocks
    ]


def _name(tree: exp.Expr, at: int) -> str:
    if isinstance(tree, exp.Alias):
        return str(tree.alias)
    if isinstance(tree, exp.Column | exp.Dot):
        return str(tree.name)
    return f"EXPR${at}"


def plan_projection(planning: Planning, tree: exp.Select, relation: Relation) -> Relation:
    """The select list without aggregates."""
    translator, schema = planning.translator(relation), planning.schema(relation.port)
    items = items_of(planning, tree, relation, lambda each: translator.checked(each, schema)[0])
    return projected(planning, relation, items, tree)


def projected(planning: Planning, relation: Relation, items: list[Item], place: exp.Expr) -> Relation:
    """The columns of a select list; the event time goes on even where it is not among them."""
    columns = {item.name: item.expr for item in items}
    output = planning.output(relation.port)
    hidden: dict[str, Expr] = {}
    times = frozenset(i.name for i in items if isinstance(i.expr, Column) and i.expr.name in relation.times)
    if output.event_time is not None and times and follow(output.event_time.column, columns) is None:
        hidden[fresh(output.event_time.column, columns)] = Column(output.event_time.column)
    made = {**columns, **hidden}
    visible = tuple(VisibleColumn("", item.name, item.name) for item in items)
    if list(made) == list(output.schema.names) and all(isinstance(e, Column) and e.name == n for n, e in made.items()):
        return Relation(relation.port, visible, times=times)
    port = planning.add(Select(planning.step("select"), (relation.port,), tuple(made.items())), place)
    return Relation(port, visible, times=times)


def plan_tail(planning: Planning, tree: exp.Select, relation: Relation) -> Relation:
    """DISTINCT."""
    if tree.args.get("distinct") is None:
        return relation
    relation = exact(planning, relation, tree)
    keys = tuple(c.field for c in relation.columns)
    return relation.at(planning.add(Distinct(planning.step("distinct"), (relation.port,), keys), tree))


def exact(planning: Planning, relation: Relation, place: exp.Expr) -> Relation:
    """A relation whose stream has its columns and no other fields, under the names that the query gives them."""
    wanted = tuple((c.name, Column(c.field)) for c in relation.columns)
    if planning.schema(relation.port).names == tuple(n for n, _ in wanted) and all(n == e.name for n, e in wanted):
        return relation
    port = planning.add(Select(planning.step("columns"), (relation.port,), wanted), place)
    return Relation(port, tuple(replace(c, field=c.name) for c in relation.columns))


QUERIES[exp.Select] = plan_select
