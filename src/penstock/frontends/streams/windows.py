"""Windows over a stream by key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn, cast

from penstock.frontends.streams.naming import names_step
from penstock.frontends.streams.over import Overlooking
from penstock.frontends.streams.totals import Totals
from penstock.graph.aggregates.aggregate import RankedRows
from penstock.graph.aggregates.calls import AggregateCall, Written, calls_of
from penstock.graph.binding import naming_call
from penstock.graph.caller import user_line
from penstock.graph.duration import Span, checked_span
from penstock.graph.nodes import Window, Windows
from penstock.graph.nodes.window import APPEND, EVENT
from penstock.graph.order import terms_of
from penstock.graph.windows import Early, WindowSpec

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream


class Windowing(Overlooking):
    """What makes windows of a stream: of each key, or of all records where there is none."""

    def window(
        self,
        spec: WindowSpec,
        *,
        lateness: Span = 0,
        early: Early | None = None,
        accumulate: bool = True,
        mode: str = APPEND,
        clock: str = EVENT,
    ) -> WindowedStream:
        """The records by window: `window(ps.tumbling("10s")).count("n")`.

        Of a stream by key they are the windows of each key; of any other stream those of all records, which one task puts together. A
        window is emitted when event time has passed its end.

        Args:
            spec: the windows: `ps.tumbling`, `ps.sliding`, `ps.cumulating`, `ps.session`, `ps.count_window` or `ps.global_window`.
            lateness: keeps a window that much longer: records that come late then are emitted as a correction.
            early: emits results before the end, each time so much time (`ps.every_interval("5s")`) or so many records
                (`ps.every_records(100)`) have come.
            accumulate: False has a result hold only what is new since the last one.
            mode: "append", "update" (what changed, after every batch) or "complete" (all that is kept, after every batch with a change).
            clock: "event", or "processing" to go by processing time.

        Returns:
            The stream by key and window.

        Raises:
            FlowError: two of them do not go together.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> rows = [("a", "2026-01-01 10:00:01"), ("a", "2026-01-01 10:00:02")]
        >>> words = ps.Flow("demo").source("words", ps.items(rows, "word string, at string"), event_time="at")
        >>> words.key_by("word").window(ps.tumbling("10s")).count("n").select("plain", "word", "n").sink("out", ps.console())
        >>> run_local(words.flow)["out"]
        [Row(word='a', n=2)]
        """
        with naming_call("window", user_line):
            windows = Windows(spec, checked_span(lateness, "lateness"), early, bool(accumulate), mode, clock)
        return WindowedStream(self._keyed(), windows)

    def _keyed(self) -> KeyedStream:
        return cast("KeyedStream", self)


@dataclass(frozen=True)
class WindowedStream(Totals):
    """A stream by key and window, as `KeyedStream.window` returns it. Each method adds a step that emits a record for each key and window.

    The records begin with the key, `window_start` and `window_end`.

    >>> import penstock as ps
    >>> words = ps.Flow("demo").source("words", ps.items([], "word string, at timestamp"), event_time="at")
    >>> words.key_by("word").window(ps.tumbling("10s")).count("n").schema.names
    ('word', 'window_start', 'window_end', 'n')
    """

    keyed: KeyedStream
    windows: Windows

    @names_step
    def aggregate(self, name: str, /, **aggregates: Written) -> Stream:
        """Several aggregates at once: `aggregate("stats", n="count(*)", top="max(score)")`, or your own Aggregator.

        Args:
            name: the name of the step.
            aggregates: by the name of the field each fills.

        Returns:
            The stream of the results.

        Raises:
            ExpressionError: one is not an aggregate, or does not fit the fields.
            FlowError: windows over time need an event time, and the stream has none.

        >>> import penstock as ps
        >>> scores = ps.Flow("demo").source("scores", ps.items([], "user string, score int, at timestamp"), event_time="at")
        >>> hourly = scores.key_by("user").window(ps.tumbling("1h"))
        >>> hourly.aggregate("stats", n="count(*)", top="max(score)").schema.names
        ('user', 'window_start', 'window_end', 'n', 'top')
        """
        return self._add(name, calls_of(aggregates), None)

    @names_step
    def reduce(self, name: str, function: Callable[..., object]) -> Stream:
        """Folds the records of a window into one, two at a time.

        Args:
            name: the name of the step.
            function: `function(one, other)` returns a record; it must not depend on how they are paired.

        Returns:
            The stream of the results: the record that stands for its window.

        Raises:
            FlowError: windows over time need an event time, and the stream has none.

        >>> import penstock as ps
        >>> scores = ps.Flow("demo").source("scores", ps.items([], "user string, score int, at timestamp"), event_time="at")
        >>> hourly = scores.key_by("user").window(ps.tumbling("1h"))
        >>> hourly.reduce("best", lambda one, other: max(one, other, key=lambda row: row.score)).port.step
        'best'
        """
        return self._add(name, (), function)

    @names_step
    def top(self, name: str, n: int, by: str, *, into: str = "rank") -> Stream:
        """The first `n` records of each key and window in an order: a row for each, with the bounds of the window and the rank.

        Args:
            name: the name of the step.
            n: how many.
            by: the order, such as "score desc, name". Where it does not decide, all fields do, in their order.
            into: the field of the rank, which begins with 1.

        Returns:
            The stream of the first records of each key and window, with their rank.

        Raises:
            FlowError: there is no number, or no order; windows over time need an event time, and the stream has none.
            SchemaError: a field of the order is not there, or `into` is a field already.

        >>> import penstock as ps
        >>> scores = ps.Flow("demo").source("scores", ps.items([], "game string, n int, at timestamp"), event_time="at")
        >>> scores.key_by("game").window(ps.tumbling("1h")).top("best", 3, "n desc").port.step
        'best'
        """
        rows = AggregateCall("__ranked", RankedRows(n, terms_of(by), self.keyed.keys, into))
        return self._add(name, (rows,), None)

    def __getattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a stream by window has no {name!r}; it has aggregate, count, reduce, sum and top")

    def _add(self, name: str, calls: tuple[AggregateCall, ...], function: Callable[..., object] | None) -> Stream:
        keys, windows, line = self.keyed.keys, self.windows, user_line()
        return self.keyed._add(
            name,
            lambda port: Window(name, (port,), keys, calls=calls, windows=windows, function=function, line=line),
        )
