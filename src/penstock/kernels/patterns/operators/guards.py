"""Running guards: within a time, at most so often, and while a condition holds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from penstock.kernels.patterns.operators.atoms import SpanRun
from penstock.kernels.patterns.operators.base import FALSE, AnyRunning, Outcome, Running, Tick, parts_of
from penstock.kernels.patterns.operators.match import Match, Pool
from penstock.kernels.records.json_values import Json


@dataclass(slots=True)
class GuardState:
    """A part under a guard: when its time is up, how often it was true, and its state."""

    end: int
    count: int
    state: object


class RunningWithin(Running[GuardState]):
    """Its part, for less than a span of time. With `most`, the match after so many makes it false."""

    def __init__(self, part: AnyRunning, span: SpanRun, most: int | None) -> None:
        self.part, self.span, self.most = part, span, most
        self.mask = part.mask

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Time counts from here."""
        state = GuardState(self.span(match, tick.time), 0, None)
        return self._passed(state, self.part.start(match, tick))

    def take(self, state: GuardState, tick: Tick) -> Outcome:
        """False when time is up, whatever else happens then."""
        return FALSE if tick.time >= state.end else self._passed(state, self.part.take(state.state, tick))

    def _passed(self, state: GuardState, outcome: Outcome) -> Outcome:
        state.state, made = outcome.state, outcome.matches
        state.count += len(made)
        if self.most is not None and state.count > self.most:
            return Outcome(None, made[: max(0, len(made) - (state.count - self.most))])
        return Outcome(None if state.state is None else state, made)

    def due(self, state: GuardState) -> int:
        """When time is up, or the part has something to do."""
        return min(state.end, self.part.due(state.state))

    def level(self, state: GuardState, tick: Tick) -> int | None:
        """That of its part."""
        return self.part.level(state.state, tick)

    def discard(self, state: GuardState, numbers: set[int], tick: Tick) -> GuardState | None:
        """Gone with its part."""
        state.state = self.part.discard(state.state, numbers, tick)
        return None if state.state is None else state

    def dump(self, state: GuardState, pool: Pool) -> Json:
        """Its parts."""
        return [state.end, state.count, self.part.dump(state.state, pool)]

    def load(self, kept: Json, pool: Pool) -> GuardState:
        """Its parts."""
        end, count, part = parts_of(kept)
        return GuardState(end, count, self.part.load(part, pool))


class RunningWhile(Running[object]):
    """Its part; false as soon as it turns true with what a condition does not hold for. Its state is that of its part."""

    def __init__(self, part: AnyRunning, holds: Callable[[Match], bool]) -> None:
        self.part, self.holds = part, holds
        self.mask = part.mask

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Starts its part."""
        return self._passed(self.part.start(match, tick))

    def take(self, state: object, tick: Tick) -> Outcome:
        """Looks at what its part turns true with."""
        return self._passed(self.part.take(state, tick))

    def _passed(self, outcome: Outcome) -> Outcome:
        for at, match in enumerate(outcome.matches):
            if not self.holds(match):
                return Outcome(None, outcome.matches[:at])
        return outcome

    def due(self, state: object) -> int:
        """That of its part."""
        return self.part.due(state)

    def level(self, state: object, tick: Tick) -> int | None:
        """That of its part."""
        return self.part.level(state, tick)

    def discard(self, state: object, numbers: set[int], tick: Tick) -> object:
        """That of its part."""
        return self.part.discard(state, numbers, tick)

    def dump(self, state: object, pool: Pool) -> Json:
        """That of its part."""
        return self.part.dump(state, pool)

    def load(self, kept: Json, pool: Pool) -> object:
        """That of its part."""
        return self.part.load(kept, pool)
