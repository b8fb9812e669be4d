"""Running operators that start their part again: every, every-distinct, and repetitions."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from penstock.graph.times import FOREVER
from penstock.kernels.patterns.operators.base import FALSE, AnyRunning, Outcome, Running, Tick, highest, parts_of
from penstock.kernels.patterns.operators.match import Event, Match, Pool, numbers_of
from penstock.kernels.records.json_values import Json


@dataclass(slots=True)
class Copies:
    """The copies of a part that run, what was tagged before them, and the keys that were seen, each with its time."""

    match: Match
    copies: list[object]
    seen: dict[str, int] = field(default_factory=dict)


class RunningEvery(Running[Copies]):
    """Starts a copy of its part whenever one turns true, or becomes false."""

    def __init__(self, part: AnyRunning) -> None:
        self.part = part
        self.mask = part.mask

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Starts the first copy."""
        state = Copies(match, [])
        self._start(state, tick)
        return Outcome(state)

    def _start(self, state: Copies, tick: Tick) -> None:
        """Another copy; one that is true at its start would be so without end, and is left out."""
        made = self.part.start(state.match, tick)
        if made.state is not None and not made.matches:
            state.copies.append(made.state)

    def take(self, state: Copies, tick: Tick) -> Outcome:
        """What all copies turn true with."""
        before, state.copies = state.copies, []
        matches: list[Match] = []
        starts = 0
        for copy in before:
            outcome = self.part.take(copy, tick)
            matches += self.kept(state, outcome.matches, tick)
            starts += len(outcome.matches) or outcome.state is None
            if outcome.state is not None:
                state.copies.append(outcome.state)
        for _ in range(0 if tick.is_last else starts):
            self._start(state, tick)
        return Outcome(state, tuple(matches))

    def kept(self, state: Copies, matches: tuple[Match, ...], tick: Tick) -> tuple[Match, ...]:
        """Of what a copy turned true with, that which counts."""
        return matches

    def due(self, state: Copies) -> int:
        """The earliest of the copies."""
        return min(map(self.part.due, state.copies), default=FOREVER)

    def level(self, state: Copies, tick: Tick) -> int | None:
        """The highest of the copies."""
        return highest([self.part.level(copy, tick) for copy in state.copies])

    def discard(self, state: Copies, numbers: set[int], tick: Tick) -> Copies | None:
        """Without the copies that hold one of these events; a copy is started in the place of each."""
        if numbers & numbers_of(state.match):
            return None
        left = [self.part.discard(copy, numbers, tick) for copy in state.copies]
        state.copies = [copy for copy in left if copy is not None]
        for _ in range(len(left) - len(state.copies)):
            self._start(state, tick)
        return state

    def dump(self, state: Copies, pool: Pool) -> Json:
        """Its parts."""
        return [pool.put(state.match), [self.part.dump(c, pool) for c in state.copies], dict(state.seen)]

    def load(self, kept: Json, pool: Pool) -> Copies:
        """Its parts."""
        match, copies, seen = parts_of(kept)
        return Copies(pool.get(match), [self.part.load(c, pool) for c in copies], dict(seen))


KeyRun = Callable[[Match], list[Json]]
"""The keys of a match, as JSON."""


class RunningEveryDistinct(RunningEvery):
    """Passes on the first match of each key; with an expiry, of each key in as much time."""

    def __init__(self, part: AnyRunning, keys: KeyRun, expiry: int | None) -> None:
        super().__init__(part)
        self.keys, self.expiry = keys, expiry

    def kept(self, state: Copies, matches: tuple[Match, ...], tick: Tick) -> tuple[Match, ...]:
        """Those whose key has not been seen."""
        return tuple(match for match in matches if self._is_new(state, match, tick.time))

    def _is_new(self, state: Copies, match: Match, time: int) -> bool:
        if self.expiry is not None:
            state.seen = {key: at for key, at in state.seen.items() if time - at < self.expiry}
        key = json.dumps(self.keys(match))
        if key in state.seen:
            return False
        state.seen[key] = time
        return True


@dataclass(slots=True)
class Repetition:
    """A repetition that runs: what was tagged before it, its part, its end, how often the part was true, and what it tagged."""

    match: Match
    part: object
    until: object
    count: int = 0
    tagged: dict[str, tuple[Event, ...]] = field(default_factory=dict)


class RunningRepeat(Running[Repetition]):
    """Runs its part one time after the other."""

    def __init__(
        self, part: AnyRunning, until: AnyRunning | None, least: int, most: int | None, tags: tuple[str, ...]
    ) -> None:
        self.part, self.until = part, until
        self.mask = part.mask | (0 if until is None else until.mask)
        self.least, self.most, self.tags = least, most, tags
        self.is_exact = most is not None and least == most

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Starts the part and the end."""
        state = Repetition(match, None, None)
        until = None if self.until is None else self.until.start(match, tick)
        ended = self._until(state, until) or self._part(state, self.part.start(match, tick), tick, restarts=False)
        return ended or Outcome(state)

    def take(self, state: Repetition, tick: Tick) -> Outcome:
        """Ends with the end, whose event does not count; else counts what its part turns true with."""
        if state.until is not None and self.until is not None:
            ended = self._until(state, self.until.take(state.until, tick))
            if ended is not None:
                return ended
        if state.part is None:
            return Outcome(state)
        goes_on = not tick.is_last or self.most is not None
        return self._part(state, self.part.take(state.part, tick), tick, restarts=goes_on) or Outcome(state)

    def _part(self, state: Repetition, outcome: Outcome, tick: Tick, *, restarts: bool) -> Outcome | None:
        """Takes in what the part brought; the outcome where that ends the repetition."""
        if outcome.is_false:
            return FALSE
        state.part = outcome.state
        for match in outcome.matches:
            self._count(state, match)
            if state.count == self.most:
                state.part = None
                return Outcome(None, (self._made(state, {}),)) if self.is_exact else None
        if state.part is None and restarts:
            again = self.part.start(state.match, tick)
            state.part = None if again.matches else again.state
        return None

    def _count(self, state: Repetition, match: Match) -> None:
        state.count += 1
        for tag in self.tags:
            if tag in match:
                state.tagged[tag] = (*state.tagged.get(tag, ()), *match[tag])

    def _until(self, state: Repetition, outcome: Outcome | None) -> Outcome | None:
        """What the end brought; the outcome where that ends the repetition."""
        if outcome is None:
            return None
        state.until = outcome.state
        if outcome.is_false or (outcome.matches and state.count < self.least):
            return FALSE
        return Outcome(None, (self._made(state, outcome.matches[0]),)) if outcome.matches else None

    def _made(self, state: Repetition, end: Match) -> Match:
        return {**state.match, **end, **state.tagged}

    def _running(self, state: Repetition) -> list[tuple[AnyRunning, object]]:
        made = [] if state.part is None else [(self.part, state.part)]
        return made if self.until is None or state.until is None else [*made, (self.until, state.until)]

    def due(self, state: Repetition) -> int:
        """The earlier of the part and the end."""
        return min((each.due(one) for each, one in self._running(state)), default=FOREVER)

    def level(self, state: Repetition, tick: Tick) -> int | None:
        """The higher of the part and the end."""
        return highest([each.level(one, tick) for each, one in self._running(state)])

    def discard(self, state: Repetition, numbers: set[int], tick: Tick) -> Repetition | None:
        """Gone as soon as one of its events is, or its part or its end."""
        if numbers & (numbers_of(state.match) | numbers_of(state.tagged)):
            return None
        for name, each in (("part", self.part), ("until", self.until)):
            one = getattr(state, name)
            if one is not None and each is not None:
                left = each.discard(one, numbers, tick)
                if left is None:
                    return None
                setattr(state, name, left)
        return state

    def dump(self, state: Repetition, pool: Pool) -> Json:
        """Its parts."""
        part = None if state.part is None else [self.part.dump(state.part, pool)]
        until = None if state.until is None or self.until is None else [self.until.dump(state.until, pool)]
        return [pool.put(state.match), part, until, state.count, pool.put(state.tagged)]

    def load(self, kept: Json, pool: Pool) -> Repetition:
        """Its parts."""
        match, part, until, count, tagged = parts_of(kept)
        running = None if part is None else self.part.load(part[0], pool)
        ending = None if until is None or self.until is None else self.until.load(until[0], pool)
        return Repetition(pool.get(match), running, ending, count, dict(pool.get(tagged)))
