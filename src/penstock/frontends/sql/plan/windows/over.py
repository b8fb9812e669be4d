"""OVER windows of any kind: aggregates over a frame of rows, ranks, earlier and later rows."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sqlglot import exp

from penstock.frontends.sql.expr.intervals import micros_of
from penstock.frontends.sql.expr.scope import Relation
from penstock.frontends.sql.expr.translate import Swap, Translator
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.queries.projection import items_of, projected, with_order
from penstock.frontends.sql.plan.windows.ranking import NUMBER_ALL, OVER
from penstock.graph.aggregates.calls import AggregateCall
from penstock.graph.compose import KeyedInput
from penstock.graph.expr import Call, Column, Expr
from penstock.graph.nodes import Frame, Select, Where
from penstock.graph.order import Term
from penstock.graph.relational.keys import plain_keys
from penstock.graph.relational.over import add_over

FUNCTIONS = {
    *("row_number", "rank", "dense_rank", "ntile", "percent_rank", "cume_dist"),
    *("lag", "lead", "first_value", "last_value", "nth_value"),
}
"""Functions that are known over rows alone, or mean something else there."""


@dataclass
class _Frames:
    """The OVER windows of one select list."""

    planning: Planning
    tree: exp.Select
    relation: Relation
    swap: Swap | None
    values: list[tuple[exp.Window, str]] = field(default_factory=list)

    def planned(self, windows: list[exp.Window]) -> Relation:
        """A step for each frame, with all functions over it."""
        groups: dict[str, list[exp.Window]] = {}
        for window in windows:
            whole = self.whole(window)
            shape = repr([whole.args.get(n) for n in ("partition_by", "order", "spec")])
            if not any(window == known for known in groups.setdefault(shape, [])):
                groups[shape].append(window)
        for same in groups.values():
            self.step(same)
        return self.relation

    def whole(self, window: exp.Window) -> exp.Window:
        """A window as WINDOW w AS (...) says it, where it is only named."""
        alias = window.args.get("alias")
        if alias is None:
            return window
        for each in self.tree.args.get("windows") or ():
            if each.this.name.lower() == alias.name.lower():
                made = window.copy()
                for name in ("partition_by", "order", "spec"):
                    made.set(name, each.args.get(name))
                return made
        raise self.planning.text.error(window, f"no window {alias.name!r}; say WINDOW {alias.name} AS (...)")

    def step(self, windows: list[exp.Window]) -> None:
        """The functions of one frame."""
        planning, first = self.planning, self.whole(windows[0])
        arrival, terms = self.order(first)
        keys = tuple(key for each in first.args.get("partition_by") or () for key in self.partition(each))
        frame = frame_of(planning, first)
        calls = tuple(self.call(window) for window in windows)
        keyed, name = KeyedInput(self.relation.port, keys), planning.step("over")
        port = planning.adding(
            lambda: add_over(planning.builder, name, keyed, calls, by=terms, frame=frame, arrival=arrival), windows[0]
        )
        self.relation = self.relation.at(port)

    def call(self, window: exp.Window) -> AggregateCall:
        """The function of a window, under a field of its own."""
        name = fresh("over", [*self.planning.schema(self.relation.port).names, *(n for _, n in self.values)])
        self.values.append((window, name))
        inner = window.this
        called = inner.this if isinstance(inner, exp.Filter) else inner
        translator = self.translator()
        plain = str(called.this).lower() if isinstance(called, exp.Anonymous) else ""
        if plain in FUNCTIONS:
            made: Expr = Call(plain, tuple(map(translator.expr, called.expressions)))
        else:
            made = translator.expr(inner)
        return AggregateCall(name, made)

    def translator(self) -> Translator:
        """Expressions over the rows."""
        return self.planning.translator(self.relation, self.swap)

    def order(self, window: exp.Window) -> tuple[bool, tuple[Term, ...]]:
        """Whether rows go in the order of arrival, or else their order."""
        order = window.args.get("order")
        terms: list[Term] = []
        for each in order.expressions if order is not None else ():
            inner = each.this
            if isinstance(inner, exp.Column):
                found = self.planning.scope(self.relation).find(inner.table, inner.name, inner)
                if found is not None and found.field in self.relation.clocks:
                    return True, ()
            terms.append(Term(self.named(inner, "order"), bool(each.args.get("desc"))))
        return False, tuple(terms)

    def partition(self, tree: exp.Expr) -> list[str]:
        """The fields of a key of PARTITION BY; a number that is not exact, or a row, has plain values that stand for it."""
        keys = plain_keys(*self.translator().checked(tree, self.planning.schema(self.relation.port)))
        return [self.held(key, tree, "key") for key in keys]

    def named(self, tree: exp.Expr, wanted: str) -> str:
        """The field of an expression; what is computed becomes a field."""
        made, _ = self.translator().checked(tree, self.planning.schema(self.relation.port))
        return self.held(made, tree, wanted)

    def held(self, made: Expr, tree: exp.Expr, wanted: str) -> str:
        """The field that holds a value."""
        schema = self.planning.schema(self.relation.port)
        if isinstance(made, Column):
            return made.name
        name = fresh(wanted, schema.names)
        columns = (*((n, Column(n)) for n in schema.names), (name, made))
        node = Select(self.planning.step("over-by"), (self.relation.port,), columns)
        self.relation = self.relation.at(self.planning.add(node, tree))
        return name

    def swapped(self, tree: exp.Expr) -> Expr | None:
        """What a window stands for in the select list."""
        if isinstance(tree, exp.Window):
            return next((Column(name) for window, name in self.values if window == tree), None)
        return self.swap(tree) if self.swap is not None else None


def frame_of(planning: Planning, window: exp.Window) -> Frame | None:
    """The frame of a window; None where it is the usual one."""
    spec = window.args.get("spec")
    if spec is None:
        return None
    unit = str(spec.args.get("kind") or "").lower()
    if unit not in ("rows", "range"):
        raise planning.text.error(window, f"expected ROWS or RANGE, got {unit.upper()}")
    ends = []
    for name in ("start", "end"):
        given, side = spec.args.get(name), str(spec.args.get(f"{name}_side") or "").upper()
        ends.append(_distance(planning, window, given if given is not None else "CURRENT ROW", side, name, unit))
    if ends[0] is not None and ends[1] is not None and ends[0] + ends[1] < 0:
        raise planning.text.error(window, "expected a frame that ends after it begins")
    return Frame(unit, ends[0], ends[1])


def _distance(
    planning: Planning, window: exp.Window, given: exp.Expr | str, side: str, name: str, unit: str
) -> int | None:
    """How far a frame goes to one side, below zero to the other; None is without an end."""
    own = side == ("PRECEDING" if name == "start" else "FOLLOWING")
    if isinstance(given, str):
        if given.upper() == "UNBOUNDED" and not own:
            raise planning.text.error(window, f"expected a frame with rows, got one that {name}s with UNBOUNDED {side}")
        return None if given.upper() == "UNBOUNDED" else 0
    sign = 1 if own else -1
    if isinstance(given, exp.Interval):
        if unit == "rows":
            raise planning.text.error(window, "expected a number of rows in ROWS, got an interval; say RANGE")
        return sign * micros_of(planning.text, given, "the frame")
    if isinstance(given, exp.Literal) and not given.is_string and str(given.this).isdigit():
        return sign * int(str(given.this))
    raise planning.text.error(window, "expected a whole number or an interval in a frame")


def plan_frames(
    planning: Planning, tree: exp.Select, relation: Relation, swap: Swap | None, qualify: list[exp.Expr]
) -> Relation:
    """A select list with OVER windows, and QUALIFY over their results."""
    aliases = {e.alias.lower(): e.this for e in tree.expressions if isinstance(e, exp.Alias)}
    asked = [_written_out(each, aliases, planning, relation) for each in qualify]
    windows = [w for e in (*tree.expressions, *asked) for w in e.find_all(exp.Window)]
    frames = _Frames(planning, tree, relation, swap)
    made = frames.planned(windows)
    translator = planning.translator(made, frames.swapped)
    for each in asked:
        condition, _ = translator.checked(each, planning.schema(made.port))
        made = made.at(planning.add(Where(planning.step("qualify"), (made.port,), condition), each))
    schema = planning.schema(made.port)
    shown = replace(made, columns=relation.columns)
    items = items_of(planning, tree, shown, lambda e: translator.checked(e, schema)[0])
    items = with_order(tree, items, shown, planning, lambda e: translator.checked(e, schema)[0])
    return projected(planning, made, items, tree)


def _written_out(tree: exp.Expr, aliases: dict[str, exp.Expr], planning: Planning, relation: Relation) -> exp.Expr:
    """A condition of QUALIFY in which names of the select list stand for their expressions."""
    holder = exp.Paren(this=tree.copy())
    for column in list(holder.find_all(exp.Column)):
        own = planning.scope(relation).matches(column.table, column.name)
        if not column.table and not own and column.name.lower() in aliases:
            column.replace(aliases[column.name.lower()].copy())
    made: exp.Expr = holder.this
    return made


def number_all(planning: Planning, relation: Relation) -> Relation:
    """Row numbers of all rows."""
    rank = relation.rank
    assert rank is not None
    names = planning.schema(relation.port).names
    into = fresh(rank.column, names)
    keyed, name = KeyedInput(relation.port, rank.keys), planning.step("over")
    calls = (AggregateCall(into, Call("row_number", ())),)
    arrival = any(term.column == "PROCTIME()" for term in rank.terms)
    port = planning.adding(
        lambda: add_over(planning.builder, name, keyed, calls, by=() if arrival else rank.terms, arrival=arrival),
        rank.place,
    )
    columns = tuple(replace(c, field=into) if c.field == rank.column else c for c in relation.columns)
    return replace(relation, port=port, columns=columns, rank=None)


OVER.insert(0, plan_frames)
NUMBER_ALL.insert(0, number_all)
