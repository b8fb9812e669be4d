"""Many patterns over a stream, which may change while the flow runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeAlias, cast

from penstock.errors import FlowError
from penstock.frontends.streams.naming import names_step
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.graph.compose import KeyedInput
from penstock.graph.composed.compose_patterns import add_patterns
from penstock.graph.patterns.operators import OperatorPattern
from penstock.graph.patterns.pattern import Pattern
from penstock.graph.patterns.selected import SelectedPattern
from penstock.graph.rules.pattern_changes import AnyPattern, PatternReader

if TYPE_CHECKING:
    from penstock.frontends.streams.keyed import KeyedStream
    from penstock.frontends.streams.stream import Stream

WrittenPattern: TypeAlias = PatternBuilder | Pattern | SelectedPattern | OperatorPattern | str
"""A pattern of stages or of operators, or its text."""


class PatternMatching:
    """What a stream can do with many patterns without a key."""

    @names_step
    def patterns(
        self,
        name: str,
        patterns: Mapping[str, WrittenPattern] | None = None,
        *,
        changes: Stream | None = None,
        reader: PatternReader | None = None,
    ) -> Stream:
        """The matches of several patterns among all events, in one task; `key_by(...).patterns(...)` looks at each key for itself.

        Args:
            name: the name of the step.
            patterns: the patterns by name; see `KeyedStream.patterns`.
            changes: changes of the patterns while the flow runs.
            reader: what reads patterns from texts; `ps.pattern_reader(...)`.

        Returns:
            The stream of matches.

        Raises:
            FlowError: a pattern is not sound, or does not fit the fields of the stream.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> numbers = ps.Flow("demo").source("numbers", ps.items([1, 5, 2], "n int"))
        >>> drop = ps.pattern("drop").begin("high", "n > 3").next("low", "n < high.n")
        >>> numbers.patterns("found", {"drop": drop}).sink("out", ps.console())
        >>> [(row.pattern, [event["n"] for event in row.events]) for row in run_local(numbers.flow)["out"]]
        [('drop', [5, 2])]
        """
        stream = cast("Stream", self)
        return _added(stream, name, KeyedInput(stream.port, ()), patterns, changes, reader)


class KeyedPatternMatching:
    """What a stream by key can do with many patterns."""

    @names_step
    def patterns(
        self,
        name: str,
        patterns: Mapping[str, WrittenPattern] | None = None,
        *,
        changes: Stream | None = None,
        reader: PatternReader | None = None,
    ) -> Stream:
        """The matches of several patterns among the events of each key, in one step; patterns may be added, changed and removed while the flow runs.

        Args:
            name: the name of the step.
            patterns: the patterns by name: of `ps.pattern`, `ps.pattern_text`, `ps.pattern_json` or `ps.sase_text`, or the text of one of the last three.
            changes: changes of the patterns while the flow runs: a stream, or a table that changes, with `rule` and `text` (or `id` and `pattern`), and
                perhaps `op` (add, change, remove, enable or disable), `enabled`, `runs` (drop, keep or drain), `function`, `version`, `by` and `at`.
                Those of a batch take effect before its records.
            reader: what reads the texts of changes, and of `patterns`: `ps.pattern_reader(types="kind")`.

        Returns:
            The stream of matches: the key, `pattern`, `version`, `function`, `match_start`, `match_end`, and `events`, each with its `stage`.
            `.side("timed_out")` has the runs whose time was up, `.side("late")` the events that came too late.

        Raises:
            FlowError: a pattern is not sound, or does not fit the fields of the stream.
            SchemaError: the changes have not the fields of changes.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> rows = [("ada", "order"), ("bob", "order"), ("ada", "paid")]
        >>> events = ps.Flow("demo").source("events", ps.items(rows, "user string, kind string"))
        >>> paid = "PATTERN SEQ(order a, paid b)"
        >>> events.key_by("user").patterns("found", {"paid": paid}, reader=ps.pattern_reader("kind")).sink("out", ps.console())
        >>> [(row.user, row.pattern, [event["stage"] for event in row.events]) for row in run_local(events.flow)["out"]]
        [('ada', 'paid', ['a', 'b'])]
        """
        keyed = cast("KeyedStream", self)
        return _added(keyed.source, name, keyed._input, patterns, changes, reader)


def _added(
    stream: Stream,
    name: str,
    keyed: KeyedInput,
    patterns: Mapping[str, WrittenPattern] | None,
    changes: Stream | None,
    reader: PatternReader | None,
) -> Stream:
    if changes is not None:
        if reader is None:
            raise FlowError(
                "changes of patterns are texts, and something must read them: say reader=ps.pattern_reader()"
            )
        stream._need_stream(changes, "the changes of patterns are a stream")
    read = {each: _pattern(each, pattern, reader) for each, pattern in (patterns or {}).items()}
    port = None if changes is None else changes.port
    return stream._at(add_patterns(stream.flow.builder, name, keyed, read, reader or unread, port))


def unread(name: str, text: str) -> AnyPattern:
    """Refuses texts, where nothing reads them."""
    raise FlowError(f"pattern {name!r} is a text, got {text[:40]!r}; say reader=ps.pattern_reader() to have it read")


def _pattern(name: str, given: WrittenPattern, reader: PatternReader | None) -> AnyPattern:
    if isinstance(given, str):
        return (reader or unread)(name, given)
    if isinstance(given, PatternBuilder):
        return given.built()
    made = given.pattern if isinstance(given, SelectedPattern) else given
    if not isinstance(made, Pattern | OperatorPattern):
        raise FlowError(
            f"pattern {name!r}: expected ps.pattern(...), ps.pattern_text(...), ps.pattern_json(...) or ps.sase_text(...), got {given!r}"
        )
    return made
