"""Why a list of events did or did not match a pattern: what each event satisfies, and what becomes of each run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeAlias

from penstock.errors import FlowError, StepError
from penstock.frontends.streams.flow import Flow
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.graph.duration import shown
from penstock.graph.endpoints.basic import items, nothing
from penstock.graph.nodes import Match, OperatorMatch
from penstock.graph.nodes.patterns.operator_match import event_schema
from penstock.graph.patterns.automaton import Action, Kind
from penstock.graph.patterns.operators import OperatorPattern
from penstock.graph.patterns.pattern import Pattern, Skip
from penstock.graph.patterns.row_pattern import MatchClause
from penstock.graph.patterns.selected import SelectedPattern
from penstock.graph.schema import Form
from penstock.graph.times import FOREVER, to_micros
from penstock.kernels.base import RecordFailed
from penstock.kernels.patterns.masks import Masks, RunTests
from penstock.kernels.patterns.queue import Last, MatchQueue, Run, RunQueue
from penstock.kernels.patterns.transitions import Transitions
from penstock.kernels.patterns.walk import RunEvents, Walk, events_of, first_run
from penstock.kernels.records.chunk import Chunk
from penstock.testing.driver import run_local
from penstock.testing.explanation import Events, Explanation, shown_events, shown_fields
from penstock.testing.operator_patterns import OperatorExplainer

AnyPattern: TypeAlias = "PatternBuilder | Pattern | SelectedPattern | OperatorPattern"


def explain_match(pattern: AnyPattern, events: Iterable[Any], schema: Form, *, event_time: str = "") -> Explanation:
    """Says why events of one key did or did not match a pattern. The events are looked at one by one, as the step would.

    Args:
        pattern: the pattern: of stages, SASE's, a vendor's JSON, or pattern text.
        events: the events of a key, as `ps.items` takes them.
        schema: their fields.
        event_time: the field with the time of an event, by which they are put in order; needed for patterns with `within` or timers.

    Returns:
        What each event satisfied, which runs it began, carried on and ended, and the matches; print it.

    Raises:
        FlowError: the pattern is not sound, or does not fit the fields.
        ExpressionError: a condition cannot be read or typed.
        StepError: a condition fails on an event.

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
    try:
        if isinstance(node, OperatorMatch):
            return OperatorExplainer(node, chunk, event_time).explain()
        return _Explainer(node, chunk, event_time).explain()
    except RecordFailed as failed:
        raise StepError(failed.failure("an event that is explained")) from failed.error


def _given(
    pattern: AnyPattern, events: Iterable[Any], schema: Form, event_time: str
) -> tuple[Match | OperatorMatch, Chunk]:
    if isinstance(pattern, MatchClause):
        raise FlowError("explain_match takes a pattern, got a row pattern; use explain_rows for it")
    flow = Flow("explain")
    source = flow.source("events", items([], schema), event_time=event_time or None)
    source.match("explained", pattern).sink("out", nothing())
    node = flow.graph.node("explained")
    assert isinstance(node, Match | OperatorMatch)
    given = flow.graph.output(node.inputs[0]).schema
    event = node.event_schema(given) if isinstance(node, Match) else event_schema(given)
    rows = _read(events, schema, event_time)
    if event_time:
        at = event.names.index(event_time)
        rows.sort(key=lambda row: row[at])
    return node, Chunk.of(event, rows)


def _read(events: Iterable[Any], schema: Form, event_time: str) -> list[tuple[Any, ...]]:
    """Events as a source reads them."""
    flow = Flow("read")
    flow.source("events", items([], schema), event_time=event_time or None).sink("out", nothing())
    return [tuple(row) for row in run_local(flow, {"events": list(events)})["out"]]


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
        after, limit = node.pattern.after_match, node.pattern.limit
        self.walk = Walk(Transitions(self.automaton, masks.plain), after, times, seen, self.asked, limit=limit)
        self.plain = masks.plain
        self.lines: list[str] = []

    def explain(self) -> Explanation:
        """All events, and what is left at the end."""
        runs, done = RunQueue([first_run(self.walk.start)]), MatchQueue()
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

    def _passes(self, runs: RunQueue, done: MatchQueue) -> None:
        """Lets time pass for good, so that absences become sure."""
        before = len(self.walk.matches), len(self.walk.timed_out)
        self.walk.expire(0, runs, done, FOREVER)
        for found, count, word in (
            (self.walk.matches, before[0], "is a match"),
            (self.walk.timed_out, before[1], "has timed out"),
        ):
            self.lines += [f"once its time is up the run {self._shown(each.taken)} {word}" for each in found[count:]]

    def _ends(self, runs: RunQueue, done: MatchQueue) -> None:
        """Ends the input, so that no run decides any more what is dropped."""
        before = len(self.walk.matches)
        self.walk.end(0, runs, done)
        self.lines += [
            f"at the end {self._shown(each.taken)} is a match: it waited for runs that began before it"
            for each in self.walk.matches[before:]
        ]

    def _event(self, at: int, runs: RunQueue, done: MatchQueue) -> RunQueue:
        self.lines.append(f"{at + 1} ({self._fields(at)}): satisfies {self._satisfied(at, runs)}")
        over = [run for run in runs if self.walk.deadline(run) <= self.walk.times[at]]
        before = [run for run in runs if run not in over]
        found, dropped = len(self.walk.matches), len(self.walk.dropped)
        after = self.walk.key(0, at, at + 1, runs, done)
        happened = [
            *self._over(over),
            *self._taken(at, before, after),
            *self._ended(at, before, after, self.walk.matches[found:], self.walk.dropped[dropped:]),
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

    def _ended(
        self, at: int, before: list[Run], after: RunQueue, found: list[RunEvents], dropped: list[RunEvents]
    ) -> Iterator[str]:
        too_many = [tuple(events_of(each.taken)) for each in dropped]
        kept = Counter(map(_links, after))
        for run in before:
            links = _links(run)
            if run[2] is None or any(each[: len(links)] == links for each in kept):
                continue
            if any(tuple(events_of(each.taken))[: len(links)] == links for each in found):
                continue
            why = self._limited() if links in too_many else self._reason(at, run, bool(found))
            yield f"ends the run {self._shown(run[2])}: {why}"

    def _limited(self) -> str:
        limit = self.node.pattern.limit
        return "" if limit is None else f"a key may have {limit.runs:,} at a time, and it is the oldest"

    def _reason(self, at: int, run: Run, matched: bool) -> str:
        """Why a run ended at an event."""
        stopped = [self.automaton.states[way.target].name for way in self._open(at, run) if self._stops(way.target)]
        if stopped:
            return f"the event is {stopped[0]}, which must not happen"
        if matched and self.node.pattern.after_match.skip is not Skip.NONE:
            return f"after_match {self.node.pattern.after_match} drops it"
        ended = [str(self.automaton.tests[test]) for test in self._untils(run) if self._holds(test, at, run[2])]
        if ended:
            return f"the event satisfies {' and '.join(ended)}, which ends the loop, and nothing else may come next"
        return f"the very next event had to satisfy {self._state(run)}"

    def _untils(self, run: Run) -> set[int]:
        """The conditions that end the loop in which a run is."""
        guards = (way.guard for way in self.automaton.states[run[0]].transitions)
        asked = {test for guard in guards for clause in guard for test, _ in clause}
        return {test for test in asked if self.automaton.tests[test].until}

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
            if any(self._would_hold(number, at, each) for each in taken)
        ]
        return ", ".join(named) or "no condition"

    def _would_hold(self, test: int, at: int, taken: Last) -> bool:
        """Whether a condition holds for a run, which need not be one that asks for it: where it fails then, it does not."""
        try:
            return self._holds(test, at, taken)
        except RecordFailed:
            return False

    def _fields(self, at: int) -> str:
        return shown_fields(self.names, self.values[at])

    def _events(self, taken: Last) -> Events:
        found: Events = {}
        for stage, at in events_of(taken):
            found.setdefault(self.automaton.stages[stage], []).append(at + 1)
        return found

    def _shown(self, taken: Last) -> str:
        return shown_events(self._events(taken))

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
