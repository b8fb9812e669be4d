"""Patterns that change while a flow runs: what a change is, what it makes of the runs that are under way, and the patterns after changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeAlias

from penstock.errors import FlowError, UnknownName, nearest
from penstock.graph.expr import ScalarFunction
from penstock.graph.expr.registry import registry_of, with_functions
from penstock.graph.nodes.base import Output, Port
from penstock.graph.nodes.patterns.match import Match
from penstock.graph.nodes.patterns.operator_match import OperatorMatch
from penstock.graph.patterns.operators import OperatorPattern
from penstock.graph.patterns.pattern import Overflow, Pattern
from penstock.graph.patterns.tree import with_conditions
from penstock.graph.rules.changes import (
    CHANGE,
    DISABLE,
    ENABLE,
    GONE,
    OPS,
    PUT,
    UNCHANGED,
    ChangedRule,
    enabled_after,
)

DROP, KEEP, DRAIN = "drop", "keep", "drain"
RUNS = (DROP, KEEP, DRAIN)
"""What a change says of the runs of the pattern that are under way: they end; they go on with the new pattern; they go on with the old one."""
MOST_DRAINING = 8
"""So many older versions of a pattern may have runs that go on to their end."""
AnyPattern: TypeAlias = Pattern | OperatorPattern
"""A pattern of stages, or of operators."""
PatternReader: TypeAlias = Callable[[str, str], AnyPattern]
"""Reads a pattern: its name, and its text."""


@dataclass(frozen=True)
class PatternVersion:
    """One version of a pattern.

    Args:
        number: the version.
        since: the first version whose runs go on with this one.
        text: the pattern; None where it is as it was written in the flow.
        function: what is to be done with its matches, for whoever reads them.
        drains: whether it begins no run.
    """

    number: int
    since: int
    text: str | None = None
    function: str | None = None
    drains: bool = False


@dataclass(frozen=True)
class ActivePattern:
    """A version of a pattern that takes events, or keeps runs while it is disabled."""

    name: str
    version: PatternVersion
    pattern: AnyPattern
    is_paused: bool = False

    def takes(self, version: int) -> bool:
        """Whether runs of a version go on with this one."""
        return self.version.since <= version <= self.version.number


@dataclass(frozen=True)
class PatternSource:
    """The patterns of a flow as they were written, over which changes are made.

    Args:
        patterns: the patterns by name.
        given: the stream of events.
        keys: the fields of the key.
        reader: what reads the text of a pattern.
        functions: the Python functions that conditions may call by name.
    """

    patterns: tuple[tuple[str, AnyPattern], ...]
    given: Output
    keys: tuple[str, ...]
    reader: PatternReader
    functions: tuple[ScalarFunction, ...] = ()

    def changed(self, name: str, kept: ChangedRule | None, change: Mapping[str, object]) -> ChangedRule | None:
        """What a change makes of a pattern; None where it changes nothing.

        Args:
            name: the pattern.
            kept: as earlier changes left it; None before the first.
            change: the fields of the change.

        Raises:
            FlowError: the change is none, its pattern cannot be read, or does not fit the events or the runs.
            UnknownName: the pattern is not there.
        """
        op, runs = str(change.get("op") or CHANGE), str(change.get("runs") or DROP)
        if op in UNCHANGED:
            return None
        if runs not in RUNS:
            raise FlowError(f"pattern {name!r}: runs are one of {', '.join(RUNS)}, got {runs!r}")
        versions = self._versions(name, kept)
        if runs == DRAIN:
            self._check_drains(name, versions)
        number = self._number(name, kept, change)
        if number is None:
            return None
        made = ChangedRule("", True, False, number, change.get("by"), change.get("at"))  # type: ignore[arg-type]  # a text or None
        if op in PUT:
            new = self._put(name, versions, number, change, runs)
            return replace(made, text=_written(new), enabled=enabled_after(kept, change.get("enabled")))
        if not versions or versions[0].drains:
            known = [each for each, _ in self.patterns]
            raise UnknownName(
                f"pattern {name!r} is not there, so it cannot be changed by {op!r}; {nearest(name, known)}"
            )
        if op in GONE:
            return replace(made, text=_written(self._without(name, versions, runs)), removed=True)
        if op not in (ENABLE, DISABLE):
            raise FlowError(f"pattern {name!r}: a change is one of {', '.join(OPS)}, got {op!r}")
        return replace(made, text=_written(self._switched(versions, number, op, runs)), enabled=op == ENABLE)

    def _check_drains(self, name: str, versions: list[PatternVersion]) -> None:
        """Operators begin again by themselves, so that what runs of them has no end to come to."""
        if any(isinstance(self.pattern_of(name, each), OperatorPattern) for each in versions):
            raise FlowError(f"pattern {name!r}: what runs of a pattern of operators cannot drain; say 'drop' or 'keep'")

    def _number(self, name: str, kept: ChangedRule | None, change: Mapping[str, object]) -> int | None:
        """The number of the new version: the next one, or that of the change; None where that is not newer."""
        last = kept.version if kept is not None else int(name in dict(self.patterns))
        given = change.get("version")
        if given is None:
            return last + 1
        assert isinstance(given, int), "the field is a whole number"
        return given if given > last else None

    def _put(
        self, name: str, versions: list[PatternVersion], number: int, change: Mapping[str, object], runs: str
    ) -> list[PatternVersion]:
        text = change.get("text")
        if not isinstance(text, str):
            raise FlowError(f"pattern {name!r}: a change has the text of the pattern, got {text!r}")
        new = PatternVersion(number, number, text, change.get("function"))  # type: ignore[arg-type]  # a text or None
        self.match_of(name, self.pattern_of(name, new))
        there = versions and not versions[0].drains
        if runs == KEEP and there:
            return [self._continued(name, versions[0], new), *versions[1:]]
        return [new, *(self._draining(name, versions) if runs == DRAIN else [])]

    def _continued(self, name: str, old: PatternVersion, new: PatternVersion) -> PatternVersion:
        """The new version with the runs of the old one, which must have the same stages and states."""
        before, after = (self.match_of(name, self.pattern_of(name, each)).shape for each in (old, new))
        if before != after:
            raise FlowError(
                f"pattern {name!r}: runs can be kept where stages and their order stay as they are; expected {before[0]}, got {after[0]}. "
                f"Say runs 'drain' to have them end with the old pattern, or 'drop'"
            )
        return replace(new, since=old.since)

    def _without(self, name: str, versions: list[PatternVersion], runs: str) -> list[PatternVersion]:
        if runs == KEEP:
            raise FlowError(f"pattern {name!r}: a pattern that is removed keeps no runs; say runs 'drain' or 'drop'")
        return self._draining(name, versions) if runs == DRAIN else []

    def _switched(self, versions: list[PatternVersion], number: int, op: str, runs: str) -> list[PatternVersion]:
        current, *draining = versions
        goes_on = op == ENABLE or runs == KEEP
        if op == DISABLE and runs == DRAIN:
            draining = [replace(current, drains=True), *draining][:MOST_DRAINING]
        elif not goes_on:
            draining = []
        return [replace(current, number=number, since=current.since if goes_on else number), *draining]

    @staticmethod
    def _draining(name: str, versions: list[PatternVersion]) -> list[PatternVersion]:
        if len(versions) > MOST_DRAINING:
            raise FlowError(
                f"pattern {name!r}: {MOST_DRAINING} older versions drain already; say runs 'drop' to end their runs"
            )
        return [replace(each, drains=True) for each in versions]

    def _versions(self, name: str, kept: ChangedRule | None) -> list[PatternVersion]:
        """The newest version first, then those whose runs go on to their end."""
        if kept is None:
            return [PatternVersion(1, 1)] if name in dict(self.patterns) else []
        return [PatternVersion(**each) for each in json.loads(kept.text or "[]")]

    def pattern_of(self, name: str, version: PatternVersion) -> AnyPattern:
        """The pattern of a version."""
        if version.text is None:
            return dict(self.patterns)[name]
        registry = registry_of(self.functions)
        made = _read(self.reader, name, version.text)
        if isinstance(made, OperatorPattern):
            return made
        change = lambda expr: with_functions(expr, registry) if registry else expr  # noqa: E731 - it is said once
        return replace(made, root=with_conditions(made.root, change))

    def match_of(self, name: str, pattern: AnyPattern) -> Match | OperatorMatch:
        """The step that would find the matches of a pattern, checked.

        Raises:
            FlowError: the pattern does not fit the events.
        """
        node = self._step(name, pattern)
        try:
            node.check((self.given,))
        except FlowError as error:
            raise type(error)(f"pattern {name!r}: {error}") from None
        return node

    def _step(self, name: str, pattern: AnyPattern) -> Match | OperatorMatch:
        events, time = (Port("events"),), self.given.event_time
        if isinstance(pattern, OperatorPattern):
            return OperatorMatch(name, events, self.keys, pattern=pattern, time=time)
        if pattern.limit is not None and pattern.limit.overflow is Overflow.ASIDE:
            raise FlowError(f"pattern {name!r}: expected a limit that drops or fails, got {pattern.limit}")
        return Match(name, events, self.keys, pattern=pattern, time=time)

    def after(self, changes: Iterable[tuple[str, ChangedRule]]) -> tuple[ActivePattern, ...]:
        """The patterns after changes: those of the flow in their order, then those that were added, by name."""
        changed = dict(changes)
        names = [*(name for name, _ in self.patterns), *sorted(changed.keys() - dict(self.patterns).keys())]
        return tuple(each for name in names for each in self._active(name, changed.get(name)))

    def _active(self, name: str, kept: ChangedRule | None) -> Iterator[ActivePattern]:
        for version in self._versions(name, kept):
            is_paused = kept is not None and not kept.enabled and not version.drains
            yield ActivePattern(name, version, self.pattern_of(name, version), is_paused)


def _written(versions: list[PatternVersion]) -> str:
    return json.dumps([vars(each) for each in versions])


@lru_cache(maxsize=1 << 12)
def _read(reader: PatternReader, name: str, text: str) -> AnyPattern:
    """A pattern from its text, which is read once however often others change."""
    return reader(name, text)
