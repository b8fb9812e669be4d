"""Rows over their neighbours, as SQL's OVER has it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias, cast

from penstock.errors import FlowError
from penstock.frontends.streams.naming import names_step
from penstock.graph import types as t
from penstock.graph.aggregates.calls import Written, calls_of
from penstock.graph.binding import naming_call
from penstock.graph.caller import user_line
from penstock.graph.compose import KeyedInput
from penstock.graph.duration import Span, checked_span
from penstock.graph.nodes import Frame
from penstock.graph.nodes.relational.over import RANGE, ROWS
from penstock.graph.order import Term, terms_of
from penstock.graph.relational.over import add_over
from penstock.graph.schema import Schema

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream

Rows: TypeAlias = int | tuple[int | None, int | None]
"""How many rows are seen: before the row, or before and after it; None is all."""
Around: TypeAlias = Span | tuple[Span | None, Span | None]
"""How far rows are seen: before the row, or before and after it; None is all."""
TIME, ARRIVAL = "time", "arrival"


class Overlooking:
    """What sees the rows of a stream over their neighbours: those of each key, or all."""

    def over(
        self, by: str = "", *, rows: Rows | None = None, within: Around | None = None, order: str = TIME
    ) -> OverStream:
        """Each row with what it sees around it: `over(rows=10).aggregate("recent", mean="avg(ms)")`, as SQL's OVER.

        Rows in the order of event time are emitted once, when event time has passed what they see. In another order, and of a table, the result is a
        table, whose rows change when what they see changes.

        Args:
            by: the order, such as "score desc, name"; else event time.
            rows: how many rows before it are seen, with the row itself; or `(before, after)`, where None is all; `(5, -2)` ends two rows before it.
            within: how far before it rows are seen, such as "1h", and those of the same order; or `(before, after)`. Neither of both: all rows before it.
            order: "time", or "arrival" to take rows as they come and emit them at once.

        Returns:
            The stream with its frames.

        Raises:
            FlowError: two of them do not go together.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> rows = [("a", n, f"2026-01-01 10:00:0{n}") for n in range(1, 5)]
        >>> numbers = ps.Flow("demo").source("numbers", ps.items(rows, "k string, n int, at string"), event_time="at")
        >>> recent = numbers.key_by("k").over(rows=1).aggregate("recent", total="sum(n)", before="lag(n)")
        >>> recent.select("short", "n", "total", "before").sink("out", ps.console())
        >>> run_local(numbers.flow)["out"]
        [Row(n=1, total=1, before=None), Row(n=2, total=3, before=1), Row(n=3, total=5, before=2), Row(n=4, total=7, before=3)]
        """
        with naming_call("over", user_line):
            if order not in (TIME, ARRIVAL):
                raise FlowError(f"expected order 'time' or 'arrival', got {order!r}")
            if rows is not None and within is not None:
                raise FlowError("a frame is of rows or of a range; give one of rows and within")
            return OverStream(*self._partition(), terms_of(by), rows, within, order == ARRIVAL)

    def _partition(self) -> tuple[Stream, KeyedInput]:
        """The stream and how it is divided: by key where it is a stream by key."""
        source = getattr(self, "source", None)
        if source is None:
            stream = cast("Stream", self)
            return stream, KeyedInput(stream.port, ())
        return source, cast("KeyedStream", self)._input


@dataclass(frozen=True)
class OverStream:
    """A stream whose rows see their neighbours, as `Stream.over` returns it.

    >>> import penstock as ps
    >>> scores = ps.Flow("demo").source("scores", ps.items([], "game string, user string, score int"))
    >>> scores.key_by("game").over(by="score desc").aggregate("ranks", place="rank()").schema.names
    ('game', 'user', 'score', 'place')
    """

    source: Stream
    keyed: KeyedInput
    by: tuple[Term, ...]
    rows: Rows | None
    within: Around | None
    arrival: bool

    @names_step
    def aggregate(self, name: str, /, **functions: Written) -> Stream:
        """The rows, each with the results of functions over its frame.

        Args:
            name: the name of the step.
            functions: by the name of the field each fills: an aggregate such as "sum(n)", "first_value(n)", "last_value(n)"; "row_number()", "rank()",
                "dense_rank()"; "lag(n)", "lead(n, 2, 0)".

        Returns:
            The stream of the rows with the results.

        Raises:
            ExpressionError: one is no such function, or does not fit the fields.
            FlowError: rows have no order, or a row would wait for all later ones.
            SchemaError: a field has one of the names already.

        >>> import penstock as ps
        >>> clicks = ps.Flow("demo").source("clicks", ps.items([], "user string, at timestamp"), event_time="at")
        >>> clicks.key_by("user").over(within="1h").aggregate("busy", n="count(*)").schema.names
        ('user', 'at', 'n')
        """
        builder = self.source.flow.builder
        frame = self._frame(builder.output(self.keyed.port).schema)
        calls = calls_of(functions)
        return self.source._at(
            add_over(builder, name, self.keyed, calls, by=self.by, frame=frame, arrival=self.arrival)
        )

    def _frame(self, schema: Schema) -> Frame | None:
        if self.rows is not None:
            return Frame(ROWS, *_pair(self.rows))  # type: ignore[arg-type]  # checked by the frame
        if self.within is None:
            return None
        number = bool(self.by) and t.is_numeric(schema.field(self.by[0].column).type)
        before, after = _pair(self.within)
        return Frame(RANGE, _distance(before, number), _distance(after, number))


def _pair(given: object) -> tuple[object, object]:
    """What is before, and what is after; nothing after the row where one is given."""
    if not isinstance(given, tuple):
        return given, 0
    if len(given) != 2:
        raise FlowError(f"expected how much before and after a row, such as (10, 0), got {given!r}")
    return given


def _distance(given: object, number: bool) -> int | None:
    if given is None:
        return None
    if number:
        return given if isinstance(given, int) else int(checked_span(cast("Span", given), "within"))
    return checked_span(cast("Span", given), "within")
