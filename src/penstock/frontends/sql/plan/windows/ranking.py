"""ROW_NUMBER with a condition on it: the first rows of each partition, and rows without doubles. QUALIFY says the same in one query."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.frontends.sql.expr.scope import PendingRank, Relation, VisibleColumn
from penstock.frontends.sql.expr.translate import Swap
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.hints import span_set
from penstock.frontends.sql.plan.queries.conditions import conjuncts
from penstock.frontends.sql.plan.queries.projection import Item, items_of, name_of, projected, starred, unique
from penstock.frontends.sql.plan.statements.settings import TTL
from penstock.frontends.sql.text.source import Place
from penstock.graph.compose import KeyedInput
from penstock.graph.expr import Column, Expr, lit
from penstock.graph.nodes import Distinct, DistinctInTime, Port, Select, Top, Where
from penstock.graph.order import Term
from penstock.graph.relational.keys import plain_keys
from penstock.graph.relational.windows import add_window_top

OverPlan = Callable[[Planning, exp.Select, Relation, "Swap | None", "list[exp.Expr]"], Relation]


def plan_over(
    planning: Planning, tree: exp.Select, relation: Relation, swap: Swap | None, qualify: list[exp.Expr]
) -> Relation:
    """A select list with OVER windows, and QUALIFY."""
    found = _row_number(tree, qualify)
    if found is None:
        return OVER[0](planning, tree, relation, swap, qualify)
    window, name = found
    if _all_rows(tree, qualify, window):
        return OVER[0](planning, tree, relation, swap, qualify)
    pending = _pending(planning, tree, relation, swap, window, name)
    if not qualify:
        return pending
    renamed = [_by_name(each, name) for each in qualify]
    made, rest = ranked(planning, pending, renamed)
    for each in rest:
        condition, _ = planning.translator(made).checked(each, planning.schema(made.port))
        made = made.at(planning.add(Where(planning.step("qualify"), (made.port,), condition), each))
    shown = [name_of(each, at).lower() for at, each in enumerate(tree.expressions)]
    has_star = any(isinstance(e, exp.Star) for e in tree.expressions)
    kept = tuple(c for c in made.columns if c.name != name or name.lower() in shown)
    return made if has_star and name in shown else replace(made, columns=kept)


def _windows(tree: exp.Expr) -> list[exp.Window]:
    return list(tree.find_all(exp.Window))


def _row_number(tree: exp.Select, qualify: list[exp.Expr]) -> tuple[exp.Window, str] | None:
    """The one ROW_NUMBER of a query and the name of its column; None where there is something else."""
    every = [w for each in (*tree.expressions, *qualify) for w in _windows(each)]
    if not every or any(w != every[0] for w in every) or not _numbers(every[0]) or tree.args.get("windows"):
        return None
    named = [e for e in tree.expressions if isinstance(e, exp.Alias) and isinstance(e.this, exp.Window)]
    inside = [e for e in tree.expressions if _windows(e) and e not in named and not isinstance(e, exp.Window)]
    if inside:
        return None
    return every[0], str(named[0].alias) if named else "rownum"


def _numbers(window: exp.Window) -> bool:
    called = window.this
    return isinstance(called, exp.Anonymous) and str(called.this).upper() == "ROW_NUMBER"


def _all_rows(tree: exp.Select, qualify: list[exp.Expr], window: exp.Window) -> bool:
    """Whether nothing can say how many rows are wanted."""
    return window.args.get("order") is None or (not qualify and tree.parent is None)


def _by_name(tree: exp.Expr, name: str) -> exp.Expr:
    holder = exp.Paren(this=tree.copy())
    for each in list(holder.find_all(exp.Window)):
        each.replace(exp.column(name))
    made: exp.Expr = holder.this
    return made


def _pending(
    planning: Planning, tree: exp.Select, relation: Relation, swap: Swap | None, window: exp.Window, name: str
) -> Relation:
    """The other columns of the select list, and a number that is still to be made."""
    translator, schema = planning.translator(relation, swap), planning.schema(relation.port)
    at = next((i for i, e in enumerate(tree.expressions) if _windows(e)), len(tree.expressions))
    plain = [e for e in tree.expressions if not _windows(e)]
    fake = exp.Select(expressions=plain) if plain else exp.Select(expressions=[exp.Star()])
    items = items_of(planning, fake, relation, lambda each: translator.checked(each, schema)[0])
    keys = [
        key for each in window.args.get("partition_by") or () for key in plain_keys(*translator.checked(each, schema))
    ]
    terms = [_term(planning, relation, each, translator.checked) for each in window.args["order"].expressions]
    hidden: dict[str, Expr] = {}
    fields = _Fields(items, hidden)
    partition = tuple(fields.named(expr, "key") for expr in keys)
    order = tuple(Term(fields.named(expr, "order"), down) for expr, down in terms)
    extra = [Item(n, window, e) for n, e in hidden.items()]
    made = projected(planning, relation, unique(items) + extra, window)
    visible = [c for c in made.columns if c.name not in hidden]
    visible.insert(_position(planning, relation, tree, at), VisibleColumn("", name, name))
    bounds = relation.bounds
    clocks = frozenset(t.column for t in order if t.column.startswith("PROCTIME")) | made.clocks
    return replace(
        made,
        columns=tuple(visible),
        clocks=clocks,
        bounds=_followed(bounds, items, hidden),
        rank=PendingRank(name, partition, order, window),
    )


def _position(planning: Planning, relation: Relation, tree: exp.Select, at: int) -> int:
    """How many columns the select list has before an item, with `*` written out."""
    stars = [e for e in tree.expressions[:at] if _is_star(e)]
    return at - len(stars) + sum(len(starred(planning, relation, star)) for star in stars)


def _is_star(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Star) or (isinstance(tree, exp.Column) and isinstance(tree.this, exp.Star))


def _followed(bounds: tuple[str, str] | None, items: list[Item], hidden: dict[str, Expr]) -> tuple[str, str] | None:
    if bounds is None:
        return None
    names = {e.name: n for n, e in [*((i.name, i.expr) for i in items), *hidden.items()] if isinstance(e, Column)}
    start, end = (names.get(each) for each in bounds)
    return None if start is None or end is None else (start, end)


@dataclass
class _Fields:
    """The fields of a select list, and those that are added for a partition or an order."""

    items: list[Item]
    hidden: dict[str, Expr]

    def named(self, expr: Expr, wanted: str) -> str:
        """The field that holds an expression."""
        known = [(i.name, i.expr) for i in self.items if not i.clock] + list(self.hidden.items())
        found = next((name for name, each in known if each.same(expr)), None)
        if found is not None:
            return found
        if isinstance(expr, Column) and expr.name == "PROCTIME()":
            return expr.name
        taken = [n for n, _ in known]
        name = fresh(expr.name if isinstance(expr, Column) else wanted, taken)
        self.hidden[name] = expr
        return name


Checked = Callable[..., "tuple[Expr, object]"]


def _term(planning: Planning, relation: Relation, tree: exp.Expr, checked: Checked) -> tuple[Expr, bool]:
    ordered = tree if isinstance(tree, exp.Ordered) else exp.Ordered(this=tree)
    inner = ordered.this
    if isinstance(inner, exp.Column):
        found = planning.scope(relation).find(inner.table, inner.name, inner)
        if found is not None and found.field in relation.clocks:
            return Column("PROCTIME()"), bool(ordered.args.get("desc"))
    made, _ = checked(inner, planning.schema(relation.port))
    return made, bool(ordered.args.get("desc"))


def ranked(planning: Planning, relation: Relation, conditions: list[exp.Expr]) -> tuple[Relation, list[exp.Expr]]:
    """The first rows of each partition, where a condition says how many; and the other conditions."""
    pending = relation.rank
    if pending is None:
        return relation, conditions
    flat = [each for c in conditions for each in conjuncts(c)]
    limits = [(each, _limit(each, pending.column)) for each in flat]
    wanted = [(each, n) for each, n in limits if n is not None]
    if not wanted:
        return unranked(planning, relation), conditions
    most = min(n for _, n in wanted)
    made = _top(planning, relation, pending, max(most, 1), wanted[0][0])
    exactly = [each for each, n in wanted if isinstance(each, exp.EQ) and n > 1]
    used = [each for each, _ in wanted if not any(each is e for e in exactly)]
    if most < 1:
        raise planning.text.error(wanted[0][0], "expected at least one row; row numbers begin with 1")
    return made, [each for each in flat if not any(each is u for u in used)]


def _limit(tree: exp.Expr, column: str) -> int | None:
    """How many rows a condition on the number asks for."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Between) and _is_column(tree.this, column) and _number(tree.args["low"]) == 1:
        return _number(tree.args["high"])
    if not isinstance(tree, exp.EQ | exp.LT | exp.LTE | exp.GT | exp.GTE):
        return None
    left, right = tree.this, tree.expression
    turned = _is_column(right, column)
    if turned:
        left, right = right, left
    number = _number(right)
    if not _is_column(left, column) or number is None:
        return None
    if isinstance(tree, exp.EQ):
        return number
    if isinstance(tree, exp.GT | exp.GTE) is not turned:
        return None
    return number - 1 if isinstance(tree, exp.LT | exp.GT) else number


def _is_column(tree: exp.Expr, name: str) -> bool:
    return isinstance(tree, exp.Column) and tree.name.lower() == name.lower()


def _number(tree: exp.Expr) -> int | None:
    return (
        int(str(tree.this))
        if isinstance(tree, exp.Literal) and not tree.is_string and str(tree.this).isdigit()
        else None
    )


def _top(planning: Planning, relation: Relation, pending: PendingRank, n: int, place: exp.Expr) -> Relation:
    """The step that keeps the first rows, in the way that costs least."""
    rest = replace(relation, rank=None)
    output = planning.output(relation.port)
    bounds = relation.bounds
    if bounds is not None and set(bounds) <= set(pending.keys) and output.event_time is not None:
        keyed = KeyedInput(relation.port, pending.keys)
        name, into = planning.step("top"), fresh(pending.column, output.schema.names)
        port = planning.adding(lambda: add_window_top(planning.builder, name, keyed, n, pending.terms, into), place)
        return _numbered(rest, port, pending.column, into)
    if n == 1 and pending.keys and output.changes is None and not pending.terms[0].descending:
        early = _first(planning, relation, pending, place)
        if early is not None:
            return early
    return _ranks(planning, relation, pending, n, place)


def _first(planning: Planning, relation: Relation, pending: PendingRank, place: Place) -> Relation | None:
    """The first row of each partition by time: records, which are never taken back."""
    term, time = pending.terms[0], planning.output(relation.port).event_time
    if term.column == "PROCTIME()":
        port = planning.add(
            Distinct(planning.step("first"), (relation.port,), pending.keys, ttl=span_set(planning, TTL)), place
        )
    elif len(pending.terms) == 1 and time is not None and time.column == term.column and not time.shift:
        port = planning.add(DistinctInTime(planning.step("first"), (relation.port,), pending.keys), place)
    else:
        return None
    names = planning.schema(port).names
    into = fresh(pending.column, names)
    columns = (*((n, Column(n)) for n in names), (into, lit(1)))
    made = planning.add(Select(planning.step("number"), (port,), columns), place)
    return _numbered(replace(relation, rank=None), made, pending.column, into)


def _ranks(planning: Planning, relation: Relation, pending: PendingRank, n: int, place: Place) -> Relation:
    port, keys = relation.port, pending.keys
    if any(term.column == "PROCTIME()" for term in pending.terms):
        raise planning.text.error(
            place, "expected an order by a column, or by processing time upwards with the first row alone"
        )
    names = planning.schema(port).names
    if not keys:
        keys = (fresh("all_rows", names),)
        columns = (*((name, Column(name)) for name in names), (keys[0], lit(0)))
        port = planning.add(Select(planning.step("all"), (port,), columns), place)
    into = fresh(pending.column, planning.schema(port).names)
    ttl = span_set(planning, TTL)
    made = planning.add(Top(planning.step("top"), (port,), keys, n=n, by=pending.terms, into=into, ttl=ttl), place)
    return _numbered(replace(relation, rank=None, times=frozenset()), made, pending.column, into)


def _numbered(relation: Relation, port: Port, column: str, into: str) -> Relation:
    columns = tuple(replace(c, field=into) if c.field == column else c for c in relation.columns)
    return replace(relation, port=port, columns=columns)


def unranked(planning: Planning, relation: Relation) -> Relation:
    """A relation whose row numbers are fields, for all rows."""
    if relation.rank is None:
        return relation
    return NUMBER_ALL[0](planning, relation)


OVER: list[OverPlan] = []
"""How select lists with other OVER windows are planned: the first counts. A family puts itself in front."""
NUMBER_ALL: list[Callable[[Planning, Relation], Relation]] = []
"""How row numbers are made that no condition limits: the first counts."""
