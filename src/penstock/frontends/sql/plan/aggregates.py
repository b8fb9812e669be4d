"""GROUP BY: keys, aggregates, HAVING, and the select list over them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sqlglot import exp

from penstock.errors import ExpressionError
from penstock.frontends.sql.expr.functions import OTHER_NAMES
from penstock.frontends.sql.expr.scope import Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.graph.aggregates.aggregate import RECIPES
from penstock.graph.aggregates.calls import AggregateCall, is_aggregate
from penstock.graph.compose import add_total
from penstock.graph.expr import AGGREGATES, Call, Column, Expr, columns_of
from penstock.graph.expr.rewrite import each_of, rewritten
from penstock.graph.nodes import AggregateBy, Port, Select, Where


def is_aggregate_name(name: str) -> bool:
    """Whether a function is an aggregate."""
    plain = OTHER_NAMES.get(name.lower(), name.lower())
    return plain in AGGREGATES or plain in RECIPES


def is_aggregated(tree: exp.Select) -> bool:
    """Whether a SELECT has GROUP BY, HAVING or aggregates of its own."""
    if tree.args.get("group") is not None or tree.args.get("having") is not None:
        return True
    return any(_holds_aggregate(each) for each in tree.expressions)


def _holds_aggregate(tree: exp.Expr) -> bool:
    if isinstance(tree, exp.Window | exp.Query):
        return False
    if isinstance(tree, exp.Anonymous) and is_aggregate_name(str(tree.this)):
        return True
    return any(_holds_aggregate(part) for part in tree.iter_expressions())


@dataclass
class Grouping:
    """The keys and aggregates of a GROUP BY, as expressions over its input and the fields that hold them."""

    keys: dict[str, Expr] = field(default_factory=dict)
    calls: dict[str, Expr] = field(default_factory=dict)

    def key_named(self, expr: Expr) -> str | None:
        """The field of a key that is the same expression."""
        return next((name for name, key in self.keys.items() if key.same(expr)), None)

    def call_named(self, expr: Expr, wanted: str) -> str:
        """The field of an aggregate; one that is there already is used again."""
        for name, call in self.calls.items():
            if call.same(expr):
                return name
        name = fresh(wanted, [*self.keys, *self.calls])
        self.calls[name] = expr
        return name

    def over(self, expr: Expr, wanted: str = "agg") -> Expr:
        """An expression over the input as one over the keys and aggregates."""
        if is_aggregate(expr):
            return Column(self.call_named(expr, wanted))

        def swap(node: Expr) -> Expr | None:
            key = self.key_named(node)
            if key is not None:
                return Column(key)
            return Column(self.call_named(node, "agg")) if is_aggregate(node) else None

        return rewritten(expr, swap)


def plan_aggregate(planning: Planning, tree: exp.Select, relation: Relation) -> Relation:
    """A SELECT with GROUP BY or aggregates."""
    from penstock.frontends.sql.plan.select import items_of, projected

    translator = planning.translator(relation)
    grouping = Grouping()
    for each in group_keys(planning, tree):
        made, _ = translator.checked(each, planning.schema(relation.port))
        if any(is_aggregate(e) for e in each_of(made)):
            raise planning.text.error(each, "expected a key in GROUP BY, got an aggregate")
        if grouping.key_named(made) is None:
            wanted = made.name if isinstance(made, Column) else _alias_of(tree, each) or "key"
            grouping.keys[fresh(wanted, grouping.keys)] = made
    items = items_of(planning, tree, relation, translator.expr)
    having = tree.args.get("having")
    rewritten_items = [(item, grouping.over(item.expr, _plain(item.name))) for item in items]
    condition = None if having is None else grouping.over(translator.expr(having.this))
    for item, made in rewritten_items:
        check_grouped(planning, grouping, made, item.tree)
    if condition is not None and having is not None:
        check_grouped(planning, grouping, condition, having)
    port = add_aggregate(planning, relation.port, grouping, tree)
    if condition is not None:
        port = planning.add(Where(planning.step("having"), (port,), condition), having)
    schema = planning.schema(port)
    grouped = Relation(port, tuple(VisibleColumn("", n, n) for n in schema.names))
    made_items = [_with(item, made) for item, made in rewritten_items]
    return projected(planning, grouped, made_items, tree)


def _with(item: Any, made: Expr) -> Any:
    from dataclasses import replace

    return replace(item, expr=made)


def _plain(name: str) -> str:
    return "agg" if name.startswith("EXPR$") else name


def _alias_of(tree: exp.Select, key: exp.Expr) -> str:
    same = (e for e in tree.expressions if isinstance(e, exp.Alias) and e.this == key)
    return next((str(e.alias) for e in same), "")


def group_keys(planning: Planning, tree: exp.Select) -> list[exp.Expr]:
    """The keys of GROUP BY: expressions, names of the select list, or its positions."""
    group = tree.args.get("group")
    if group is None:
        return []
    made = []
    for each in group.expressions:
        if isinstance(each, exp.Literal) and not each.is_string:
            made.append(_at_position(planning, tree, each))
        else:
            made.append(_by_alias(planning, tree, each))
    return made


def _at_position(planning: Planning, tree: exp.Select, each: exp.Literal) -> Any:
    try:
        found = tree.expressions[int(str(each.this)) - 1]
    except (ValueError, IndexError):
        raise planning.text.error(
            each, f"expected a position from 1 to {len(tree.expressions)} of the select list, got {each.this}"
        ) from None
    return found.this if isinstance(found, exp.Alias) else found


def _by_alias(planning: Planning, tree: exp.Select, each: exp.Expr) -> Any:
    if not isinstance(each, exp.Column) or each.table:
        return each
    aliases = [e for e in tree.expressions if isinstance(e, exp.Alias) and e.alias.lower() == each.name.lower()]
    return (
        aliases[0].this if len(aliases) == 1 and not _holds_aggregate(aliases[0].this) and _is_new(aliases[0]) else each
    )


def _is_new(alias: exp.Alias) -> bool:
    """Whether an alias names an expression that does not itself read a column of that name."""
    return all(c.name.lower() != alias.alias.lower() for c in alias.this.find_all(exp.Column))


def check_grouped(planning: Planning, grouping: Grouping, made: Expr, place: exp.Expr) -> None:
    """Refuses columns that are neither a key nor inside of an aggregate."""
    known = {*grouping.keys, *grouping.calls}
    loose = next((name for name in columns_of(made) if name not in known), None)
    if loose is not None:
        at = next((c for c in place.find_all(exp.Column) if c.name.lower() == loose.lower()), place)
        raise planning.text.error(at, f"column {loose!r} must stand in GROUP BY or inside of an aggregate")


def add_aggregate(planning: Planning, port: Port, grouping: Grouping, place: exp.Expr) -> Port:
    """The steps of a GROUP BY: one that computes the keys, where some are no fields, and the aggregates."""
    calls = dict(grouping.calls) or {fresh("rows", grouping.keys): Call("count", (), star=True)}
    written = tuple(AggregateCall(name, call) for name, call in calls.items())
    if not grouping.keys:
        return _total(planning, port, written, place)
    port = _keyed(planning, port, grouping, calls, place)
    return planning.add(AggregateBy(planning.step("group"), (port,), tuple(grouping.keys), calls=written), place)


def _total(planning: Planning, port: Port, calls: tuple[AggregateCall, ...], place: exp.Expr) -> Port:
    try:
        return add_total(planning.builder, planning.step("total"), port, calls)
    except ExpressionError as error:
        raise planning.text.error(place, str(error)) from None


def _keyed(planning: Planning, port: Port, grouping: Grouping, calls: dict[str, Expr], place: exp.Expr) -> Port:
    """The input with its keys as fields, and whatever else the aggregates read."""
    if all(isinstance(e, Column) and e.name == n for n, e in grouping.keys.items()):
        return port
    needed = frozenset().union(*(columns_of(call) for call in calls.values()))
    output = planning.output(port)
    if output.event_time is not None:
        needed |= {output.event_time.column}
    columns = {**{n: Column(n) for n in output.schema.names if n in needed and n not in grouping.keys}, **grouping.keys}
    for name in needed & set(grouping.keys):
        if not grouping.keys[name].same(Column(name)):
            raise planning.text.error(
                place, f"{name!r} is both a key and a column that an aggregate reads; rename the key"
            )
    return planning.add(Select(planning.step("keys"), (port,), tuple(columns.items())), place)
