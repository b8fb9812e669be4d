"""The native half of windows as DataFrames: parts of aggregates by key and pane, and windows as fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from penstock.graph.aggregates.aggregate import ROWS
from penstock.graph.expr import Expr
from penstock.graph.nodes import LATE, AssignWindows, Node, Port, Window, WindowParts
from penstock.graph.nodes.base import TimeField
from penstock.graph.nodes.relational.assigned import MILLISECOND, WINDOW_TIME
from penstock.graph.nodes.relational.whole import WholeStep
from penstock.graph.nodes.window import END, GAP, PANE, RECORD, START, WINDOW_END, WINDOW_START
from penstock.graph.types import Struct, quote
from penstock.graph.windows import CumulatingWindow, SessionWindow, TimeWindow, gap_expression
from penstock.spark.lower.context import Lowering
from penstock.spark.lower.ownership import STEERING, needs_steering, steering_sql
from penstock.spark.lower.sql import part_sql, result_sql, to_sql

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_AT, _BUCKET, _OWN_GAP, _NUMBER = "__at", "__bucket", "__own_gap", "__number"


def window_parts(at: Lowering, node: WindowParts) -> None:
    """A `groupBy` over the batch, by key and pane. Late records are in panes of their own, so what follows can tell and count them.

    No time of the batch stands in the expressions, unless late records are read: code that Spark generates anew for each batch runs
    slowly at first. Pieces of sessions are many, so records are brought to the task of their key first, and Spark leaves out the shuffle
    behind: 1.4 s of processor time for a million records of which 430 k pieces are made, against 2.2 s the other way round.
    """
    of, times = node.of, at.times[node.name]
    timed = _timed(at.input(node), of, times.now)
    if not node.counted and isinstance(of.spec, TimeWindow):
        names, late = node.output(LATE).schema.names, _late(of.spec, times.previous - of.lateness)
        at.give(Port(node.name, LATE), timed.where(late).selectExpr(*map(quote, names)))
        timed = timed.where(f"not {late}")
    keys, tasks = [*map(quote, of.keys)], at.tasks_of(of)
    if isinstance(of.spec, SessionWindow):
        if needs_steering(tasks):
            timed = timed.selectExpr("*", steering_sql(of.keys, tasks, at.groups))
            keys.append(STEERING)
        timed = timed.repartition(tasks, *keys)
    at.give(Port(node.name), (_by_record if node.by_record else _grouped)(timed, node, keys))


def is_moved(at: Lowering, node: Node, frame: DataFrame) -> bool:
    """Whether the records of a step are at the tasks that own them, although Spark does not know it: pieces of sessions that were steered."""
    before = at.plan.graph.node(node.inputs[0].step)
    steered = isinstance(before, WindowParts) and isinstance(before.of.spec, SessionWindow)
    return steered and needs_steering(at.tasks_of(node)) and frame is at.frames[node.inputs[0]]


def _by_record(frame: DataFrame, node: WindowParts, keys: list[str]) -> DataFrame:
    """A piece for each record, with the record."""
    kind = node.output().schema.field(RECORD).type
    assert isinstance(kind, Struct)
    record = f"struct({', '.join(quote(x.name) for x in kind.fields)})"
    numbered = frame.selectExpr("*", f"monotonically_increasing_id() as {_NUMBER}", f"{record} as {RECORD}")
    parts = [sql for a in node.of.aggregates for sql in part_sql(a)]
    bounds = [f"min({_AT}) as {START}", f"min({_AT} + {_OWN_GAP}) as {END}"]
    rest = [f"count(*) as {ROWS}", f"first({RECORD}) as {RECORD}"]
    made = numbered.groupBy(*keys, _NUMBER).agg(*map(f.expr, [*bounds, *parts, *rest]))
    return made.selectExpr(*map(quote, node.output().schema.names))


def _timed(frame: DataFrame, of: Window, now: int) -> DataFrame:
    """The records with their time: microseconds, as the clock of the windows shows it."""
    time = _micros(of.time, now)
    if isinstance(of.spec, TimeWindow):
        return frame.selectExpr("*", f"{_wall(of.spec, time)} as {_AT}")
    return frame.selectExpr("*", f"{time} as {_AT}", f"{_gap(of.spec)} as {_OWN_GAP}")


def _micros(time: TimeField | None, now: int) -> str:
    """The time of a record in microseconds; that of the batch where there is none."""
    if time is None:
        return f"{now}L"
    shift = f" + {time.shift}L" if time.shift else ""
    return f"unix_micros({quote(time.column)}){shift}"


def _wall(spec: TimeWindow, time: str) -> str:
    """What the clocks of the windows' time zone show."""
    return f"unix_micros(from_utc_timestamp(timestamp_micros({time}), '{spec.timezone}'))" if spec.timezone else time


def assign_windows(at: Lowering, node: AssignWindows) -> None:
    """A row for each window of a record, by an `explode` of where they begin or end; one of windows that do not overlap is enough."""
    spec, time = node.windows, _micros(node.timed_by, at.times[node.name].now)
    start, end = _walls(spec)
    bounds = {WINDOW_START: start, WINDOW_END: end, WINDOW_TIME: end}
    made = {name: _moment(spec, wall) for name, wall in bounds.items()}
    made[WINDOW_TIME] = f"timestamp_micros(unix_micros({made[WINDOW_TIME]}) - {MILLISECOND}L)"
    columns = [f"{made[n]} as {quote(n)}" if n in made else quote(n) for n in node.output().schema.names]
    at.give(Port(node.name), _placed(at.input(node), spec, time).selectExpr(*columns))


def whole_window(at: Lowering, node: WholeStep, of: Window) -> DataFrame:
    """The windows of records of which all are there: none of them is late, and each window is emitted once."""
    spec = of.spec
    assert isinstance(spec, TimeWindow)
    start, end = _walls(spec)
    placed = _placed(at.input(node), spec, _micros(of.time, at.times[node.name].now))
    bounded = placed.selectExpr("*", f"{start} as {START}", f"{end} as {END}")
    keys, parts = [*map(quote, of.keys)], [f.expr(sql) for a in of.aggregates for sql in part_sql(a)]
    bounds = [f"{_moment(spec, START)} as {WINDOW_START}", f"{_moment(spec, END)} as {WINDOW_END}"]
    made = bounded.groupBy(*keys, START, END).agg(*parts)
    return made.selectExpr(*keys, *bounds, *(result_sql(a) for a in of.aggregates))


def _placed(frame: DataFrame, spec: TimeWindow, time: str) -> DataFrame:
    """A row for each window of a record, with where it begins or ends, on the wall. Who does not know its time is in none."""
    timed = frame.selectExpr("*", f"{_wall(spec, time)} as {_AT}").where(f"{_AT} is not null")
    return timed.selectExpr("*", f"{_pieces(spec)} as {_BUCKET}")


def _walls(spec: TimeWindow) -> tuple[str, str]:
    """Where the window of a row of `_placed` begins and ends, on the wall."""
    if isinstance(spec, CumulatingWindow):
        return f"{_AT} - pmod({_AT} - {spec.offset}L, {spec.size}L)", _BUCKET
    return _BUCKET, f"{_BUCKET} + {spec.size}L"


def _pieces(spec: TimeWindow) -> str:
    """Where the windows of a record begin, on the wall; of cumulating ones where they end."""
    last = f"({_AT} - pmod({_AT} - {spec.offset}L, {spec.every}L))"
    if isinstance(spec, CumulatingWindow):
        end = f"{_AT} - pmod({_AT} - {spec.offset}L, {spec.size}L) + {spec.size}L"
        return f"explode(sequence({last} + {spec.every}L, {end}, {spec.every}L))"
    if spec.panes == 1:
        return last
    starts = f"transform(sequence(0, {spec.panes - 1}), i -> {last} - i * {spec.every}L)"
    return f"explode(filter({starts}, s -> s + {spec.size}L > {_AT}))"


def _moment(spec: TimeWindow, wall: str) -> str:
    """The first moment at which the clocks of the windows' time zone show a time."""
    return (
        f"to_utc_timestamp(timestamp_micros({wall}), '{spec.timezone}')"
        if spec.timezone
        else f"timestamp_micros({wall})"
    )


def _gap(spec: object) -> str:
    assert isinstance(spec, SessionWindow)
    if isinstance(spec.gap, int):
        return f"{spec.gap}L"
    if not isinstance(spec.gap, Expr):
        return GAP
    gap = to_sql(gap_expression(spec.gap))
    return f"if({gap} > 0, {gap}, raise_error('the gap of a session is a span of time above zero'))"


def _late(spec: TimeWindow, mark: int) -> str:
    """Which records are too late for all of their windows, or do not say when they happened."""
    return f"({_AT} is null or {_AT} < {spec.late_before(mark)}L)"


def _grouped(frame: DataFrame, node: WindowParts, keys: list[str]) -> DataFrame:
    spec = node.of.spec
    if isinstance(spec, TimeWindow):
        by, bounds = [PANE], list[str]()
        panes = frame.selectExpr("*", f"{_AT} - pmod({_AT} - {spec.offset}L, {spec.pane}L) as {PANE}")
    else:
        by, bounds = [_BUCKET, _OWN_GAP], [f"min({_AT}) as {START}", f"max({_AT}) + {_OWN_GAP} as {END}"]
        panes = frame.selectExpr("*", f"{_AT} - pmod({_AT}, {_OWN_GAP}) as {_BUCKET}")
    parts = [sql for a in node.of.aggregates for sql in part_sql(a)]
    made = panes.groupBy(*keys, *by).agg(*map(f.expr, [*bounds, *parts, f"count(*) as {ROWS}"]))
    return made.selectExpr(*map(quote, node.output().schema.names))
