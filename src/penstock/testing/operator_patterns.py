"""Why a list of events did or did not match a pattern of operators: what each event fits, and what turns true with it."""

from __future__ import annotations

from penstock.graph.nodes import OperatorMatch
from penstock.graph.patterns.operators import filters_of
from penstock.graph.times import FOREVER, to_micros, to_moment
from penstock.kernels.base import RecordFailed
from penstock.kernels.patterns.operators.build import running
from penstock.kernels.patterns.operators.hits import Hits
from penstock.kernels.patterns.operators.machine import Found, Machine
from penstock.kernels.patterns.operators.match import Match, Pool, numbers_of
from penstock.kernels.records.chunk import Chunk
from penstock.testing.explanation import Events, Explanation, shown_events, shown_fields

MORE = "more events, or time"
"""What a part of a pattern of operators waits for."""


class OperatorExplainer:
    """Looks at events one by one.

    Args:
        node: the step.
        chunk: the events of a key, in order.
        event_time: the field with their time; without it they are a microsecond apart.
    """

    def __init__(self, node: OperatorMatch, chunk: Chunk, event_time: str) -> None:
        self.node, self.schema = node, chunk.shape.schema
        self.values = list(chunk.values())
        self.times = list(range(len(self.values)))
        if event_time:
            self.times = [to_micros(row[self.schema.names.index(event_time)]) for row in self.values]
        made = running(node.pattern, self.schema)
        self.filters = filters_of(node.pattern.root)
        self.hits = Hits(made.filters, self.schema).of(chunk.batch(), self.values, self._fails) if self.values else []
        self.machine = Machine(node.pattern, made, self.schema)
        self.lines: list[str] = []
        self.matches: list[Events] = []

    def _fails(self, at: int, error: Exception) -> None:
        raise RecordFailed(self.node, self.values[at], at, error) from error

    def explain(self) -> Explanation:
        """All events, and what time alone brings after them."""
        for at in range(len(self.values)):
            self._event(at)
        left = self._held()
        self.lines += [f"at the end {shown_events(each)} waits for {MORE}" for each in left]
        self._passes(FOREVER, "once all time has passed", "once all time has passed")
        self.lines += [f"match: {shown_events(each)}" for each in self.matches] or ["no match"]
        return Explanation(self.matches, [], [(each, MORE) for each in left], tuple(self.lines))

    def _event(self, at: int) -> None:
        self.lines.append(
            f"{at + 1} ({shown_fields(self.schema.names, self.values[at])}): satisfies {self._satisfied(at)}"
        )
        if self.machine.has_started and self.machine.state is None:
            self.lines.append("  changes nothing: the pattern has ended, and no every starts it again")
            return
        said = len(self.lines)
        self._passes(self.times[at], "  before it, at {}", "  before it")
        before = self._held()
        found = self._asked(at)
        self.lines += [f"  {line}" for line in (*self._happened(before, found), *self._dropped(at))]
        if len(self.lines) == said:
            self.lines.append("  changes nothing")

    def _asked(self, at: int) -> list[Found]:
        try:
            return self.machine.take(self.times[at], self.values[at], self.hits[at])
        except Exception as error:
            raise RecordFailed(self.node, self.values[at], at, error) from error

    def _passes(self, until: int, at: str, then: str) -> None:
        """Lets time pass; what timers bring on the way, `at` a moment or by `then`."""
        if not self.machine.has_started:
            return
        before = self._held()
        found = self.machine.move(until)
        for each in found:
            moment = to_moment(each.time).isoformat()
            self.lines.append(f"{at.format(moment)} time completes a match{self._counted(each.match)}")
        gone = _gone(before, self._held(), found)
        self.lines += [f"{then} the time of {shown_events(each)} is up" for each in gone]

    def _happened(self, before: list[Events], found: list[Found]) -> list[str]:
        after = self._held()
        said = [f"goes on: {shown_events(each)}; it waits for {MORE}" for each in after if each not in before]
        said += [f"completes a match{self._counted(each.match)}" for each in found]
        gone = _gone(before, after, found)
        said += [f"ends {shown_events(each)}: what must hold until then holds no more" for each in gone]
        if self.machine.state is None and not found:
            said.append("makes the pattern false for ever: nothing after it can match")
        return said

    def _dropped(self, at: int) -> list[str]:
        """What a limit ends."""
        limit, before = self.node.pattern.limit, self._held()
        if limit is None or not self.hits[at] or not self.machine.keep(limit.runs, self.times[at]):
            return []
        return [f"drops {shown_events(each)}: there may be {limit}" for each in before if each not in self._held()]

    def _counted(self, match: Match) -> str:
        """A match as text, which is one from now on."""
        events = _events(match)
        self.matches.append(events)
        return f": {shown_events(events)}" if events else ""

    def _satisfied(self, at: int) -> str:
        """The filters that an event fits; of one that looks at events before it, as far as the event alone decides."""
        named = [str(each) for bit, each in enumerate(self.filters) if self.hits[at] >> bit & 1]
        return ", ".join(dict.fromkeys(named)) or "no filter"

    def _held(self) -> list[Events]:
        """What parts of the pattern that wait have tagged so far."""
        if self.machine.state is None:
            return []
        pool = Pool(self.schema)
        self.machine.running.root.dump(self.machine.state, pool)
        return [_events(match) for match in pool.matches if match]


def _events(match: Match) -> Events:
    return {tag: [event.number + 1 for event in events] for tag, events in match.items() if events}


def _gone(before: list[Events], after: list[Events], found: list[Found]) -> list[Events]:
    """What was tagged, and neither goes on nor is in a match."""
    left = [*map(_numbers, after), *({number + 1 for number in numbers_of(each.match)} for each in found)]
    return [each for each in before if not any(_numbers(each) <= numbers for numbers in left)]


def _numbers(events: Events) -> set[int]:
    return {number for each in events.values() for number in each}
