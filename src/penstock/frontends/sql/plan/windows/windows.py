"""Windows: the table functions TUMBLE, HOP, CUMULATE and SESSION in FROM, and the older ones in GROUP BY."""

from __future__ import annotations

import datetime
from collections.abc import Sequence
from dataclasses import dataclass, replace

from sqlglot import exp

from penstock.errors import nearest
from penstock.frontends.sql.expr.intervals import micros_of
from penstock.frontends.sql.expr.scope import PendingWindow, Relation, VisibleColumn
from penstock.frontends.sql.plan.context import Planning, fresh
from penstock.frontends.sql.plan.relations.from_clause import TABLE_FUNCTIONS, plan_relation, plan_table
from penstock.frontends.sql.text.dialect import DESCRIPTOR, PARTITION, TABLE_ARGUMENT, WINDOWS
from penstock.frontends.sql.text.source import Place
from penstock.graph.compose import KeyedInput
from penstock.graph.expr import Column
from penstock.graph.nodes import AssignWindows, Select
from penstock.graph.nodes.relational.assigned import BOUNDS, WINDOW_TIME
from penstock.graph.nodes.window import EVENT, PROCESSING, WINDOW_END, WINDOW_START
from penstock.graph.relational.windows import add_session_rows
from penstock.graph.windows import CumulatingWindow, SessionWindow, TimeWindow, cumulating, session, sliding, tumbling

_SIZES = {
    "TUMBLE": ("SIZE", "OFFSET"),
    "HOP": ("SLIDE", "SIZE", "OFFSET"),
    "CUMULATE": ("STEP", "SIZE", "OFFSET"),
    "SESSION": ("GAP",),
}
"""The arguments of each function after the table and the time, in order."""
LEAST = {"TUMBLE": 1, "HOP": 2, "CUMULATE": 2, "SESSION": 1}


@dataclass(frozen=True)
class WindowCall:
    """A call of a window function: its name, its arguments by name, and where it stands."""

    name: str
    arguments: dict[str, exp.Expr]
    tree: exp.Expr


def call_of(planning: Planning, tree: exp.Expr, before: Sequence[str]) -> WindowCall:
    """The arguments of a window function by name; `before` are those that come first."""
    name = str(tree.this).upper()
    order = (*before, *_SIZES[name])
    made: dict[str, exp.Expr] = {}
    for at, each in enumerate(tree.expressions):
        if isinstance(each, exp.Kwarg):
            key = each.this.name.upper()
            if key not in order:
                raise planning.text.error(each, f"{name} has no argument {key}; {nearest(key, order)}")
            made[key] = each.expression
        elif at < len(order):
            made[order[at]] = each
        else:
            raise planning.text.error(each, f"{name} takes at most {len(order)} arguments: {', '.join(order)}")
    missing = next((n for n in (*before, *_SIZES[name][: LEAST[name]]) if n not in made), None)
    if missing is not None:
        raise planning.text.error(tree, f"{name} needs {missing}; it is written {name}({', '.join(order)})")
    return WindowCall(name, made, tree)


def spec_of(planning: Planning, call: WindowCall) -> TimeWindow | SessionWindow:
    """The windows that a call describes."""
    text, given = planning.text, call.arguments
    sizes = {n: micros_of(text, given[n], n) for n in _SIZES[call.name] if n in given}
    for name, micros in sizes.items():
        if micros <= 0 and name != "OFFSET":
            raise text.error(given[name], f"{name} must be above zero")
    offset = sizes.get("OFFSET", 0)
    return planning.adding(lambda: _spec(call.name, sizes, offset), call.tree)


def _spec(name: str, sizes: dict[str, int], offset: int) -> TimeWindow | SessionWindow:
    if name == "SESSION":
        return session(_span(sizes["GAP"]))
    if name == "TUMBLE":
        made: TimeWindow = tumbling(_span(sizes["SIZE"]))
    elif name == "HOP":
        made = sliding(_span(sizes["SIZE"]), _span(sizes["SLIDE"]))
    else:
        made = cumulating(_span(sizes["SIZE"]), _span(sizes["STEP"]))
    step = made.size if isinstance(made, CumulatingWindow) else made.every
    return replace(made, offset=offset % step)


def _span(micros: int) -> datetime.timedelta:
    return datetime.timedelta(microseconds=micros)


def _planned(planning: Planning, tree: exp.Expr) -> Relation:
    """A table with the windows of a function, which are made when it shows what is done with them."""
    call = call_of(planning, tree, ("DATA", "TIMECOL"))
    table, partition = _table(planning, call)
    time = _time(planning, table, call)
    spec = spec_of(planning, call)
    keys = tuple(_column(planning, table, each).field for each in partition)
    if keys and not isinstance(spec, SessionWindow):
        raise planning.text.error(
            call.tree, f"PARTITION BY goes with SESSION; {call.name} has the same windows for all rows"
        )
    table = _without_bounds(planning, table, tree)
    added = tuple(VisibleColumn("", name, name) for name in BOUNDS)
    return replace(table, columns=table.columns + added, window=PendingWindow(spec, time, keys, tree))


def _table(planning: Planning, call: WindowCall) -> tuple[Relation, list[exp.Expr]]:
    given = call.arguments["DATA"]
    if isinstance(given, exp.Column) and not given.table:
        return settled(planning, plan_table(planning, given.name, given), given), []
    if TABLE_ARGUMENT not in given.meta and not isinstance(given, exp.Subquery):
        raise planning.text.error(given, f"expected TABLE and a name, or a query, as the first argument of {call.name}")
    relation = plan_relation(planning, given)
    return settled(planning, relation, given), list(given.meta.get(PARTITION) or ())


def _column(planning: Planning, relation: Relation, tree: exp.Expr) -> VisibleColumn:
    found = planning.scope(relation).find((tree.args.get("table") and tree.text("table")) or "", tree.name, tree)
    if found is None:
        raise planning.scope(relation).unknown("", tree.name, tree)
    return found


def _time(planning: Planning, relation: Relation, call: WindowCall) -> str:
    """The field of the time by which windows go; empty for processing time."""
    given = call.arguments["TIMECOL"]
    if DESCRIPTOR in given.meta and len(given.expressions) == 1:
        given = given.expressions[0]
    elif not isinstance(given, exp.Column):
        raise planning.text.error(given, f"expected DESCRIPTOR(column) as the time of {call.name}")
    return time_of(planning, relation, _column(planning, relation, given), given)


def time_of(planning: Planning, relation: Relation, column: VisibleColumn, place: Place) -> str:
    """The field of a time attribute; empty for processing time.

    Raises:
        SqlError: the column is no time attribute.
    """
    if column.field in relation.clocks:
        return ""
    known = planning.output(relation.port).event_time
    if known is None or column.field not in {known.column, *relation.times}:
        hint = f"WATERMARK FOR {column.name} AS {column.name} - INTERVAL '5' SECOND"
        own = "has none" if known is None else f"has {known.column}"
        raise planning.text.error(
            place,
            f"expected a time attribute, got {column.name!r}; this table {own}. Say {hint} where the table is created",
        )
    return known.column


def _without_bounds(planning: Planning, relation: Relation, place: Place) -> Relation:
    """The rows under names of fields that windows do not have; columns of these names get a number."""
    taken = planning.schema(relation.port).names
    moved = {n: fresh(f"{n}0", taken) for n in BOUNDS if n in taken}
    if moved:
        columns = tuple((moved.get(n, n), Column(n)) for n in taken)
        relation = relation.renamed(
            planning.add(Select(planning.step("windows"), (relation.port,), columns), place), moved
        )
    names = {n.lower() for n in BOUNDS}
    visible = tuple(replace(c, name=f"{c.name}0") if c.name.lower() in names else c for c in relation.columns)
    return replace(relation, columns=visible, bounds=None)


def settled(planning: Planning, relation: Relation, place: Place) -> Relation:
    """A relation whose windows are fields of its rows."""
    pending = relation.window
    if pending is None:
        return relation
    if isinstance(pending.spec, SessionWindow):
        keyed = KeyedInput(relation.port, pending.partition)
        name = planning.step("sessions")
        port = planning.adding(lambda: add_session_rows(planning.builder, name, keyed, pending.spec), place)
    else:
        clock = EVENT if pending.time else PROCESSING
        node = AssignWindows(planning.step("windows"), (relation.port,), windows=pending.spec, clock=clock)
        port = planning.add(node, place)
    times = frozenset({WINDOW_TIME}) if pending.time else frozenset[str]()
    return replace(relation, port=port, window=None, times=times, bounds=(WINDOW_START, WINDOW_END))


def is_group_window(tree: exp.Expr) -> bool:
    """Whether an expression is a window function of GROUP BY: of a time, and not of a table."""
    if not isinstance(tree, exp.Anonymous) or str(tree.this).upper() not in WINDOWS:
        return False
    first = tree.expressions[0] if tree.expressions else None
    return first is not None and TABLE_ARGUMENT not in first.meta


def group_window(planning: Planning, relation: Relation, tree: exp.Expr) -> Relation:
    """A relation with the windows of GROUP BY TUMBLE(ts, ...)."""
    call = call_of(planning, tree, ("TIMECOL",))
    given = call.arguments["TIMECOL"]
    if not isinstance(given, exp.Column):
        raise planning.text.error(given, f"expected a column as the time of {call.name}")
    relation = settled(planning, relation, tree)
    time = time_of(planning, relation, _column(planning, relation, given), given)
    spec = spec_of(planning, call)
    relation = _without_bounds(planning, relation, tree)
    added = tuple(VisibleColumn("", name, name, hidden=True) for name in BOUNDS)
    pending = PendingWindow(spec, time, ("*",) if isinstance(spec, SessionWindow) else (), tree)
    return replace(relation, columns=relation.columns + added, window=pending)


def settled_group_window(planning: Planning, relation: Relation, tree: exp.Expr, keys: list[exp.Expr]) -> Relation:
    """The rows with the windows of GROUP BY as fields; sessions go by the other keys, which must be columns then."""
    pending = relation.window
    assert pending is not None
    if isinstance(pending.spec, SessionWindow):
        other = next((each for each in keys if not isinstance(each, exp.Column)), None)
        if other is not None:
            raise planning.text.error(
                other, "expected columns beside SESSION in GROUP BY; compute the key in a query below it"
            )
        fields = tuple(_column(planning, relation, each).field for each in keys)
        relation = replace(relation, window=replace(pending, partition=fields))
    return settled(planning, relation, tree)


AUXILIARY = {
    f"{name}_{part}": field
    for name in WINDOWS
    for part, field in {
        "START": WINDOW_START,
        "END": WINDOW_END,
        "ROWTIME": WINDOW_TIME,
        "PROCTIME": WINDOW_TIME,
    }.items()
}
"""The functions that read a window of GROUP BY, and the field that each means."""

TABLE_FUNCTIONS.update(dict.fromkeys(WINDOWS, _planned))

__all__ = ["AUXILIARY", "group_window", "is_group_window", "settled", "settled_group_window", "time_of"]
