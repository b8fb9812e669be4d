"""CQL: windows that turn a stream into a relation, and the operators that turn a relation back into a stream."""

from __future__ import annotations

from dataclasses import replace

from sqlglot import exp

from penstock.frontends.sql.expr.intervals import micros_of
from penstock.frontends.sql.expr.scope import PendingWindow, Relation, VisibleColumn
from penstock.frontends.sql.plan.aggregates import is_aggregated
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.from_clause import RELATIONS, TABLE_FUNCTIONS, aliased, plan_relation
from penstock.frontends.sql.plan.query import QUERIES, plan_query
from penstock.frontends.sql.plan.select import plan_select
from penstock.frontends.sql.text.cql import STREAMS
from penstock.graph.expr import Column, col, lit
from penstock.graph.nodes import Changelog, Select, Top, Where, WithColumns
from penstock.graph.nodes.ordering import OP
from penstock.graph.order import Term
from penstock.graph.windows import TimeWindow

COMES, GOES = ("insert", "update_after"), ("delete", "update_before")
BOUNDS = ("window_start", "window_end")


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
        raise text.error(
            tree,
            "[RANGE ...] changes at every instant; say at which ones, as in [RANGE 1 HOUR SLIDE 1 MINUTE], or use OVER (... RANGE ...)",
        )
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
    """A SELECT; one over a sliding window is asked for each of its instants, so that the window is a part of every group."""
    given = tree.args.get("from_")
    sliding = given is not None and isinstance(given.this, exp.Bracket) and given.this.args.get("slide") is not None
    if not sliding or not is_aggregated(tree):
        return plan_select(planning, tree)
    group = tree.args.get("group")
    columns = [exp.column(name) for name in BOUNDS]
    if group is None:
        tree.set("group", exp.Group(expressions=columns))
    elif not {c.name for c in group.expressions if isinstance(c, exp.Column)} & set(BOUNDS):
        group.set("expressions", [*group.expressions, *columns])
    return plan_select(planning, tree)


def plan_stream(planning: Planning, tree: exp.Expr) -> Relation:
    """ISTREAM: what comes into a relation; DSTREAM: what goes from it; RSTREAM: all of it, at each of its instants."""
    name = str(tree.this.name if isinstance(tree.this, exp.Identifier) else tree.this).upper()
    query = tree.expressions[0] if len(tree.expressions) == 1 else None
    if not isinstance(query, exp.Query | exp.Subquery):
        raise planning.text.error(tree, f"expected a query in {name}(SELECT ...)")
    relation = plan_query(planning, query)
    changes = planning.output(relation.port).changes
    slides = any(each.args.get("slide") is not None for each in query.find_all(exp.Bracket))
    if name == "RSTREAM":
        if changes is not None:
            raise planning.text.error(
                tree, "RSTREAM emits a relation at each of its instants; expected a window with SLIDE, or [NOW]"
            )
        return relation
    if slides:
        raise planning.text.error(
            tree, f"{name} of a window with SLIDE is not supported; RSTREAM emits what each of its instants holds"
        )
    if changes is None:
        if name == "DSTREAM":
            raise planning.text.error(tree, "DSTREAM emits rows that go, and no row goes from this query")
        return relation
    return _part(planning, tree, relation, COMES if name == "ISTREAM" else GOES)


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
