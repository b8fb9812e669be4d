"""The meaning of pattern operators, written as their definition: all of history is known, and an expression that is started at some instant has a trace.

A trace says at which instants the expression turns true and with what, and when it ends, if it does. It is slow, and shares no code with the evaluator.
Events are numbered; conditions compare the field `n` of an event with that of a tag.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from penstock.graph.expr import Call, GetField, to_text
from penstock.graph.patterns import operators as o

Match = dict[str, tuple[int, ...]]


class Instant(NamedTuple):
    """A moment: timers come before the events of their time."""

    time: int
    order: int = 0


class Given(NamedTuple):
    """An event of the history."""

    time: int
    kind: str
    n: int


class Turn(NamedTuple):
    """Where an expression turns true."""

    at: Instant
    match: Match


@dataclass
class Trace:
    """When an expression turns true, in order, and when it ends; None is never, as far as history goes."""

    turns: list[Turn]
    end: Instant | None = None

    @property
    def is_false(self) -> bool:
        """Whether it ends without turning true then."""
        return self.end is not None and not any(turn.at == self.end for turn in self.turns)


class Reference:
    """Traces over a history."""

    def __init__(self, events: list[Given]) -> None:
        self.events = events
        self.instants = [Instant(e.time, 1 + at) for at, e in enumerate(events)]
        self.horizon = Instant(events[-1].time, 1 + len(events)) if events else Instant(0)

    def matches(self, root: o.Operator) -> list[tuple[int, Match]]:
        """The matches, with their times."""
        if not self.events:
            return []
        start = Instant(self.events[0].time)
        return [(turn.at.time, turn.match) for turn in self.trace(root, {}, start).turns]

    def trace(self, each: o.Operator, match: Match, start: Instant) -> Trace:
        """The trace of an expression that is started after an instant."""
        made: Trace = getattr(self, type(each).__name__.lower())(each, match, start)
        made.turns.sort(key=lambda turn: turn.at)
        return made

    def filter(self, each: o.Filter, match: Match, start: Instant) -> Trace:
        """The first event that fits."""
        for number, at in enumerate(self.instants):
            if at > start and self.fits(each, match, number):
                return Trace([Turn(at, {**match, each.tag: (number,)} if each.tag else match)], at)
        return Trace([])

    def fits(self, each: o.Filter, match: Match, number: int) -> bool:
        """Whether an event is of the type, and has an `n` that is larger than that of a tag."""
        event = self.events[number]
        if event.kind != each.type:
            return False
        if each.condition is None:
            return True
        tag = to_text(each.condition).partition(" > ")[2].partition(".")[0]
        return tag != each.tag and tag in match and event.n > self.events[match[tag][-1]].n

    def timer(self, start: Instant, span: int) -> Instant | None:
        """The instant after a span; None where history ends before."""
        at = Instant(start.time + span)
        return at if at <= self.horizon else None

    def interval(self, each: o.Interval, match: Match, start: Instant) -> Trace:
        """When the span has passed."""
        assert isinstance(each.span, int)
        at = self.timer(start, each.span)
        return Trace([]) if at is None else Trace([Turn(at, match)], at)

    def every(self, each: o.Every, match: Match, start: Instant) -> Trace:
        """A copy at the start, one at each turn of a copy, and one where a copy becomes false."""
        return Trace(list(self.copies(each.part, match, start)))

    def copies(self, part: o.Operator, match: Match, start: Instant) -> Iterator[Turn]:
        waiting = [start]
        while waiting:
            trace = self.trace(part, match, waiting.pop(0))
            yield from trace.turns
            waiting += [turn.at for turn in trace.turns]
            waiting += [trace.end] if trace.is_false and trace.end is not None else []

    def everydistinct(self, each: o.EveryDistinct, match: Match, start: Instant) -> Trace:
        """Of the turns of the copies, the first for each key; with an expiry, the first in as much time."""
        seen: dict[int | None, int] = {}
        turns = []
        for turn in sorted(self.copies(each.part, match, start), key=lambda turn: turn.at):
            key = self.key(each, turn.match)
            last = seen.get(key)
            if last is None or (each.expiry is not None and turn.at.time - last >= each.expiry):
                seen[key] = turn.at.time
                turns.append(turn)
        return Trace(turns)

    def key(self, each: o.EveryDistinct, match: Match) -> int | None:
        (key,) = each.keys
        assert isinstance(key, GetField)
        tag = to_text(key).partition(".")[0]
        return self.events[match[tag][-1]].n if tag in match else None

    def repeat(self, each: o.Repeat, match: Match, start: Instant) -> Trace:
        """The part again and again, up to the end expression or the upper bound."""
        until = Trace([]) if each.until is None else self.trace(each.until, match, start)
        stop = until.turns[0].at if until.turns else until.end
        taken, end = self.rounds(each, match, start, stop)
        if end is not None:
            return Trace([], end)
        exact = each.least == each.most and len(taken) == each.most
        tagged = self.gathered(each, taken)
        if exact:
            at = taken[-1].at
            return Trace([Turn(at, {**match, **tagged})], at)
        if stop is None:
            return Trace([])
        if not until.turns or len(taken) < each.least:
            return Trace([], stop)
        return Trace([Turn(stop, {**match, **until.turns[0].match, **tagged})], stop)

    def rounds(
        self, each: o.Repeat, match: Match, start: Instant, stop: Instant | None
    ) -> tuple[list[Turn], Instant | None]:
        """The turns of the part that count, and where the part becomes false."""
        taken: list[Turn] = []
        while True:
            trace = self.trace(each.part, match, start)
            for turn in trace.turns:
                if (stop is not None and turn.at >= stop) or len(taken) == each.most:
                    return taken, None
                taken.append(turn)
            if len(taken) == each.most or trace.end is None or (stop is not None and trace.end >= stop):
                return taken, None
            if trace.is_false:
                return taken, trace.end
            start = trace.end

    def gathered(self, each: o.Repeat, taken: list[Turn]) -> Match:
        found = {tag: tuple(n for turn in taken for n in turn.match.get(tag, ())) for tag in o.tags_of(each.part)}
        return {tag: numbers for tag, numbers in found.items() if numbers}

    def not_(self, each: o.Not, match: Match, start: Instant) -> Trace:
        """True at once, false when the part has turned true for the last time."""
        part = self.trace(each.part, match, start)
        end = None if part.is_false else part.end
        return Trace([] if end == start else [Turn(start, match)], end)

    def and_(self, each: o.And, match: Match, start: Instant) -> Trace:
        """Combinations of the turns of all parts, up to the first part that is false."""
        traces = [self.trace(part, match, start) for part in each.parts]
        waits = [trace for part, trace in zip(each.parts, traces, strict=True) if not isinstance(part, o.Not)]
        known: list[list[Match]] = [[] for _ in traces]
        made: list[Turn] = []
        for at in self.steps(traces):
            if any(trace.is_false and trace.end == at for trace in traces):
                return Trace(made, at)
            fresh = [Turn(at, m) for m in self.combined(traces, known, at)]
            made += fresh
            if fresh and all(trace.end is not None and trace.end <= at for trace in waits):
                return Trace(made, at)
        return Trace(made)

    def combined(self, traces: list[Trace], known: list[list[Match]], at: Instant) -> Iterator[Match]:
        for index, trace in enumerate(traces):
            for turn in trace.turns:
                if turn.at == at:
                    choices = [[turn.match] if i == index else each for i, each in enumerate(known)]
                    for chosen in product(*choices):
                        yield {tag: numbers for one in chosen for tag, numbers in one.items()}
                    known[index].append(turn.match)

    def steps(self, traces: list[Trace]) -> list[Instant]:
        found = {turn.at for trace in traces for turn in trace.turns}
        return sorted(found | {trace.end for trace in traces if trace.end is not None})

    def or_(self, each: o.Or, match: Match, start: Instant) -> Trace:
        """The turns of all parts, up to the first that ends true."""
        traces = [self.trace(part, match, start) for part in each.parts]
        made: list[Turn] = []
        for at in self.steps(traces):
            for trace in traces:
                made += [turn for turn in trace.turns if turn.at == at]
                if trace.end == at and not trace.is_false:
                    return Trace(made, at)
            if all(trace.is_false and trace.end is not None and trace.end <= at for trace in traces):
                return Trace(made, at)
        return Trace(made)

    def followedby(self, each: o.FollowedBy, match: Match, start: Instant) -> Trace:
        """A copy of a part for each turn of the one before it; over when all copies are."""
        made, ends = self.following(each, 0, match, start)
        end = None if None in ends else max(at for at in ends if at is not None)
        return Trace(made, end)

    def following(
        self, each: o.FollowedBy, index: int, match: Match, start: Instant
    ) -> tuple[list[Turn], list[Instant | None]]:
        trace = self.trace(each.parts[index], match, start)
        if index == len(each.parts) - 1:
            return trace.turns, [trace.end]
        made: list[Turn] = []
        ends: list[Instant | None] = [trace.end]
        for turn in trace.turns:
            further, over = self.following(each, index + 1, turn.match, turn.at)
            made += further
            ends += over
        return made, ends

    def within(self, each: o.Within, match: Match, start: Instant) -> Trace:
        """The turns of the part before time is up, and no more of them than allowed."""
        assert isinstance(each.span, int)
        part, up = self.trace(each.part, match, start), self.timer(start, each.span)
        turns = [turn for turn in part.turns if up is None or turn.at < up]
        end = part.end if part.end is not None and (up is None or part.end < up) else up
        if each.most is not None and len(turns) > each.most:
            return Trace(turns[: each.most], turns[each.most].at)
        return Trace(turns, end)

    def while_(self, each: o.While, match: Match, start: Instant) -> Trace:
        """The turns of the part up to the first for which the condition does not hold."""
        part = self.trace(each.part, match, start)
        for at, turn in enumerate(part.turns):
            if not self.holds(each, turn.match):
                return Trace(part.turns[:at], turn.at)
        return part

    def holds(self, each: o.While, match: Match) -> bool:
        """`a.n > 1`."""
        assert isinstance(each.condition, Call)
        left, _, right = to_text(each.condition).partition(" > ")
        tag = left.partition(".")[0]
        return tag in match and self.events[match[tag][-1]].n > int(right)


for _name, _method in (
    ("not", Reference.not_),
    ("and", Reference.and_),
    ("or", Reference.or_),
    ("while", Reference.while_),
):
    setattr(Reference, _name, _method)
