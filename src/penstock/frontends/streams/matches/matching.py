"""Patterns among events: the steps that find their matches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, cast

from penstock.errors import FlowError
from penstock.frontends.streams.matches.many_patterns import KeyedPatternMatching, PatternMatching
from penstock.frontends.streams.naming import names_step
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.graph.builder import GraphBuilder
from penstock.graph.caller import user_line
from penstock.graph.compose import KeyedInput, add_operator_match
from penstock.graph.expr import Expr, as_expr, lit
from penstock.graph.nodes import Match, Port
from penstock.graph.nodes.base import ALL
from penstock.graph.nodes.stateless import Columns
from penstock.graph.patterns.operators import OperatorPattern
from penstock.graph.patterns.pattern import Pattern
from penstock.graph.patterns.row_pattern import MatchClause
from penstock.graph.patterns.selected import SelectedPattern
from penstock.graph.patterns.tree import with_conditions

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream

AnyPattern: TypeAlias = PatternBuilder | Pattern | SelectedPattern | OperatorPattern
"""A pattern, whichever way it was written."""
Selected: TypeAlias = Mapping[str, str | Expr] | None
"""The fields of a match, by expressions over its stages."""


class Matching(PatternMatching):
    """What a stream can do with patterns without a key."""

    @names_step
    def match(self, name: str, pattern: AnyPattern, select: Selected = None) -> Stream:
        """The matches of a pattern among all events, in one task; `key_by(...).match(...)` looks at each key for itself, in many.

        Args:
            name: the name of the step.
            pattern: what to look for, by `ps.pattern` or `ps.pattern_text`.
            select: the fields of a match; see `KeyedStream.match`.

        Returns:
            The stream of matches.

        Raises:
            FlowError: the pattern is not sound, or does not fit the fields of the stream.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> numbers = ps.Flow("demo").source("numbers", ps.items([1, 5, 2], "n int"))
        >>> drop = ps.pattern("drop").begin("high", "n > 3").next("low", "n < high.n")
        >>> numbers.match("drops", drop, select={"from": "high.n", "to": "low.n"}).sink("out", ps.console())
        >>> run_local(numbers.flow)["out"]
        [Row(from=5, to=2)]
        """
        stream = cast("Stream", self)
        return stream._at(add_match(stream.flow.builder, name, KeyedInput(stream.port, ()), pattern, select))


class KeyedMatching(KeyedPatternMatching):
    """What a stream by key can do with patterns."""

    @names_step
    def match(self, name: str, pattern: AnyPattern, select: Selected = None) -> Stream:
        """The matches of a pattern among the events of each key, in the order of event time; as they arrive where the stream has none.

        Args:
            name: the name of the step.
            pattern: what to look for, by `ps.pattern` or `ps.pattern_text`.
            select: the fields of a match, such as {"probes": "count(probe)", "amount": "big.amount", "since": "first(probe).at"}; a plain
                field is that of the last event. Else the key, from when to when the match was, and for each stage the list of its events.

        Returns:
            The stream of matches. `.side("late")` has the events that are too late; `.side("timed_out")` of a `ps.pattern` the runs whose time was
            up, with the same fields and `timed_out_at`.

        Raises:
            FlowError: the pattern is not sound, or does not fit the fields of the stream.
            ExpressionError: a condition or a field of a match cannot be read or typed.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> rows = [("ada", "order"), ("bob", "order"), ("ada", "paid")]
        >>> events = ps.Flow("demo").source("events", ps.items(rows, "user string, kind string"))
        >>> paid = ps.pattern("paid").begin("order", "kind = 'order'").followed_by("paid", "kind = 'paid'")
        >>> events.key_by("user").match("payments", paid, select={"who": "user", "events": "count(*)"}).sink("out", ps.console())
        >>> run_local(events.flow)["out"]
        [Row(who='ada', events=2)]
        """
        keyed = cast("KeyedStream", self)
        return keyed._stream(add_match(keyed._builder, name, keyed._input, pattern, select))


def add_match(builder: GraphBuilder, name: str, keyed: KeyedInput, pattern: AnyPattern, select: Selected) -> Port:
    """The step that a pattern needs, by its kind."""
    columns = None if select is None else tuple((field, as_expr(written)) for field, written in select.items())
    if isinstance(pattern, OperatorPattern):
        return add_operator_match(builder, name, keyed, pattern, columns)
    if isinstance(pattern, SelectedPattern):
        columns = pattern.select if columns is None else columns
        pattern = pattern.pattern
    if isinstance(pattern, PatternBuilder):
        pattern = pattern.built()
    if isinstance(pattern, MatchClause):
        raise FlowError("match takes a pattern, got a row pattern; its step is match_rows(name, ps.row_pattern(...))")
    if not isinstance(pattern, Pattern):
        raise FlowError(
            f"match takes a pattern, such as ps.pattern('p').begin(...) or ps.pattern_text('every a=A -> b=B'), got {pattern!r:.200}"
        )
    return add_run_match(builder, name, keyed, pattern, columns)


def add_run_match(
    builder: GraphBuilder, name: str, keyed: KeyedInput, pattern: Pattern, select: Columns | None
) -> Port:
    """The step of a pattern of which every run is a match; without a key all events belong together."""
    if select == ():
        raise FlowError(
            "select needs at least one field, such as {'amount': 'big.amount'}; leave it out for all events"
        )
    if not keyed.keys:
        keyed = KeyedInput(keyed.port, (ALL,), ((ALL, lit(0)),))
    meant = replace(pattern, root=with_conditions(pattern.root, builder.meant))
    chosen = None if select is None else tuple((field, builder.meant(written)) for field, written in select)
    port = keyed.stream(builder, name)
    return builder.add(Match(name, (port,), keyed.keys, pattern=meant, select=chosen, line=user_line()))
