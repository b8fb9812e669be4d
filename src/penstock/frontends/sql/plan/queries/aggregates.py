"""GROUP BY: keys, aggregates, HAVING, and the select list over them."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from typing import Any

from sqlglot import exp

from penstock.frontends.sql.expr.scope import PendingWindow, Relation, VisibleColumn
from penstock.frontends.sql.expr.translate import Swap, Translator
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.hints import ttl_of
from penstock.frontends.sql.plan.queries.aggregate_calls import aggregates_in, holds_aggregate, is_aggregate_name
from penstock.frontends.sql.plan.queries.empty_instants import at_empty_instants
from penstock.frontends.sql.plan.queries.late_values import LateValues, repeated, shown_of
from penstock.frontends.sql.plan.queries.projection import items_of, projected
from penstock.frontends.sql.plan.queries.quantified import subqueries_in, with_subqueries
from penstock.frontends.sql.plan.windows.windows import (
    AUXILIARY,
    group_window,
    is_group_window,
    settled,
    settled_group_window,
)
from penstock.graph import types as t
from penstock.graph.aggregates.calls import AggregateCall, is_aggregate
from penstock.graph.compose import KeyedInput, add_aggregate, add_total
from penstock.graph.expr import Call, Cast, Column, Expr, columns_of, lit, type_of_expr
from penstock.graph.expr.rewrite import each_of, rewritten
from penstock.graph.nodes import AggregateBy, Port, Select, Where, Window, Windows
from penstock.graph.nodes.base import ALL
from penstock.graph.nodes.relational.assigned import BOUNDS, WINDOW_TIME
from penstock.graph.nodes.window import EVENT, PROCESSING, WINDOW_END, WINDOW_START
from penstock.graph.relational.keys import plain_keys
from penstock.graph.relational.sets import GroupingSets, add_grouping_sets
from penstock.graph.relational.windows import add_window_totals
from penstock.graph.schema import Schema
from penstock.graph.windows import SessionWindow

GROUPING_ID = "grouping_id"
"""The field that says which keys a row of several grouping sets is not grouped by."""


@dataclass
class Grouping:
    """The keys and aggregates of a GROUP BY, as expressions over its input and the fields that hold them.

    `given` are the columns of windows that the step makes itself: the expression that each stands for afterwards.
    """

    keys: dict[str, Expr] = field(default_factory=dict)
    calls: dict[str, Expr] = field(default_factory=dict)
    given: dict[str, Expr] = field(default_factory=dict)

    def key_named(self, expr: Expr) -> str | None:
        """The field of a key that is the same expression."""
        return next((name for name, key in self.keys.items() if key.same(expr)), None)

    def call_named(self, expr: Expr, wanted: str) -> str:
        """The field of an aggregate; one that is there already is used again."""
        for name, call in self.calls.items():
            if call.same(expr):
                return name
        name = fresh(wanted, [*self.keys, *self.calls, *BOUNDS])
        self.calls[name] = expr
        return name

    def over(self, expr: Expr, wanted: str = "agg") -> Expr:
        """An expression over the input as one over the keys and aggregates."""
        if is_aggregate(expr):
            return Column(self.call_named(expr, wanted))

        def swap(node: Expr) -> Expr | None:
            if isinstance(node, Column) and node.name in self.given:
                return self.given[node.name]
            key = self.key_named(node)
            if key is not None:
                return Column(key)
            return Column(self.call_named(node, "agg")) if is_aggregate(node) else None

        return rewritten(expr, swap)

    @property
    def fields(self) -> set[str]:
        """The fields that are there afterwards."""
        return {*self.keys, *self.calls, *(n for e in self.given.values() for n in columns_of(e))}


def plan_aggregate(planning: Planning, tree: exp.Select, relation: Relation) -> Relation:
    """A SELECT with GROUP BY or aggregates."""
    groups, sets = grouping_sets(planning, tree, group_keys(planning, tree))
    windows = [each for each in groups if is_group_window(each)]
    if len(windows) > 1:
        raise planning.text.error(windows[1], "expected one window in GROUP BY")
    keys = [each for each in groups if not is_group_window(each)]
    for window in windows:
        relation = group_window(planning, relation, window)
    inside = [call for each in shown_of(tree) for call in aggregates_in(each, planning.catalog)]
    if windows and any(subqueries_in(each) for each in (*inside, *keys)):
        relation = settled_group_window(planning, relation, windows[0], keys)
        keys = [*keys, *(exp.column(name) for name in (WINDOW_START, WINDOW_END))]
    relation, scalars = with_subqueries(planning, relation, [*inside, *keys])
    scalars = repeated(keys, [*shown_of(tree), *(each for one in sets for each in one)], scalars)
    swap = _window_parts(planning, windows, scalars)
    if relation.window is not None and not windows and not _groups_by_window(planning, relation, groups):
        relation = settled(planning, relation, tree)
    if sets and windows:
        raise planning.text.error(
            tree.args["group"], "GROUPING SETS, ROLLUP and CUBE go with windows in FROM: TABLE(TUMBLE(TABLE t, ...))"
        )
    if sets:
        relation = settled(planning, relation, tree)
    return _Aggregate(planning, tree, relation, swap, sets).planned(keys)


def _groups_by_window(planning: Planning, relation: Relation, groups: list[exp.Expr]) -> bool:
    """Whether the windows of a table function are among the keys."""
    scope = planning.scope(relation)
    names = [scope.find(g.table, g.name, g) for g in groups if isinstance(g, exp.Column)]
    return bool({c.field for c in names if c is not None} & {WINDOW_START, WINDOW_END, WINDOW_TIME})


def _window_parts(planning: Planning, windows: list[exp.Expr], more: Swap | None) -> Swap:
    """TUMBLE_START(ts, ...) and the like, which must be of the window in GROUP BY."""

    def swap(tree: exp.Expr) -> Expr | None:
        if more is not None and (found := more(tree)) is not None:
            return found
        if isinstance(tree, exp.Anonymous) and (field := AUXILIARY.get(str(tree.this).upper())) is not None:
            if not windows or list(windows[0].expressions) != list(tree.expressions):
                raise planning.text.error(tree, f"expected the same window in GROUP BY as in {str(tree.this).upper()}")
            return Column(field)
        if windows and tree == windows[0]:
            return Column(WINDOW_START)
        return None

    return swap


@dataclass(frozen=True)
class _Aggregate:
    """A SELECT with groups, over a relation."""

    planning: Planning
    tree: exp.Select
    relation: Relation
    swap: Swap
    sets: tuple[tuple[exp.Expr, ...], ...] = ()
    """The sets of keys of GROUPING SETS, where there are several."""

    def planned(self, groups: list[exp.Expr]) -> Relation:
        """The steps: keys, aggregates, HAVING, and the select list."""
        planning, tree = self.planning, self.tree
        grouping = self.grouping(groups)
        late = LateValues.of(planning, tree, groups)
        grouping.given.update({name: Column(name) for name in late.trees})
        translator = planning.translator(
            self.relation, late.swap(self._with_grouping(grouping) if self.sets else self.swap)
        )
        items = items_of(planning, tree, self.relation, translator.expr)
        having = tree.args.get("having")
        for item in items:
            check_arguments(planning, translator, item.tree, self.schema())
        over = [grouping.over(item.expr, _plain(item.name)) for item in items]
        condition = None if having is None else grouping.over(translator.expr(having.this))
        for item, made in zip(items, over, strict=True):
            check_grouped(planning, grouping, made, item.tree)
        operands = late.operands(lambda each: self.checked_over(grouping, translator.expr(each), each))
        port = at_empty_instants(planning, tree, grouping.calls, self.added(grouping))
        port, values = late.joined(planning, self.relation, grouping.keys, port, operands)
        over = [rewritten(each, values) for each in over]
        if condition is not None and having is not None:
            check_grouped(planning, grouping, condition, having)
            port = planning.add(Where(planning.step("having"), (port,), rewritten(condition, values)), having)
        fields = planning.schema(port).names
        bounds = (WINDOW_START, WINDOW_END) if self.is_windowed(grouping) and WINDOW_START in fields else None
        grouped = Relation(port, tuple(VisibleColumn("", n, n) for n in fields), bounds=bounds, times=self.times(port))
        last = grouping.given.get(WINDOW_TIME)
        made_items = [
            replace(item, expr=made, is_time=last is not None and made.same(last))
            for item, made in zip(items, over, strict=True)
        ]
        return projected(planning, grouped, made_items, tree)

    def checked_over(self, grouping: Grouping, made: Expr, place: exp.Expr) -> Expr:
        """An expression over the input as one over the groups, which it may read."""
        over = grouping.over(made)
        check_grouped(self.planning, grouping, over, place)
        return over

    def _with_grouping(self, grouping: Grouping) -> Swap:
        """GROUPING(a, b) and GROUPING_ID(a, b): a bit for each key that a row is not grouped by."""
        keys = list(grouping.keys)
        grouping.given[GROUPING_ID] = Column(GROUPING_ID)
        plain = self.planning.translator(self.relation, self.swap)

        def swap(tree: exp.Expr) -> Expr | None:
            if not isinstance(tree, exp.Anonymous) or str(tree.this).upper() not in ("GROUPING", "GROUPING_ID"):
                return self.swap(tree)
            made: Expr = lit(0)
            for each in tree.expressions:
                name = grouping.key_named(plain.expr(each))
                if name is None:
                    raise self.planning.text.error(each, "expected a key of GROUP BY in GROUPING")
                bit = Call(
                    "%", (Call("div", (Column(GROUPING_ID), lit(1 << (len(keys) - 1 - keys.index(name))))), lit(2))
                )
                made = Call("+", (Call("*", (made, lit(2))), bit))
            return Cast(made, t.BIGINT)

        return swap

    def schema(self) -> Schema:
        """The fields that aggregates may read, those of windows among them."""
        schema = self.planning.schema(self.relation.port)
        if self.relation.window is None:
            return schema
        return schema.with_fields(tuple(t.Field(n, t.TIMESTAMP) for n in BOUNDS))

    def times(self, port: Port) -> frozenset[str]:
        """The fields that hold the time of a window."""
        names = self.planning.schema(port).names
        return frozenset(n for n in (WINDOW_TIME, *self.relation.times) if n in names)

    def grouping(self, groups: list[exp.Expr]) -> Grouping:
        """The keys of the groups."""
        planning, made = self.planning, Grouping()
        translator = planning.translator(self.relation, self.swap)
        if self.relation.window is not None:
            last = Call("-", (Column(WINDOW_END), lit(datetime.timedelta(milliseconds=1))))
            made.given = {WINDOW_START: Column(WINDOW_START), WINDOW_END: Column(WINDOW_END), WINDOW_TIME: last}
        for each in groups:
            expr, _ = translator.checked(each, self.schema())
            if isinstance(expr, Column) and expr.name in made.given:
                continue
            if any(is_aggregate(e) for e in each_of(expr)):
                raise planning.text.error(each, "expected a key in GROUP BY, got an aggregate")
            if made.key_named(expr) is None:
                made.keys[fresh(self.key_name(expr, each), [*made.keys, *made.given])] = expr
        return made

    def key_name(self, expr: Expr, tree: exp.Expr) -> str:
        """The name of the field of a key; the bounds of windows keep theirs."""
        if self.relation.bounds is not None and isinstance(expr, Column) and expr.name in self.relation.bounds:
            return (WINDOW_START, WINDOW_END)[self.relation.bounds.index(expr.name)]
        return expr.name if isinstance(expr, Column) else _alias_of(self.tree, tree) or "key"

    def is_windowed(self, grouping: Grouping) -> bool:
        """Whether the groups are final when event time has passed their window."""
        if self.relation.window is not None:
            return True
        bounds, keys = self.relation.bounds, [e.name for e in grouping.keys.values() if isinstance(e, Column)]
        timed = self.planning.output(self.relation.port).event_time
        return bounds is not None and timed is not None and bounds[1] in keys

    def added(self, grouping: Grouping) -> Port:
        """The step of the aggregates."""
        calls = dict(grouping.calls) or {fresh("rows", grouping.fields): Call("count", (), star=True)}
        if not self.sets:
            grouping, calls = self.plain(grouping, calls)
        written = tuple(AggregateCall(name, call) for name, call in calls.items())
        planning, port = self.planning, self.relation.port
        if self.relation.window is not None:
            return self._windowed(grouping, calls, written, self.relation.window)
        if not grouping.keys:
            name = planning.step("total")
            return planning.adding(lambda: add_total(planning.builder, name, port, written, always=True), self.tree)
        port = _keyed(planning, port, grouping, calls, self.tree)
        if self.sets:
            return self._by_sets(port, grouping, written)
        if self.is_windowed(grouping):
            name, keyed = planning.step("group"), KeyedInput(port, tuple(grouping.keys))
            return planning.adding(lambda: add_window_totals(planning.builder, name, keyed, written), self.tree)
        ttl = ttl_of(planning, self.tree)
        step = AggregateBy(planning.step("group"), (port,), tuple(grouping.keys), calls=written, ttl=ttl)
        return planning.add(step, self.tree)

    def plain(self, grouping: Grouping, calls: dict[str, Expr]) -> tuple[Grouping, dict[str, Expr]]:
        """The groups by plain keys: a number that is not exact, or a row, is the same in a group as what stands for it, and so an aggregate."""
        made, values, schema = Grouping(given=grouping.given), dict[str, Expr](), self.schema()
        for name, key in grouping.keys.items():
            kind = type_of_expr(key, schema)
            keys = plain_keys(key, kind)
            if len(keys) == 1 and keys[0] is key:
                made.keys[name] = key
                continue
            for each in keys:
                made.keys[fresh(f"{name}_key", [*grouping.fields, *made.keys])] = each
            values[name] = Call("max_by", (_exact_zero(key, kind), lit(0)))
        return made, {**calls, **values}

    def _by_sets(self, port: Port, grouping: Grouping, calls: tuple[AggregateCall, ...]) -> Port:
        """Aggregates by several sets of keys at once."""
        planning = self.planning
        translator = planning.translator(self.relation, self.swap)
        fields = tuple(grouping.keys)
        named = tuple(tuple(grouping.key_named(translator.expr(e)) or "" for e in each) for each in self.sets)
        name = planning.step("group")
        groups = GroupingSets(fields, named)
        final = self.is_windowed(grouping) and all(WINDOW_END in each for each in named)
        add = add_window_totals if final else add_aggregate
        return planning.adding(
            lambda: add_grouping_sets(planning.builder, name, port, groups, calls, GROUPING_ID, add), self.tree
        )

    def _windowed(
        self, grouping: Grouping, calls: dict[str, Expr], written: tuple[AggregateCall, ...], pending: PendingWindow
    ) -> Port:
        """A window step directly over the rows, which need not be written out once for each window."""
        planning, keys = self.planning, tuple(grouping.keys)
        if isinstance(pending.spec, SessionWindow) and pending.partition != ("*",):
            own = {e.name for e in grouping.keys.values() if isinstance(e, Column)}
            if own != set(pending.partition):
                shown = ", ".join(keys) or "nothing"
                raise planning.text.error(
                    pending.place,
                    f"expected SESSION(TABLE t PARTITION BY {shown}, ...), since the query groups by {shown}",
                )
        port = _keyed(planning, self.relation.port, grouping, calls, self.tree)
        name = planning.step("window")
        keyed = KeyedInput(port, keys) if keys else KeyedInput(port, (ALL,), ((ALL, lit(0)),))
        windows = Windows(pending.spec, clock=EVENT if pending.time else PROCESSING)
        stream = planning.adding(lambda: keyed.stream(planning.builder, name), self.tree)
        return planning.add(Window(name, (stream,), keyed.keys, calls=written, windows=windows), self.tree)


def check_arguments(planning: Planning, translator: Translator, tree: exp.Expr, schema: Schema) -> None:
    """The arguments of aggregates fit the fields; what does not is shown at its place."""
    for call in tree.find_all(exp.Anonymous):
        if is_aggregate_name(str(call.this), planning.catalog) and call.find_ancestor(exp.Query) is tree.find_ancestor(
            exp.Query
        ):
            for each in call.expressions:
                inner = each.expressions if isinstance(each, exp.Distinct) else [each]
                for argument in inner:
                    if not isinstance(argument, exp.Star) and not holds_aggregate(argument, planning.catalog):
                        translator.checked(argument, schema)


def _exact_zero(key: Expr, kind: t.DataType) -> Expr:
    """A key as it is shown: of -0.0 and 0.0, which are one group, always the same."""
    return Call("+", (key, Cast(lit(0.0), kind))) if kind in (t.FLOAT, t.DOUBLE) else key


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


def grouping_sets(
    planning: Planning, tree: exp.Select, groups: list[exp.Expr]
) -> tuple[list[exp.Expr], tuple[tuple[exp.Expr, ...], ...]]:
    """All keys of GROUP BY, and the sets of them where there are GROUPING SETS, ROLLUP or CUBE."""
    if not any(isinstance(g, exp.GroupingSets | exp.Rollup | exp.Cube) for g in groups):
        return groups, ()
    sets: list[tuple[exp.Expr, ...]] = [()]
    for each in groups:
        sets = [(*one, *other) for one in sets for other in _sets_of(each)]
        if len(sets) > MOST_SETS:
            raise planning.text.error(tree.args["group"], f"expected at most {MOST_SETS} grouping sets, got more")
    keys: list[exp.Expr] = []
    for one in sets:
        keys += [key for key in one if not any(key == known for known in keys)]
    return keys, tuple(sets)


MOST_SETS = 128
"""As many grouping sets as a query may have: every row is counted once for each."""


def _sets_of(tree: exp.Expr) -> list[tuple[exp.Expr, ...]]:
    """The sets that one item of GROUP BY stands for."""
    if isinstance(tree, exp.GroupingSets):
        return [one for each in tree.expressions for one in _sets_of(each)]
    parts = [_members(each) for each in tree.expressions] if isinstance(tree, exp.Rollup | exp.Cube) else []
    if isinstance(tree, exp.Rollup):
        return [tuple(k for part in parts[:n] for k in part) for n in range(len(parts), -1, -1)]
    if isinstance(tree, exp.Cube):
        picks = range(2 ** min(len(parts), 8) - 1, -1, -1)
        return [tuple(k for at, part in enumerate(parts) if pick >> at & 1 for k in part) for pick in picks]
    return [_members(tree)]


def _members(tree: exp.Expr) -> tuple[exp.Expr, ...]:
    if isinstance(tree, exp.Tuple):
        return tuple(tree.expressions)
    return (tree.this,) if isinstance(tree, exp.Paren) else (tree,)


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
    only = aliases[0] if len(aliases) == 1 and _is_new(aliases[0]) else None
    return each if only is None or holds_aggregate(only.this, planning.catalog) else only.this


def _is_new(alias: exp.Alias) -> bool:
    """Whether an alias names an expression that does not itself read a column of that name."""
    return all(c.name.lower() != alias.alias.lower() for c in alias.this.find_all(exp.Column))


def check_grouped(planning: Planning, grouping: Grouping, made: Expr, place: exp.Expr) -> None:
    """Refuses columns that are neither a key nor inside of an aggregate."""
    known = grouping.fields
    loose = next((name for name in columns_of(made) if name not in known), None)
    if loose is not None and loose.startswith("__now"):
        raise planning.text.error(place, "the processing time must be in GROUP BY, or be asked for in a query below it")
    if loose is not None:
        at = next((c for c in place.find_all(exp.Column) if c.name.lower() == loose.lower()), place)
        raise planning.text.error(at, f"column {loose!r} must be in GROUP BY or inside of an aggregate")


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
