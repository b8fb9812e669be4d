"""What runs for one key: the state of a pattern, moved by events and by time."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import NamedTuple

from penstock.graph.patterns.operators import OperatorPattern
from penstock.graph.schema import Schema
from penstock.graph.times import FOREVER
from penstock.kernels.patterns.operators.base import Outcome, Tick
from penstock.kernels.patterns.operators.build import RunningPattern
from penstock.kernels.patterns.operators.match import NOTHING, Event, Match, Pool, numbers_of

MOST = 10_000
"""How many timers may be due at one moment of a key; more is a pattern that goes round in circles."""


class Found(NamedTuple):
    """A match, and the time at which the pattern turned true."""

    time: int
    match: Match


class Held(NamedTuple):
    """What a machine holds: when each match that it has begun did so, and how many events there are in them."""

    began: tuple[int, ...] = ()
    events: int = 0


class Machine:
    """A pattern over the events of one key. It starts with the first of them, and is over when the pattern has ended."""

    def __init__(self, pattern: OperatorPattern, running: RunningPattern, schema: Schema) -> None:
        self.pattern, self.running, self.schema = pattern, running, schema
        self.state: object = None
        self.next_number = 0
        self.held = Held()
        """What it held when it was loaded or dumped."""

    @property
    def has_started(self) -> bool:
        """Whether an event was taken."""
        return self.next_number > 0

    @property
    def due(self) -> int:
        """When the next timer is due; FOREVER when there is none."""
        return FOREVER if self.state is None else self.running.root.due(self.state)

    def take(self, time: int, values: tuple[object, ...], hits: int) -> list[Found]:
        """What an event completes, and the timers up to its time before it."""
        found = self._start(time) if not self.has_started else []
        found += self.move(time)
        event = Event(self.next_number, time, values)
        self.next_number += 1
        if hits and self.state is not None:
            found += self._tick(Tick(time, event, hits))
        return found

    def move(self, time: int) -> list[Found]:
        """What timers complete up to a time; FOREVER is the end of the input, with which all of them come."""
        found: list[Found] = []
        at, rounds = FOREVER, 0
        while self.state is not None and (due := self.due) <= time and due < FOREVER:
            rounds = rounds + 1 if due == at else 0
            at = due
            if rounds > MOST:
                raise RuntimeError(f"the pattern {self.pattern} turns true without end at one moment")
            found += self._tick(Tick(due, is_last=time >= FOREVER))
        return found

    def _start(self, time: int) -> list[Found]:
        tick = Tick(time)
        return self._found(self.running.root.start(NOTHING, tick), tick)

    def _tick(self, tick: Tick) -> list[Found]:
        if self.running.consumes and tick.event is not None:
            tick = tick._replace(level=self.running.root.level(self.state, tick))
        return self._found(self.running.root.take(self.state, tick), tick)

    def _found(self, outcome: Outcome, tick: Tick) -> list[Found]:
        self.state = outcome.state
        matches = _apart(outcome.matches) if self.pattern.suppress_overlapping else list(outcome.matches)
        if self.pattern.discard_partials and matches and self.state is not None:
            numbers = set().union(*map(numbers_of, matches))
            self.state = self.running.root.discard(self.state, numbers, tick)
        return [Found(tick.time, match) for match in matches]

    def keep(self, most: int, time: int) -> int:
        """Ends the matches that began first while more are begun than may be; how many have ended."""
        ended, begun = 0, self.begun()
        while len(begun) > most and self.state is not None:
            oldest = min(min(numbers_of(match)) for match in begun)
            self.state = self.running.root.discard(self.state, {oldest}, Tick(time))
            left = self.begun()
            if len(left) == len(begun):
                break
            ended, begun = ended + len(begun) - len(left), left
        return ended

    def begun(self) -> list[Match]:
        """The matches that are begun: what has been tagged for each."""
        pool = Pool(self.schema)
        if self.state is not None:
            self.running.root.dump(self.state, pool)
        return [match for match in pool.matches if numbers_of(match)]

    def dump(self) -> str:
        """All of it as JSON."""
        pool = Pool(self.schema)
        state = None if self.state is None else [self.running.root.dump(self.state, pool)]
        self.held = _held(pool)
        return json.dumps({"taken": self.next_number, "state": state, **pool.dump()}, separators=(",", ":"))

    def kept_state(self) -> object:
        """What it would keep of its state, and the events in it, to be compared with that of another."""
        pool = Pool(self.schema)
        return (None if self.state is None else [self.running.root.dump(self.state, pool)], pool.dump())

    def load(self, kept: str) -> Machine:
        """The same machine with what was kept."""
        made = json.loads(kept)
        self.next_number = made["taken"]
        state = made["state"]
        pool = Pool(self.schema, made)
        self.held = _held(pool)
        self.state = None if state is None else self.running.root.load(state[0], pool)
        return self


def held_by(kept: str) -> Held:
    """What a machine holds, from what was kept of it."""
    made = json.loads(kept)
    times = {number: event[0] for number, event in made["events"].items()}
    begun = [[times[str(n)] for numbers in match.values() for n in numbers] for match in made["matches"]]
    return Held(tuple(min(each) for each in begun if each), len(times))


def _held(pool: Pool) -> Held:
    begun = [[event.time for events in match.values() for event in events] for match in pool.matches]
    return Held(tuple(min(each) for each in begun if each), len(pool.events))


def _apart(matches: Iterable[Match]) -> list[Match]:
    """Of matches that come at once, those that share no event with one before."""
    made: list[Match] = []
    taken: set[int] = set()
    for match in matches:
        numbers = numbers_of(match)
        if not numbers & taken:
            made.append(match)
            taken |= numbers
    return made
