"""Running logic: and, or, not, followed-by."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from itertools import product

from penstock.graph.times import FOREVER
from penstock.kernels.patterns.operators.base import (
    FALSE,
    AnyRunning,
    Outcome,
    Running,
    Tick,
    highest,
    mask_of,
    parts_of,
)
from penstock.kernels.patterns.operators.match import Match, Pool, numbers_of
from penstock.kernels.records.json_values import Json


@dataclass(slots=True)
class Negation:
    """A negation that holds: what was tagged before it, and its part, None when that has become false."""

    match: Match
    part: object


class RunningNot(Running[Negation]):
    """True at its start; false when its part has turned true for the last time."""

    is_not = True

    def __init__(self, part: AnyRunning) -> None:
        self.part = part
        self.mask = part.mask

    def start(self, match: Match, tick: Tick) -> Outcome:
        """True, unless its part is at once."""
        made = self.part.start(match, tick)
        if made.state is None and made.matches:
            return FALSE
        return Outcome(Negation(match, made.state), (match,))

    def take(self, state: Negation, tick: Tick) -> Outcome:
        """False when its part ends true."""
        if state.part is None:
            return Outcome(state)
        made = self.part.take(state.part, tick)
        if made.state is None and made.matches:
            return FALSE
        state.part = made.state
        return Outcome(state)

    def due(self, state: Negation) -> int:
        """That of its part."""
        return FOREVER if state.part is None else self.part.due(state.part)

    def level(self, state: Negation, tick: Tick) -> int | None:
        """That of its part."""
        return None if state.part is None else self.part.level(state.part, tick)

    def discard(self, state: Negation, numbers: set[int], tick: Tick) -> Negation | None:
        """Gone if an event before it is."""
        if numbers & numbers_of(state.match):
            return None
        state.part = None if state.part is None else self.part.discard(state.part, numbers, tick)
        return state

    def dump(self, state: Negation, pool: Pool) -> Json:
        """Its parts."""
        return [pool.put(state.match), None if state.part is None else [self.part.dump(state.part, pool)]]

    def load(self, kept: Json, pool: Pool) -> Negation:
        """Its parts."""
        match, part = parts_of(kept)
        return Negation(pool.get(match), None if part is None else self.part.load(part[0], pool))


@dataclass(slots=True)
class Branch:
    """One part of an `and`: its state, None when it has ended, and all it turned true with."""

    state: object
    matches: list[Match]


class RunningAnd(Running[list[Branch]]):
    """All parts, in any order."""

    def __init__(self, parts: list[AnyRunning]) -> None:
        self.parts = parts
        self.mask = mask_of(parts)

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Starts all parts."""
        state = [Branch(None, []) for _ in self.parts]
        return self._taken(state, [part.start(match, tick) for part in self.parts])

    def take(self, state: list[Branch], tick: Tick) -> Outcome:
        """What the parts that run bring."""
        taken = zip(self.parts, state, strict=True)
        return self._taken(state, [None if b.state is None else part.take(b.state, tick) for part, b in taken])

    def _taken(self, state: list[Branch], outcomes: list[Outcome | None]) -> Outcome:
        """Every new match of a part with all combinations of the others; false when a part is."""
        if any(outcome is not None and outcome.is_false for outcome in outcomes):
            return FALSE
        made: list[Match] = []
        for at, outcome in enumerate(outcomes):
            if outcome is not None:
                state[at].state = outcome.state
                for match in outcome.matches:
                    made += self._combined(state, at, match)
                    state[at].matches.append(match)
        running = any(b.state is not None and not part.is_not for part, b in zip(self.parts, state, strict=True))
        is_over = bool(made) and not running
        return Outcome(None if is_over else state, tuple(made))

    def _combined(self, state: list[Branch], at: int, match: Match) -> list[Match]:
        choices = [[match] if i == at else branch.matches for i, branch in enumerate(state)]
        return [reduce(lambda one, other: {**one, **other}, chosen, {}) for chosen in product(*choices)]

    def due(self, state: list[Branch]) -> int:
        """The earliest of its parts."""
        pairs = zip(self.parts, state, strict=True)
        return min((part.due(b.state) for part, b in pairs if b.state is not None), default=FOREVER)

    def level(self, state: list[Branch], tick: Tick) -> int | None:
        """The highest of its parts."""
        pairs = zip(self.parts, state, strict=True)
        return highest([part.level(b.state, tick) for part, b in pairs if b.state is not None])

    def discard(self, state: list[Branch], numbers: set[int], tick: Tick) -> list[Branch] | None:
        """Gone when a part is, or when nothing is left of what a part has turned true with."""
        for part, branch in zip(self.parts, state, strict=True):
            had = bool(branch.matches)
            branch.matches = [m for m in branch.matches if not numbers & numbers_of(m)]
            if branch.state is not None:
                branch.state = part.discard(branch.state, numbers, tick)
                if branch.state is None:
                    return None
            elif had and not branch.matches:
                return None
        return state

    def dump(self, state: list[Branch], pool: Pool) -> Json:
        """Its parts."""
        pairs = zip(self.parts, state, strict=True)
        return [
            [None if b.state is None else [part.dump(b.state, pool)], [pool.put(m) for m in b.matches]]
            for part, b in pairs
        ]

    def load(self, kept: Json, pool: Pool) -> list[Branch]:
        """Its parts."""
        made = []
        for part, (state, matches) in zip(self.parts, parts_of(kept), strict=True):
            running = None if state is None else part.load(state[0], pool)
            made.append(Branch(running, [pool.get(m) for m in matches]))
        return made


class RunningOr(Running[list[object]]):
    """One of its parts. The state has an item for each, None when it has become false."""

    def __init__(self, parts: list[AnyRunning]) -> None:
        self.parts = parts
        self.mask = mask_of(parts)

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Starts all parts."""
        state: list[object] = [None] * len(self.parts)
        made: list[Match] = []
        for at, part in enumerate(self.parts):
            outcome = part.start(match, tick)
            made += outcome.matches
            if outcome.state is None and outcome.matches:
                return Outcome(None, tuple(made))
            state[at] = outcome.state
        return self._made(state, made)

    def take(self, state: list[object], tick: Tick) -> Outcome:
        """True with each of its parts; over with the first that ends true."""
        made: list[Match] = []
        for at, part in enumerate(self.parts):
            if state[at] is None:
                continue
            outcome = part.take(state[at], tick)
            made += outcome.matches
            if outcome.state is None and outcome.matches:
                return Outcome(None, tuple(made))
            state[at] = outcome.state
        return self._made(state, made)

    def _made(self, state: list[object], made: list[Match]) -> Outcome:
        return Outcome(None if all(each is None for each in state) else state, tuple(made))

    def _running(self, state: list[object]) -> list[tuple[AnyRunning, object]]:
        return [(part, each) for part, each in zip(self.parts, state, strict=True) if each is not None]

    def due(self, state: list[object]) -> int:
        """The earliest of its parts."""
        return min((part.due(each) for part, each in self._running(state)), default=FOREVER)

    def level(self, state: list[object], tick: Tick) -> int | None:
        """The highest of its parts."""
        return highest([part.level(each, tick) for part, each in self._running(state)])

    def discard(self, state: list[object], numbers: set[int], tick: Tick) -> list[object] | None:
        """Without the parts that are gone; gone when all are."""
        pairs = zip(self.parts, state, strict=True)
        left = [None if each is None else part.discard(each, numbers, tick) for part, each in pairs]
        return None if all(each is None for each in left) else left

    def dump(self, state: list[object], pool: Pool) -> Json:
        """Its parts."""
        return [None if each is None else [part.dump(each, pool)] for part, each in zip(self.parts, state, strict=True)]

    def load(self, kept: Json, pool: Pool) -> list[object]:
        """Its parts."""
        pairs = zip(self.parts, parts_of(kept), strict=True)
        return [None if each is None else part.load(each[0], pool) for part, each in pairs]


@dataclass(slots=True, eq=False)
class Copy:
    """A copy of one of the parts of a followed-by, and when time alone brings something to it."""

    index: int
    state: object
    due: int


class RunningFollowedBy(Running[list[Copy]]):
    """One part after the other; each match of a part starts a copy of the next.

    There may be thousands of copies, so only those are asked that an event or a moment can concern.
    """

    def __init__(self, parts: list[AnyRunning], limits: tuple[int | None, ...]) -> None:
        self.parts, self.limits = parts, limits
        self.masks = [part.mask for part in parts]
        self.mask = mask_of(parts)

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Starts the first part."""
        state: list[Copy] = []
        made = self._started(state, 0, match, tick)
        return Outcome(state or None, tuple(made))

    def take(self, state: list[Copy], tick: Tick) -> Outcome:
        """Each match goes on to the next part, those of the last are matches of the whole."""
        made: list[Match] = []
        ended = False
        for copy in self._concerned(state, tick):
            part = self.parts[copy.index]
            outcome = part.take(copy.state, tick)
            copy.state = outcome.state
            if outcome.state is None:
                ended = True
            else:
                copy.due = part.due(outcome.state)
            for match in outcome.matches:
                made += self._next(state, copy.index, match, tick)
        if ended:
            state[:] = [copy for copy in state if copy.state is not None]
        return Outcome(state or None, tuple(made))

    def _concerned(self, state: list[Copy], tick: Tick) -> list[Copy]:
        """The copies to which an event, or a moment, may bring something."""
        if tick.event is None:
            return [copy for copy in state if copy.due <= tick.time]
        hit = [bool(mask & tick.hits) for mask in self.masks]
        return [copy for copy in state if hit[copy.index]]

    def _next(self, state: list[Copy], index: int, match: Match, tick: Tick) -> list[Match]:
        if index == len(self.parts) - 1:
            return [match]
        limit = self.limits[index] if self.limits else None
        if limit is not None and self._waiting(state, index + 1) >= limit:
            return []
        return self._started(state, index + 1, match, tick)

    def _waiting(self, state: list[Copy], index: int) -> int:
        return sum(copy.index == index and copy.state is not None for copy in state)

    def _started(self, state: list[Copy], index: int, match: Match, tick: Tick) -> list[Match]:
        """Starts a copy of a part; what is true at once goes on."""
        outcome = self.parts[index].start(match, tick)
        if outcome.state is not None:
            state.append(Copy(index, outcome.state, self.parts[index].due(outcome.state)))
        return [each for found in outcome.matches for each in self._next(state, index, found, tick)]

    def due(self, state: list[Copy]) -> int:
        """The earliest of the copies."""
        return min([copy.due for copy in state], default=FOREVER)

    def level(self, state: list[Copy], tick: Tick) -> int | None:
        """The highest of the copies."""
        return highest([self.parts[copy.index].level(copy.state, tick) for copy in state])

    def discard(self, state: list[Copy], numbers: set[int], tick: Tick) -> list[Copy] | None:
        """Without the copies that are gone; gone when all are."""
        for copy in state:
            part = self.parts[copy.index]
            copy.state = part.discard(copy.state, numbers, tick)
            copy.due = FOREVER if copy.state is None else part.due(copy.state)
        state[:] = [copy for copy in state if copy.state is not None]
        return state or None

    def dump(self, state: list[Copy], pool: Pool) -> Json:
        """The copies."""
        return [[copy.index, self.parts[copy.index].dump(copy.state, pool)] for copy in state]

    def load(self, kept: Json, pool: Pool) -> list[Copy]:
        """The copies."""
        return [self._loaded(index, each, pool) for index, each in parts_of(kept)]

    def _loaded(self, index: int, kept: Json, pool: Pool) -> Copy:
        state = self.parts[index].load(kept, pool)
        return Copy(index, state, self.parts[index].due(state))
