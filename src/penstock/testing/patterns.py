"""Why a list of events did or did not match a pattern: what each event satisfies, and what becomes of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeAlias

from penstock.frontends.streams.flow import Flow
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.graph.duration import shown
from penstock.graph.endpoints.basic import items, nothing
from penstock.graph.nodes import Match
from penstock.graph.patterns.automaton import Action, Kind
from penstock.graph.patterns.pattern import Pattern, Skip
from penstock.graph.schema import Form
from penstock.graph.times import FOREVER, to_micros
from penstock.kernels.patterns.masks import Masks, RunTests
from penstock.kernels.patterns.queue import Last, Run, RunQueue
from penstock.kernels.patterns.transitions import Transitions
from penstock.kernels.patterns.walk import RunEvents, Walk, events_of, first_run
from penstock.kernels.records.chunk import Chunk

Events: TypeAlias = dict[str, list[int]]
"""The numbers of the events that each stage has taken, from 1."""


@dataclass(frozen=True)
class Explanation:
    """What became of a list of events; as text, line by line.

    Args:
        matches: the events of each match, by stage, numbered from 1 in the order in which they are looked at.
        timed_out: the events of each run whose time was up.
        open: the events of each run that still waits when the events end, and what it waits for.
        lines: what each event did.

    >>> import penstock as ps
    >>> from penstock.testing import explain_match
    >>> paid = ps.pattern("paid").begin("order", "kind = 'order'").next("paid", "kind = 'paid'")
    >>> explain_match(paid, ["order", "paid"], "kind string").matches
    [{'order': [1], 'paid': [2]}]
    """

    matches: list[Events] = field(default_factory=list)
    timed_out: list[Events] = field(default_factory=list)
    open: list[tuple[Events, str]] = field(default_factory=list)
    lines: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.lines)


def explain_match(
    pattern: PatternBuilder | Pattern, events: Iterable[Any], schema: Form, *, event_time: str = ""
) -> Explanation:
    """Says why events of one key did or did not match a pattern. The events are looked at one by one, as the step would.

    Args:
        pattern: the pattern.
        events: the events of a key, as `ps.items` takes them.
        schema: their fields.
        event_time: the field with the time of an event, by which they are put in order; needed for patterns with `within`.

    Returns:
        What each event satisfied, which runs it began, carried on and ended, and the matches; print it.

    Raises:
        FlowError: the pattern is not sound, or does not fit the fields.
        ExpressionError: a condition cannot be read or typed.

    >>> import penstock as ps
    >>> from penstock.testing import explain_match
    >>> paid = ps.pattern("paid").begin("order", "kind = 'order'").next("paid", "kind = 'paid'")
    >>> print(explain_match(paid, ["order", "look", "paid"], "kind string"))
    1 (kind='order'): satisfies order
      begins a run: order=1; it waits for paid
    2 (kind='look'): satisfies no condition
      ends the run order=1: the very next event had to satisfy paid
    3 (kind='paid'): satisfies paid
      changes nothing
    no match
    """
    node, chunk = _given(pattern, events, schema, event_time)
    return _Explainer(node, chunk, event_time).explain()


def _given(
    pattern: PatternBuilder | Pattern, events: Iterable[Any], schema: Form, event_time: str
) -> tuple[Match, Chunk]:
    flow = Flow("explain")
    source = flow.source("events", items([], schema), event_time=event_time or None)
    source.match("explained", pattern).sink("out", nothing())
    node = flow.graph.node("explained")
    assert isinstance(node, Match)
    event = node.event_schema(flow.graph.output(node.inputs[0]).schema)
    made = Chunk.of(event, list(events))
    if not event_time:
        return node, made
    at = event.names.index(event_time)
    rows = sorted(made.values(), key=lambda row: row[at])
    return node, Chunk(event, columns=[list(column) for column in zip(*rows, strict=True)])


class _Explainer:
    """Looks at events one by one."""

    def __init__(self, node: Match, chunk: Chunk, event_time: str) -> None:
        self.node, self.automaton = node, node.automaton
        self.names, self.values = chunk.shape.schema.names, list(chunk.values())
        masks = Masks(node, chunk.shape.schema)
        self.asking = RunTests(node, chunk.shape.schema, masks.plain)
        self.asked = self.asking.over(self.values, chunk.rows) if self.asking else None
        times = list(range(len(self.values)))
        if event_time:
            times = [to_micros(row[self.names.index(event_time)]) for row in self.values]
        seen = masks.of(chunk.batch()).tolist() if self.values else []
        self.walk = Walk(Transitions(self.automaton, masks.plain), node.pattern.after_match, times, seen, self.asked)
        self.plain = masks.plain
        self.lines: list[str] = []

    def explain(self) -> Explanation:
        """All events, and what is left at the end."""
        runs, done = RunQueue([first_run(self.walk.start)]), RunQueue()
        for at in range(len(self.values)):
            runs = self._event(at, runs, done)
        left = [run for run in runs if run[2] is not None]
        self.lines += [f"at the end the run {self._shown(run[2])} waits for {self._state(run)}" for run in left]
        if any(self.walk.deadline(run) <= FOREVER for run in left) or any(self._is_pending(run) for run in left):
            self._passes(runs, done)
        self._ends(runs, done)
        self.lines += [f"match: {self._shown(each.taken)}" for each in self.walk.matches] or ["no match"]
        return Explanation(
            [self._events(each.taken) for each in self.walk.matches],
            [self._events(each.taken) for each in self.walk.timed_out],
            [(self._events(run[2]), self._state(run)) for run in left],
            tuple(self.lines),
        )

    def _passes(self, runs: RunQueue, done: RunQueue) -> None:
        """Lets time pass for good, so that absences become sure."""
        before = len(self.walk.matches), len(self.walk.timed_out)
        self.walk.expire(0, runs, done, FOREVER)
        for found, count, word in (
            (self.walk.matches, before[0], "is a match"),
            (self.walk.timed_out, before[1], "has timed out"),
        ):
            self.lines += [f"once its time is up the run {self._shown(each.taken)} {word}" for each in found[count:]]

    def _ends(self, runs: RunQueue, done: RunQueue) -> None:
        """Ends the input, so that no run decides any more what is dropped."""
        before = len(self.walk.matches)
        self.walk.end(0, runs, done)
        self.lines += [
            f"at the end {self._shown(each.taken)} is a match: it waited for runs that began before it"
            for each in self.walk.matches[before:]
        ]

    def _event(self, at: int, runs: RunQueue, done: RunQueue) -> RunQueue:
        self.lines.append(f"{at + 1} ({self._fields(at)}): satisfies {self._satisfied(at, runs)}")
        over = [run for run in runs if self.walk.deadline(run) <= self.walk.times[at]]
        before, found = [run for run in runs if run not in over], len(self.walk.matches)
        after = self.walk.key(0, at, at + 1, runs, done)
        happened = [
            *self._over(over),
            *self._taken(at, before, after),
            *self._ended(at, before, after, self.walk.matches[found:]),
            *(f"is the last event of a match: {self._shown(each.taken)}" for each in self.walk.matches[found:]),
        ]
        self.lines += [f"  {line}" for line in happened] or ["  changes nothing"]
        return after

    def _over(self, runs: list[Run]) -> Iterator[str]:
        for run in runs:
            end = "is a match: its time is up and nothing happened" if self._is_pending(run) else "has timed out"
            yield f"before it the run {self._shown(run[2])} {end}{self._span()}"

    def _taken(self, at: int, before: list[Run], after: RunQueue) -> Iterator[str]:
        for run in after:
            if run[2] is None or run[2][1] != at:
                continue
            what = "begins a run" if run[2][2] is None else f"is taken as {self.automaton.stages[run[2][0]]}"
            yield f"{what}: {self._shown(run[2])}; it waits for {self._state(run)}"

    def _ended(self, at: int, before: list[Run], after: RunQueue, found: list[RunEvents]) -> Iterator[str]:
        kept = Counter(map(_links, after))
        for run in before:
            links = _links(run)
            if run[2] is None or any(each[: len(links)] == links for each in kept):
                continue
            if any(tuple(events_of(each.taken))[: len(links)] == links for each in found):
                continue
            yield f"ends the run {self._shown(run[2])}: {self._reason(at, run, bool(found))}"

    def _reason(self, at: int, run: Run, matched: bool) -> str:
        """Why a run ended at an event."""
        stopped = [self.automaton.states[way.target].name for way in self._open(at, run) if self._stops(way.target)]
        if stopped:
            return f"the event is {stopped[0]}, which must not happen"
        if matched and self.node.pattern.after_match.skip is not Skip.NONE:
            return f"after_match {self.node.pattern.after_match} drops it"
        return f"the very next event had to satisfy {self._state(run)}"

    def _open(self, at: int, run: Run) -> Iterator[Any]:
        """The ways out of the state of a run, those of states to which it proceeds too, that the event may take."""
        waiting = [run[0]]
        while waiting:
            for way in self.automaton.states[waiting.pop()].transitions:
                if all(any(self._holds(test, at, run[2]) == wanted for test, wanted in clause) for clause in way.guard):
                    yield way
                    if way.action is Action.PROCEED and not self._stops(way.target):
                        waiting.append(way.target)

    def _holds(self, test: int, at: int, taken: Last) -> bool:
        if self.plain >> test & 1 or self.asked is None:
            return bool(self.walk.masks[at] >> test & 1)
        return self.asked(test, at, taken)

    def _satisfied(self, at: int, runs: RunQueue) -> str:
        """The conditions that an event satisfies; of those that look at what was taken, for some run."""
        taken: list[Last] = [run[2] for run in runs]
        named = [
            str(test)
            for number, test in enumerate(self.automaton.tests)
            if any(self._holds(number, at, each) for each in taken)
        ]
        return ", ".join(named) or "no condition"

    def _fields(self, at: int) -> str:
        return ", ".join(f"{name}={_text(value)}" for name, value in zip(self.names, self.values[at], strict=True))

    def _events(self, taken: Last) -> Events:
        found: Events = {}
        for stage, at in events_of(taken):
            found.setdefault(self.automaton.stages[stage], []).append(at + 1)
        return found

    def _shown(self, taken: Last) -> str:
        return " ".join(f"{stage}={','.join(map(str, numbers))}" for stage, numbers in self._events(taken).items())

    def _state(self, run: Run) -> str:
        return self.automaton.waits_for(run[0])

    def _is_pending(self, run: Run) -> bool:
        return self.automaton.states[run[0]].kind is Kind.PENDING

    def _stops(self, state: int) -> bool:
        return self.automaton.states[state].kind is Kind.STOP

    def _span(self) -> str:
        within = self.automaton.within
        return f" (within {shown(within)})" if within is not None else ""


def _links(run: Run) -> tuple[tuple[int, int], ...]:
    return tuple(events_of(run[2]))


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else repr(value)
