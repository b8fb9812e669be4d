"""Running atoms: filters and timers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.graph.patterns.calendar import CrontabTimes, ScheduleTimes
from penstock.kernels.patterns.operators.base import FALSE, Outcome, Running, Tick, parts_of
from penstock.kernels.patterns.operators.looks import Run
from penstock.kernels.patterns.operators.match import Event, Match, Pool, numbers_of
from penstock.kernels.records.json_values import Json


class RunningFilter(Running[Match]):
    """Waits for an event. Its state is what was tagged before.

    `bit` is set in the hits of a tick whose event fits as far as it alone decides; `rest` is the part of the condition that looks at other events.
    """

    def __init__(self, tag: str, bit: int, rest: Run | None, consume: int | None = None) -> None:
        self.tag, self.bit, self.rest, self.consume = tag, bit, rest, consume
        self.mask = bit

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Waits from the next event on."""
        return Outcome(match)

    def take(self, state: Match, tick: Tick) -> Outcome:
        """True with the first event that fits and is not consumed by another filter."""
        if not tick.hits & self.bit or tick.event is None:
            return Outcome(state)
        if (tick.level is not None and self.consume != tick.level) or not self._fits(state, tick.event):
            return Outcome(state)
        return Outcome(None, ({**state, self.tag: (tick.event,)} if self.tag else state,))

    def _fits(self, state: Match, event: Event) -> bool:
        return self.rest is None or self.rest(state, event.values) is True

    def level(self, state: Match, tick: Tick) -> int | None:
        """Its level, where it would take the event."""
        if self.consume is None or not tick.hits & self.bit or tick.event is None:
            return None
        return self.consume if self._fits(state, tick.event) else None

    def discard(self, state: Match, numbers: set[int], tick: Tick) -> Match | None:
        """Gone if an event before it is."""
        return None if numbers & numbers_of(state) else state

    def dump(self, state: Match, pool: Pool) -> Json:
        """The number of the match."""
        return pool.put(state)

    def load(self, kept: Json, pool: Pool) -> Match:
        """The match of the number."""
        return pool.get(kept)


@dataclass(slots=True)
class Waiting:
    """A timer that runs: the moment, what was tagged before, and how many moments there are from it on, None for any number."""

    moment: int
    match: Match
    left: int | None = 1


class RunningTimer(Running[Waiting]):
    """The base of timers: true at moments."""

    def take(self, state: Waiting, tick: Tick) -> Outcome:
        """True when its moment has come."""
        if tick.time < state.moment:
            return Outcome(state)
        following = self.following(state, tick)
        return Outcome(following, (state.match,))

    def following(self, state: Waiting, tick: Tick) -> Waiting | None:
        """The timer after its moment; None when that was the last one."""
        return None

    def due(self, state: Waiting) -> int:
        """Its moment."""
        return state.moment

    def discard(self, state: Waiting, numbers: set[int], tick: Tick) -> Waiting | None:
        """Gone if an event before it is."""
        return None if numbers & numbers_of(state.match) else state

    def dump(self, state: Waiting, pool: Pool) -> Json:
        """Its parts."""
        return [state.moment, pool.put(state.match), state.left]

    def load(self, kept: Json, pool: Pool) -> Waiting:
        """Its parts."""
        moment, match, left = parts_of(kept)
        return Waiting(moment, pool.get(match), left)


SpanRun = Callable[[Match, int], int]
"""When a timer that starts at a time has waited long enough, by what was tagged before it."""


class RunningInterval(RunningTimer):
    """True once, when a span of time has passed."""

    def __init__(self, span: SpanRun) -> None:
        self.span = span

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Counts from now on."""
        return Outcome(Waiting(self.span(match, tick.time), match))


class RunningCrontab(RunningTimer):
    """True once, at the next moment of a crontab."""

    def __init__(self, times: CrontabTimes) -> None:
        self.times = times

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Looks for the next moment."""
        return Outcome(Waiting(self.times.after(tick.time), match))


class RunningMoment(RunningTimer):
    """True once, at the next moment of a schedule."""

    def __init__(self, times: ScheduleTimes) -> None:
        self.times = times

    def start(self, match: Match, tick: Tick) -> Outcome:
        """False when all moments have passed."""
        moment, left = self.times.first(tick.time)
        return FALSE if left == 0 else Outcome(Waiting(moment, match, left))


class RunningSchedule(RunningMoment):
    """True at every moment of a schedule that is to come."""

    def following(self, state: Waiting, tick: Tick) -> Waiting | None:
        """The next moment, while there are any; at the end of the input one is enough."""
        left = None if state.left is None else state.left - 1
        if left == 0 or self.times.period is None or (left is None and tick.is_last):
            return None
        return Waiting(state.moment + self.times.period, state.match, left)
