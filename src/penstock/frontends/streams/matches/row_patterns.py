"""Row patterns over a stream, or over a stream by key."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from penstock.errors import FlowError
from penstock.frontends.streams.naming import names_step
from penstock.graph.caller import user_line
from penstock.graph.nodes import MatchRows, Port
from penstock.graph.patterns.row_pattern import MatchClause

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream


class RowMatching:
    """What a stream can do without a key."""

    @names_step
    def match_rows(self, name: str, pattern: MatchClause) -> Stream:
        """The matches of a row pattern in all rows, in the order of event time.

        All records go through one task; `key_by(...).match_rows(...)` looks at each key for itself, in many.

        Args:
            name: the name of the step.
            pattern: what `ps.row_pattern` makes.

        Returns:
            The stream of the matches. Its side `late` has the rows that were too late, `timed_out` the partial matches whose time ran out.

        Raises:
            FlowError: the stream has no event time.
            ExpressionError: a condition or a measure does not fit the fields.
            SchemaError: a measure has the name of a field that is emitted too.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> rows = [(n, f"2026-01-01 10:00:0{at}") for at, n in enumerate([1, 5, 7, 2])]
        >>> numbers = ps.Flow("demo").source("numbers", ps.items(rows, "n int, at string"), event_time="at")
        >>> high = ps.row_pattern("HIGH{2,}", define={"HIGH": "n > 4"}, measures={"many": "count(*)", "top": "max(n)"})
        >>> numbers.match_rows("high", high).sink("out", ps.console())
        >>> run_local(numbers.flow)["out"]
        [Row(many=2, top=7)]
        """
        stream = cast("Stream", self)
        return stream._add(_node(name, stream.port, (), pattern))


class KeyedRowMatching:
    """What a stream by key can do."""

    @names_step
    def match_rows(self, name: str, pattern: MatchClause) -> Stream:
        """The matches of a row pattern in the rows of each key, in the order of event time; see `ps.row_pattern`.

        A match is emitted as soon as no later row can change it.

        Args:
            name: the name of the step.
            pattern: what `ps.row_pattern` makes.

        Returns:
            The stream of the matches. Its side `late` has the rows that were too late, `timed_out` the partial matches whose time ran out.

        Raises:
            FlowError: the stream has no event time.
            ExpressionError: a condition or a measure does not fit the fields.
            SchemaError: a measure has the name of a key, or of a field that is emitted too.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> rows = [("a", n, f"2026-01-01 10:00:0{at}") for at, n in enumerate([1, 5, 7, 2])]
        >>> numbers = ps.Flow("demo").source("numbers", ps.items(rows, "k string, n int, at string"), event_time="at")
        >>> rise = ps.row_pattern("A B+", define={"B": "n > prev(n)"}, measures={"from": "A.n", "to": "last(B.n)"})
        >>> numbers.key_by("k").match_rows("rises", rise).sink("out", ps.console())
        >>> run_local(numbers.flow)["out"]
        [Row(k='a', from=1, to=7)]
        """
        keyed = cast("KeyedStream", self)
        return keyed._add(name, lambda port: _node(name, port, keyed.keys, pattern))


def _node(name: str, port: Port, keys: tuple[str, ...], given: MatchClause) -> MatchRows:
    if not isinstance(given, MatchClause):
        raise FlowError(f"match_rows takes ps.row_pattern('A B+ C', define=..., measures=...), got {given!r:.200}")
    return MatchRows(
        name,
        (port,),
        keys,
        pattern=given.pattern,
        define=given.define,
        measures=given.measures,
        line=user_line(),
    )
