"""The select list: names, `*`, and the step that picks the columns."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.relations.tables import is_clock
from penstock.frontends.sql.text.source import Place
from penstock.graph.expr import Column, Expr
from penstock.graph.nodes import Select
from penstock.graph.nodes.base import follow


@dataclass(frozen=True)
class Item:
    """A column of the select list: its name, where it comes from, and whether it is processing time."""

    name: str
    tree: exp.Expr
    expr: Expr
    clock: bool = False
    is_time: bool = False
    """Whether it is the event time of the stream, though not the field that holds it."""
    hidden: bool = False
    """Whether it is there for ORDER BY alone."""


def items_of(
    planning: Planning, tree: exp.Select, relation: Relation, translate: Callable[[exp.Expr], Expr]
) -> list[Item]:
    """The select list, with `*` written out; names are made unique."""
    made: list[Item] = []
    for each in tree.expressions:
        inner = each.this if isinstance(each, exp.Alias) else each
        if isinstance(each, exp.Star) or (isinstance(each, exp.Column) and isinstance(each.this, exp.Star)):
            made += starred(planning, relation, each)
        elif is_clock(inner) or _is_clock_column(planning, relation, inner):
            made.append(Item(name_of(each, len(made)), each, Column("PROCTIME()"), clock=True))
        else:
            made.append(Item(name_of(each, len(made)), each, translate(each)))
    return unique(made)


def with_order(
    tree: exp.Select, items: list[Item], relation: Relation, planning: Planning, translate: Callable[[exp.Expr], Expr]
) -> list[Item]:
    """The select list, and columns of ORDER BY that are not in it."""
    order = tree.args.get("order")
    if order is None or tree.args.get("distinct") is not None:
        return items
    names = {item.name.lower() for item in items}
    added: list[Item] = []
    for each in (e.this for e in order.expressions):
        for column in each.find_all(exp.Column):
            known = column.name.lower() in names and not column.table
            if not known and planning.scope(relation).find(column.table, column.name, column) is not None:
                names.add(column.name.lower())
                added.append(Item(column.name, column, translate(column), hidden=True))
    return unique([*items, *added])


def unique(items: list[Item]) -> list[Item]:
    """Columns under names that differ."""
    names: list[str] = []
    for item in items:
        names.append(fresh(item.name, names))
    return [replace(item, name=name) for item, name in zip(items, names, strict=True)]


def _is_clock_column(planning: Planning, relation: Relation, tree: exp.Expr) -> bool:
    if not relation.clocks or not isinstance(tree, exp.Column) or not isinstance(tree.this, exp.Identifier):
        return False
    found = planning.scope(relation).find(tree.table, tree.name, tree)
    return found is not None and found.field in relation.clocks


def starred(planning: Planning, relation: Relation, tree: exp.Expr) -> list[Item]:
    """`*` or `t.*` as columns."""
    owner = tree.table if isinstance(tree, exp.Column) else ""
    star = tree.this if isinstance(tree, exp.Column) else tree
    left_out = {c.name.lower() for c in (star.args.get("except_") or ())}
    columns = [c for c in relation.columns if not c.hidden and (not owner or c.qualifier.lower() == owner.lower())]
    if not columns:
        raise planning.scope(relation).unknown(owner, "*", tree)
    return [
        Item(c.name, tree, Column(c.field), clock=c.field in relation.clocks)
        for c in columns
        if c.name.lower() not in left_out
    ]


def name_of(tree: exp.Expr, at: int) -> str:
    """The name of a column of the select list."""
    if isinstance(tree, exp.Alias):
        return str(tree.alias)
    if isinstance(tree, exp.Column | exp.Dot):
        return str(tree.name)
    return f"EXPR${at}"


def projected(planning: Planning, relation: Relation, items: list[Item], place: Place) -> Relation:
    """The columns of a select list; the event time goes on even where it is not among them."""
    if not items:
        raise planning.text.error(place, "expected columns between SELECT and FROM, got none; all of them are *")
    if all(item.clock for item in items):
        raise planning.text.error(
            place, "expected a column beside processing time, which is known in windows and joins alone"
        )
    columns = {item.name: item.expr for item in items if not item.clock}
    output = planning.output(relation.port)
    times = frozenset(
        i.name for i in items if i.is_time or (isinstance(i.expr, Column) and i.expr.name in relation.times)
    )
    bounds = _bounds(relation, columns)
    hidden: dict[str, Expr] = {}
    if output.event_time is not None and (times or bounds) and follow(output.event_time.column, columns) is None:
        hidden[fresh(output.event_time.column, columns)] = Column(output.event_time.column)
    made = {**columns, **hidden}
    visible = tuple(VisibleColumn("", item.name, item.name, item.hidden) for item in items)
    clocks = frozenset(item.name for item in items if item.clock)
    port = relation.port
    if not same_fields(made.items(), output.schema.names):
        port = planning.add(Select(planning.step("select"), (relation.port,), tuple(made.items())), place)
    return Relation(port, visible, times=times, clocks=clocks, bounds=bounds)


def same_fields(columns: Iterable[tuple[str, Expr]], names: tuple[str, ...]) -> bool:
    """Whether columns are the fields of a stream as they are."""
    listed = list(columns)
    return tuple(n for n, _ in listed) == names and all(isinstance(e, Column) and e.name == n for n, e in listed)


def _bounds(relation: Relation, columns: dict[str, Expr]) -> tuple[str, str] | None:
    if relation.bounds is None:
        return None
    start, end = (follow(each, columns) for each in relation.bounds)
    return None if start is None or end is None else (start, end)
