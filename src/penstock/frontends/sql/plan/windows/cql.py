"""CQL: windows that turn a stream into a relation, and the operators that turn a relation back into a stream."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.expr.intervals import micros_of
from penstock.frontends.sql.expr.scope import PendingWindow, Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.queries.aggregate_calls import is_aggregated
from penstock.frontends.sql.plan.queries.empty_instants import EMPTY_INSTANTS, EmptyInstants
from penstock.frontends.sql.plan.queries.exact import exact
from penstock.frontends.sql.plan.queries.query import QUERIES, plan_query
from penstock.frontends.sql.plan.queries.select import plan_select
from penstock.frontends.sql.plan.relations.from_clause import RELATIONS, TABLE_FUNCTIONS, aliased, plan_relation
from penstock.frontends.sql.text.cql import STREAMS
from penstock.graph.expr import Column, Expr, col, lit
from penstock.graph.nodes import Changelog, Recent, Select, Top, Trigger, Where, WithColumns
from penstock.graph.nodes.ordering import OP
from penstock.graph.order import Term
from penstock.graph.relational.instants import add_instant_changes
from penstock.graph.windows import TimeWindow

COMES, GOES = ("insert", "update_after"), ("delete", "update_before")
BOUNDS = ("window_start", "window_end")
_COMPARED = "cql_compared"
"""Where a query is noted, in `meta`, of which one instant is compared with the next."""
_DISTINCT = "cql_distinct"
"""Where a query is noted, in `meta`, whose rows say at which instant they are."""


def plan_window(planning: Planning, tree: exp.Bracket) -> Relation:
    """The relation of a window over a stream.

    [NOW] and [RANGE UNBOUNDED] are the stream itself: its rows of each instant, and all so far.
    """
    kind = tree.args.get("kind")
    if kind is None:
        raise planning.text.error(tree, "expected a window such as [RANGE 1 HOUR SLIDE 10 MINUTES] after the table")
    relation = plan_relation(planning, tree.this)
    if planning.output(relation.port).changes is not None:
        raise planning.text.error(tree, "a window of CQL is over a stream, and this is a table that changes")
    if kind.name == "RANGE":
        relation = _sliding(planning, tree, relation)
    elif kind.name == "ROWS":
        relation = _last_rows(planning, tree, relation)
    default = tree.this.name if isinstance(tree.this, exp.Table) else ""
    return aliased(planning, tree, relation, default)


def _sliding(planning: Planning, tree: exp.Bracket, relation: Relation) -> Relation:
    """At every multiple of the slide the rows that are later than so much before it, and not later than it."""
    text, slide = planning.text, tree.args.get("slide")
    span = micros_of(text, tree.args["range"], "the range of a window")
    if slide is None:
        return relation.at(planning.add(Recent(planning.step("recent"), (relation.port,), span=span), tree))
    step = micros_of(text, slide, "the slide of a window")
    if not 0 < step <= span or span // step > 10_000:
        raise text.error(tree, "expected a slide above zero, at most the range, and at least a ten-thousandth of it")
    time = planning.output(relation.port).event_time
    if time is None:
        raise text.error(tree, "[RANGE ...] goes by event time; say WATERMARK FOR a column of the table")
    spec = TimeWindow(span, step, (1 - span) % step)
    bounds = tuple(VisibleColumn("", name, name, hidden=True) for name in (*BOUNDS, "window_time"))
    return replace(relation, columns=(*relation.columns, *bounds), window=PendingWindow(spec, time.column, place=tree))


def _last_rows(planning: Planning, tree: exp.Bracket, relation: Relation) -> Relation:
    """The last rows, of all or of each partition, by event time: a table."""
    text, given = planning.text, tree.args.get("rows")
    output = planning.output(relation.port)
    if given is None or not str(given.this).isdigit() or int(given.this) < 1:
        raise text.error(tree, "expected a number of rows above zero, such as [ROWS 100]")
    if output.event_time is None:
        raise text.error(tree, "the last rows go by event time; say WATERMARK FOR a column of the table")
    scope = planning.scope(relation)
    keys = []
    for each in tree.args.get("partition") or ():
        if not isinstance(each, exp.Column) or not isinstance(each.this, exp.Identifier):
            raise text.error(tree, "expected columns after PARTITION BY of a window")
        found = scope.find(each.table, each.name, each)
        if found is None:
            raise scope.unknown(each.table, each.name, each)
        keys.append(found.field)
    port = relation.port
    if not keys:
        keys = [fresh("all_rows", output.schema.names)]
        port = planning.add(WithColumns(planning.step("all"), (port,), ((keys[0], lit(0)),)), tree)
    by = (Term(output.event_time.column, True),)
    rank = fresh("rank", (*output.schema.names, *keys))
    top = planning.add(Top(planning.step("last"), (port,), tuple(keys), n=int(given.this), by=by, into=rank), tree)
    fields = tuple((name, Column(name)) for name in output.schema.names)
    return relation.at(planning.add(Select(planning.step("window"), (top,), fields), tree))


def plan_cql_select(planning: Planning, tree: exp.Select) -> Relation:
    """A SELECT; one over a sliding window is asked for each of its instants, so that the window is a part of every group and join."""
    given = tree.args.get("from_")
    first = given.this if given is not None and _slides(given.this) else None
    if first is None:
        return plan_select(planning, tree)
    for join in tree.args.get("joins") or ():
        if isinstance(join.this, exp.Bracket):
            _at_one_instant(planning, first, join)
    if tree.args.get("distinct") is not None and not tree.meta.get(_COMPARED) and not tree.meta.get(_DISTINCT):
        return _distinct_rows(planning, tree, first)
    if not is_aggregated(tree, planning.catalog):
        return plan_select(planning, tree)
    group = tree.args.get("group")
    columns = _instant(first)
    if group is None:
        tree.set("group", exp.Group(expressions=columns))
        slide = micros_of(planning.text, first.args["slide"], "the slide of a window")
        tree.meta[EMPTY_INSTANTS] = EmptyInstants(slide, bool(tree.meta.get(_COMPARED)))
    elif not {c.name for c in group.expressions if isinstance(c, exp.Column)} & set(BOUNDS):
        group.set("expressions", [*group.expressions, *columns])
    return plan_select(planning, tree)


def _distinct_rows(planning: Planning, tree: exp.Select, first: exp.Bracket) -> Relation:
    """SELECT DISTINCT: each row once at each instant, so that the instant is a part of the row."""
    inner = tree.copy()
    inner.set("expressions", [*inner.expressions, *(exp.alias_(each, f"$at_{each.name}") for each in _instant(first))])
    inner.meta[_DISTINCT] = True
    relation = exact(planning, plan_cql_select(planning, inner), tree)
    shown = relation.columns[: -len(BOUNDS)]
    port = planning.add(
        Select(planning.step("rows"), (relation.port,), tuple((c.field, Column(c.field)) for c in shown)), tree
    )
    return replace(relation, port=port, columns=shown)


def _instant(first: exp.Bracket) -> list[exp.Column]:
    """The columns that say at which instant a row is in a window."""
    return [exp.column(name, table=_alias(first)) for name in BOUNDS]


def _slides(tree: object) -> bool:
    return isinstance(tree, exp.Bracket) and tree.args.get("slide") is not None


def _alias(tree: exp.Bracket) -> str:
    """The name by which the columns of a window are called."""
    alias = tree.args.get("alias")
    return str(alias.name if alias is not None and alias.this is not None else tree.this.name)


def _at_one_instant(planning: Planning, first: exp.Bracket, join: exp.Join) -> None:
    """A join of two windows that slide pairs what both hold at the same instant."""
    other = join.this
    if not _slides(other) or other.args["slide"] != first.args["slide"] or other.args["range"] != first.args["range"]:
        raise planning.text.error(
            other, "expected the same RANGE and SLIDE in both windows of a join; without SLIDE both may differ"
        )
    pairs = [
        exp.EQ(this=exp.column(n, table=_alias(first)), expression=exp.column(n, table=_alias(other))) for n in BOUNDS
    ]
    on = join.args.get("on")
    join.set("on", exp.and_(*([on] if on is not None else []), *pairs))


def plan_stream(planning: Planning, tree: exp.Expr) -> Relation:
    """ISTREAM: what comes into a relation; DSTREAM: what goes from it; RSTREAM: all of it, at each of its instants."""
    name = str(tree.this.name if isinstance(tree.this, exp.Identifier) else tree.this).upper()
    query = tree.expressions[0] if len(tree.expressions) == 1 else None
    if not isinstance(query, exp.Query | exp.Subquery):
        raise planning.text.error(tree, f"expected a query in {name}(SELECT ...)")
    slide = next((each.args["slide"] for each in query.find_all(exp.Bracket) if _slides(each)), None)
    if slide is not None and name != "RSTREAM":
        return _between_instants(planning, query, micros_of(planning.text, slide, "the slide"), comes=name == "ISTREAM")
    relation = plan_query(planning, query)
    changes = planning.output(relation.port).changes
    if name == "RSTREAM":
        return relation if changes is None else _whole(planning, tree, relation)
    if changes is None:
        if name == "DSTREAM":
            raise planning.text.error(tree, "DSTREAM emits rows that go, and no row goes from this query")
        return relation
    return _part(planning, tree, relation, COMES if name == "ISTREAM" else GOES)


def _whole(planning: Planning, tree: exp.Expr, relation: Relation) -> Relation:
    """All rows of a table whenever it changes, as records."""
    names = planning.schema(relation.port).names
    key = fresh("all_rows", names)
    port = planning.add(WithColumns(planning.step("all"), (relation.port,), ((key, lit(0)),)), tree)
    fired = planning.add(Trigger(planning.step("whole"), (port,), (key,), whole=True), tree)
    return relation.at(
        planning.add(Select(planning.step("rows"), (fired,), tuple((n, Column(n)) for n in names)), tree)
    )


def _between_instants(planning: Planning, query: exp.Expr, slide: int, *, comes: bool) -> Relation:
    """What comes or goes from one instant of a sliding window to the next."""
    inner = query.copy()
    while isinstance(inner, exp.Subquery):
        inner = inner.this
    if not isinstance(inner, exp.Select):
        raise planning.text.error(query, "expected a SELECT over a window with SLIDE")
    first = inner.args["from_"].this if inner.args.get("from_") is not None else None
    if not isinstance(first, exp.Bracket) or not _slides(first):
        raise planning.text.error(query, "expected a window with SLIDE in the FROM of this query")
    instant = [exp.alias_(each, f"cql_{each.name}") for each in _instant(first)]
    inner.set("expressions", [*inner.expressions, *instant])
    inner.meta[_COMPARED] = True
    is_total = is_aggregated(inner, planning.catalog) and inner.args.get("group") is None
    relation = exact(planning, plan_query(planning, inner), query)
    names = tuple(c.name for c in relation.columns if c.name not in (f"cql_{n}" for n in BOUNDS))
    kept: tuple[tuple[str, Expr], ...] = tuple((n, Column(n)) for n in (*names, "cql_window_end"))
    image = "cql_image" if is_total else ""
    if is_total:
        kept = (*kept, (image, col("cql_window_start") == col("cql_window_end")))
    port = planning.add(Select(planning.step("instants"), (relation.port,), kept), query)
    step = planning.step("comes" if comes else "goes")
    made = planning.adding(
        lambda: add_instant_changes(planning.builder, step, port, "cql_window_end", slide, comes=comes, image=image),
        query,
    )
    shown = planning.add(Select(planning.step("rows"), (made,), tuple((n, Column(n)) for n in names)), query)
    return planning.relation(shown)


def _part(planning: Planning, tree: exp.Expr, relation: Relation, ops: tuple[str, ...]) -> Relation:
    """The rows of a table that come, or that go, as records."""
    names = planning.schema(relation.port).names
    log = planning.add(Changelog(planning.step("changes"), (relation.port,)), tree)
    some = planning.add(Where(planning.step("part"), (log,), col(OP).isin(*ops)), tree)
    return relation.at(planning.add(Select(planning.step("rows"), (some,), tuple((n, Column(n)) for n in names)), tree))


RELATIONS[exp.Bracket] = plan_window
QUERIES[exp.Select] = plan_cql_select
for _name in STREAMS:
    TABLE_FUNCTIONS[_name] = plan_stream
