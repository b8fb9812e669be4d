"""Patterns among events: the steps that find their matches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, cast

from penstock.errors import FlowError
from penstock.frontends.streams.naming import names_step
from penstock.graph.builder import GraphBuilder
from penstock.graph.compose import KeyedInput, add_operator_match
from penstock.graph.expr import Expr, as_expr
from penstock.graph.nodes import Port
from penstock.graph.patterns.operators import OperatorPattern

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream


class Matching:
    """What a stream can do without a key."""

    @names_step
    def match(self, name: str, pattern: OperatorPattern, select: Mapping[str, str | Expr] | None = None) -> Stream:
        """Matches of a pattern among all events, which go through one task; see `KeyedStream.match`.

        Args:
            name: the name of the step.
            pattern: the pattern, by `ps.pattern_text`.
            select: the fields of a match, by expressions over its tags; else its times and the events of each tag.

        Returns:
            The stream of the matches.

        Raises:
            FlowError: the pattern does not fit the fields of the stream.

        >>> import penstock as ps
        >>> events = ps.Flow("demo").source("events", ps.items([], "kind string, at timestamp"), event_time="at")
        >>> events.match("pairs", ps.pattern_text("every a=A -> b=B", types="kind"), select={"a": "a.at", "b": "b.at"})
        Stream('pairs': a timestamp, b timestamp)
        """
        stream = cast("Stream", self)
        return stream._at(add_match(stream.flow.builder, name, KeyedInput(stream.port, ()), pattern, select))


class KeyedMatching:
    """What a stream by key can do."""

    @names_step
    def match(self, name: str, pattern: OperatorPattern, select: Mapping[str, str | Expr] | None = None) -> Stream:
        """Matches of a pattern among the events of each key, in order of event time; `side("late")` has the events that come too late.

        Without event time events are taken as they arrive, and timers go by processing time.

        Args:
            name: the name of the step.
            pattern: the pattern, by `ps.pattern_text`.
            select: the fields of a match, by expressions over its tags and the key: `a.amount`, `a[0].amount`, `count(a)`, `avg(a.amount)`; else
                the key, the times of its first event and of its completion, and the events of each tag.

        Returns:
            The stream of the matches.

        Raises:
            FlowError: the pattern does not fit the fields of the stream.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> rows = [("ada", "login", 1), ("ada", "buy", 2), ("bob", "buy", 3)]
        >>> events = ps.Flow("demo").source("events", ps.items(rows, "user string, kind string, n int"))
        >>> pattern = ps.pattern_text("every a=login -> b=buy(n > a.n)", types="kind")
        >>> events.key_by("user").match("bought", pattern, select={"user": "user", "n": "b.n"}).sink("out", ps.console())
        >>> run_local(events.flow)["out"]
        [Row(user='ada', n=2)]
        """
        keyed = cast("KeyedStream", self)
        return keyed._stream(add_match(keyed._builder, name, keyed._input, pattern, select))


def add_match(
    builder: GraphBuilder,
    name: str,
    keyed: KeyedInput,
    pattern: OperatorPattern,
    select: Mapping[str, str | Expr] | None,
) -> Port:
    """The step that a pattern needs, by its kind."""
    if not isinstance(pattern, OperatorPattern):
        raise FlowError(f"match takes a pattern such as ps.pattern_text('every a=A -> b=B'), got {pattern!r}")
    columns = None if select is None else tuple((field, as_expr(written)) for field, written in select.items())
    return add_operator_match(builder, name, keyed, pattern, columns)
