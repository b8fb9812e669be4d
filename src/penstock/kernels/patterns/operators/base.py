"""What a running operator is: it starts, takes events and time, and turns true on the way."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

from penstock.graph.times import FOREVER
from penstock.kernels.patterns.operators.match import Event, Match, Pool
from penstock.kernels.records.json_values import Json

S = TypeVar("S")


class Tick(NamedTuple):
    """One moment: an event, or only time that has come to a timer.

    `hits` are the filters, as bits, that the event fits as far as it alone decides; `level` is the level at which it is consumed.
    At the end of the input (`is_last`) nothing is started again by itself.
    """

    time: int
    event: Event | None = None
    hits: int = 0
    level: int | None = None
    is_last: bool = False


class Outcome(NamedTuple):
    """What came of a moment: the state from then on, None when the expression has ended, and what it turned true with.

    An expression that ends without turning true has become false.
    """

    state: object
    matches: tuple[Match, ...] = ()

    @property
    def is_false(self) -> bool:
        """Whether the expression has become false for ever."""
        return self.state is None and not self.matches


FALSE = Outcome(None)


class Running(Generic[S]):
    """A running operator. It keeps nothing itself: each copy that was started has a state of its own, which is only ever in one place."""

    is_not = False
    """Whether it is a negation, which no `and` waits for."""
    mask = 0
    """The bits of the filters in it: an event that hits none of them changes nothing here."""

    def start(self, match: Match, tick: Tick) -> Outcome:
        """Starts a copy, after the event of the tick, with what was tagged before."""
        raise NotImplementedError

    def take(self, state: S, tick: Tick) -> Outcome:
        """What an event, or the time of a timer, brings."""
        raise NotImplementedError

    def due(self, state: S) -> int:
        """The next time at which time alone brings something; FOREVER when there is none."""
        return FOREVER

    def level(self, state: S, tick: Tick) -> int | None:
        """The highest level at which a filter of this copy would consume the event."""
        return None

    def discard(self, state: S, numbers: set[int], tick: Tick) -> S | None:
        """The state without the copies that hold one of these events; None when it is gone itself."""
        raise NotImplementedError

    def dump(self, state: S, pool: Pool) -> Json:
        """The state as JSON."""
        raise NotImplementedError

    def load(self, kept: Json, pool: Pool) -> S:
        """The state from JSON."""
        raise NotImplementedError


AnyRunning: TypeAlias = Running[Any]
"""A running operator as another holds it, which passes states on without a look into them."""


def parts_of(kept: Json) -> list[Any]:
    """The parts of a state as `dump` wrote it."""
    assert isinstance(kept, list)
    return kept


def mask_of(parts: Iterable[AnyRunning]) -> int:
    """The bits of all filters in some parts."""
    mask = 0
    for part in parts:
        mask |= part.mask
    return mask


def highest(levels: list[int | None]) -> int | None:
    """The highest of some levels; None when there is none."""
    return max((level for level in levels if level is not None), default=None)
