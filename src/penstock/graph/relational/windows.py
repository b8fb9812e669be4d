"""Steps over rows that have their windows as fields: totals, ranks and pairs by window, each emitted once, when event time has passed it.

The event time of such a row is the last moment of its window, so all of this is made of steps in event time: a window step in which every moment
is a window of its own, and a join of equal times.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from penstock.errors import FlowError
from penstock.graph.aggregates.aggregate import RankedRows
from penstock.graph.aggregates.calls import AggregateCall
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import KeyedInput, add_join
from penstock.graph.expr import Expr, as_expr, col, lit
from penstock.graph.ids import child
from penstock.graph.nodes import AsRecords, IntervalJoin, Port, Select, TimeField, Window, Windows, WithColumns
from penstock.graph.nodes.base import ALL, Output
from penstock.graph.nodes.relational.assigned import WINDOW_TIME
from penstock.graph.nodes.stateless import Columns
from penstock.graph.nodes.window import WINDOW_END, WINDOW_START
from penstock.graph.order import Term
from penstock.graph.windows import SessionWindow, TimeWindow

MOMENT = TimeWindow(1, 1)
"""Windows of one microsecond: rows of one event time are together."""
ALL_ROWS = 2**31 - 1
HIDDEN = {WINDOW_START: "__window_start", WINDOW_END: "__window_end"}
"""What the fields of a window are called while the window step has its own of these names."""


@dataclass(frozen=True)
class WindowRows:
    """Rows that have their windows as fields, seen by key and window.

    Args:
        builder: where steps are added.
        name: the name of the user's step.
        keyed: the rows by key; the fields of the window are among the keys.
    """

    builder: GraphBuilder
    name: str
    keyed: KeyedInput

    @property
    def given(self) -> Output:
        """The rows."""
        return self.builder.output(self.keyed.port)

    @property
    def time(self) -> TimeField:
        """The event time of the rows, which must be that of their window."""
        timed = self.given.event_time
        if timed is None:
            raise FlowError(
                f"{self.name!r} groups by windows, and its rows do not say when they happened: keep window_end or window_time in them, or "
                f"say .assign_windows('windows', ps.tumbling('1m')) before it"
            )
        if not {timed.column, WINDOW_END, WINDOW_TIME} & set(self.keyed.keys):
            raise FlowError(
                f"expected the end of the window (window_end, window_time or {timed.column!r}) among the keys of {self.name!r}, got "
                f"{', '.join(self.keyed.keys)}"
            )
        return timed

    def add(self, calls: tuple[AggregateCall, ...]) -> Port:
        """Aggregates by key and window, in the fields of the keys and of the results."""
        time, port = self.time, self._hidden()
        node = Window(child(self.name, "final"), (port,), self._keys, calls=calls, windows=Windows(MOMENT))
        final = self.builder.add(node)
        made = self.builder.output(final).schema.names
        bounds = (WINDOW_START, WINDOW_END)
        results = tuple((n, col(n)) for n in made if n not in self._keys and n not in bounds)
        return self._named(final, (*((key, col(HIDDEN.get(key, key))) for key in self.keyed.keys), *results), time)

    def rank(self, n: int, by: tuple[Term, ...], into: str) -> Port:
        """The first rows of each key and window, with their rank, in the order of their fields."""
        time, port = self.time, self._hidden()
        terms = tuple(replace(term, column=HIDDEN.get(term.column, term.column)) for term in by)
        ranked = RankedRows(n, terms, self._keys, into)
        node = Window(
            child(self.name, "final"),
            (port,),
            self._keys,
            calls=(AggregateCall("__ranked", ranked),),
            windows=Windows(MOMENT),
        )
        names = self.builder.output(self.keyed.port).schema.names
        fields = [(n, col(HIDDEN.get(n, n))) for n in names if n in self.keyed.keys or not n.startswith("__")]
        return self._named(self.builder.add(node), (*fields, (into, col(into))), time)

    @property
    def _keys(self) -> tuple[str, ...]:
        return tuple(HIDDEN.get(key, key) for key in self.keyed.keys)

    def _hidden(self) -> Port:
        """The rows with the bounds of their window under names of ours."""
        port = self.keyed.stream(self.builder, self.name)
        names = self.builder.output(port).schema.names
        moved = {n: HIDDEN[n] for n in HIDDEN if n in names}
        columns: Columns = tuple((hidden, col(n)) for n, hidden in moved.items())
        if not columns:
            return port
        both = self.builder.add(WithColumns(child(self.name, "bounds"), (port,), columns, hidden=True))
        kept = tuple((moved.get(n, n), col(n)) for n in names)
        return self.builder.add(Select(child(self.name, "windows"), (both,), kept))

    def _named(self, port: Port, columns: Iterable[tuple[str, Expr]], time: TimeField) -> Port:
        """The result with its fields and its event time."""
        picked = self.builder.add(Select(child(self.name, "named"), (port,), tuple(columns)))
        names = self.builder.output(picked).schema.names
        known = (time, TimeField(WINDOW_END, -1), TimeField(WINDOW_TIME, 999))
        found = next((each for each in known if each.column in names), None)
        return self.builder.add(AsRecords(self.name, (picked,), found))


def add_window_totals(builder: GraphBuilder, name: str, keyed: KeyedInput, calls: tuple[AggregateCall, ...]) -> Port:
    """Aggregates of rows that have their windows as fields, by key and window; records, emitted when event time has passed the window.

    Args:
        builder: where steps are added.
        name: the name of the step.
        keyed: the rows by key; `window_start` and `window_end` are among the keys.
        calls: the aggregates.
    """
    return WindowRows(builder, name, keyed).add(calls)


def add_window_top(
    builder: GraphBuilder, name: str, keyed: KeyedInput, n: int, by: tuple[Term, ...], into: str = "rank"
) -> Port:
    """The first rows of each key and window in an order, with their rank; records, emitted when event time has passed the window."""
    return WindowRows(builder, name, keyed).rank(n, by, into)


def add_window_pairs(builder: GraphBuilder, join: IntervalJoin) -> Port:
    """A join of rows that have their windows as fields and share them; `keys` hold the fields of the window.

    Pairs come out when both rows are there, rows without a match when event time has passed the window; nothing is taken back.
    """
    for side, (port, keys) in enumerate(zip(join.inputs, (join.keys, join.right_keys), strict=True)):
        timed = builder.output(port).event_time
        if timed is None or not {timed.column, WINDOW_END, WINDOW_TIME} & set(keys):
            which = ("left", "right")[side]
            raise FlowError(
                f"a join by window expects the end of the window among the keys of the {which} side, whose event time it is; got "
                f"{', '.join(keys)} and {'no event time' if timed is None else f'event time {timed.column}'}"
            )
    return add_join(builder, replace(join, low=0, high=0))


def add_session_rows(builder: GraphBuilder, name: str, keyed: KeyedInput, windows: SessionWindow) -> Port:
    """The records with the session that they are in as fields, emitted when event time has passed the session's end.

    Which session a record is in depends on those around it, so records wait, and are kept until then.
    """
    given = builder.output(keyed.port)
    if given.event_time is None:
        raise FlowError(
            f"sessions need to know when the records of {str(keyed.port)!r} happened: give its source event_time='a field'"
        )
    if not keyed.keys:
        keyed = KeyedInput(keyed.port, (ALL,), ((ALL, lit(0)),))
    by = (Term(given.event_time.column),)
    rows = AggregateCall("__ranked", RankedRows(ALL_ROWS, by, keyed.keys, "__number"))
    node = Window(
        child(name, "sessions"), (keyed.stream(builder, name),), keyed.keys, calls=(rows,), windows=Windows(windows)
    )
    sessions = builder.add(node)
    bounds = tuple((n, col(n)) for n in (WINDOW_START, WINDOW_END))
    fields = tuple((n, col(n)) for n in given.schema.names)
    picked = builder.add(Select(child(name, "rows"), (sessions,), (*fields, *bounds)))
    last = (WINDOW_TIME, col(WINDOW_END) - as_expr("interval '1' millisecond"))
    return builder.add(WithColumns(name, (picked,), (last,)))


__all__ = ["add_session_rows", "add_window_pairs", "add_window_top", "add_window_totals"]
