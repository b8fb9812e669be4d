"""A pattern as an automaton: states, and what an event may do to a run in each of them.

An event is taken (the run goes on with it), ignored (the run stays, or goes on without it), or the run proceeds without an event to a state that
looks at the same event. Every transition whose guard holds is gone along, so that a run may become several. That is the meaning which Flink's
CEP library gives to contiguity, loops and negation, and answers are the same.

"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from penstock.graph.patterns.tree import Condition

END = "end"
Clause: TypeAlias = tuple[tuple[int, bool], ...]
"""Tests by number and what they must yield, of which one must; none is false."""
Guard: TypeAlias = tuple[Clause, ...]
"""Clauses that must all hold; none is true."""
TRUE: Guard = ()


class Action(enum.Enum):
    """What becomes of the event on a transition."""

    TAKE = "take"
    IGNORE = "ignore"
    PROCEED = "proceed"


class Kind(enum.Enum):
    """What it means for a run to be in a state."""

    NORMAL = "normal"
    FINAL = "final"
    """It is a match."""
    STOP = "stop"
    """Something happened that must not: the run is dropped."""
    PENDING = "pending"
    """It is a match when its time is up."""


@dataclass(frozen=True)
class Test:
    """A condition that events are tested for: that of the stage `own`, or of the end of its loop."""

    condition: Condition
    own: str
    until: bool = False

    def __str__(self) -> str:
        return f"until {self.own}" if self.until else self.own


@dataclass(frozen=True)
class Transition:
    """A way out of a state; `stage` is the number of the stage whose event is taken."""

    action: Action
    target: int
    guard: Guard = TRUE
    stage: int = -1


@dataclass(frozen=True)
class State:
    """A state; `gap` is how long after the last event it may be waited in, in microseconds."""

    name: str
    kind: Kind
    transitions: tuple[Transition, ...] = ()
    gap: int | None = None


@dataclass(frozen=True)
class Automaton:
    """A compiled pattern: `stages` are the names by the numbers that transitions give, `tests` what guards are about."""

    states: tuple[State, ...]
    start: int
    stages: tuple[str, ...]
    tests: tuple[Test, ...]
    within: int | None = None
    skip_till_next: bool = False
    """Whether a run passes over an event only where it cannot take it, and then stays in its state."""

    @property
    def is_timed(self) -> bool:
        """Whether runs end when time passes."""
        return self.within is not None or any(state.gap is not None for state in self.states)

    def __str__(self) -> str:
        return "\n".join(self._shown(at, state) for at, state in enumerate(self.states))

    def _shown(self, at: int, state: State) -> str:
        marks = [
            *(["start"] if at == self.start else []),
            *([state.kind.value] if state.kind is not Kind.NORMAL else []),
        ]
        head = f"{self.label(at)} [{', '.join(marks)}]" if marks else self.label(at)
        ways = "; ".join(self._way(at, way) for way in state.transitions if state.kind is not Kind.STOP)
        return f"{head}: {ways}" if ways else head

    def _way(self, at: int, way: Transition) -> str:
        stage = f" {self.stages[way.stage]}" if way.action is Action.TAKE and way.stage >= 0 else ""
        only = f" if {self.condition(way.guard)}" if way.guard else ""
        to = "" if way.target == at else f" -> {self.label(way.target)}"
        return f"{way.action.value}{stage}{only}{to}"

    def label(self, at: int) -> str:
        """The name of a state, with a number where several have the same."""
        name = self.states[at].name
        same = [i for i, state in enumerate(self.states) if state.name == name]
        return name if len(same) == 1 else f"{name}#{same.index(at) + 1}"

    def waits_for(self, at: int) -> str:
        """What a run in a state waits for: the stages that may take the next event, or that its time is up."""
        if self.states[at].kind is Kind.PENDING:
            return f"no {self.states[at].name}"
        return " or ".join(dict.fromkeys(self._next_stages(at, set()))) or self.states[at].name

    def _next_stages(self, at: int, seen: set[int]) -> Iterator[str]:
        seen.add(at)
        for way in self.states[at].transitions:
            if way.action is Action.TAKE and way.stage >= 0:
                yield self.stages[way.stage]
            elif way.action is Action.PROCEED and way.target not in seen:
                yield from self._next_stages(way.target, seen)

    def condition(self, guard: Guard) -> str:
        """A guard as people read it."""
        clauses = [
            " or ".join(f"{'' if wanted else 'not '}{self.tests[test]}" for test, wanted in clause) for clause in guard
        ]
        return " and ".join(f"({text})" if " or " in text else text or "never" for text in clauses)


def both(one: Guard, other: Guard) -> Guard:
    """A guard that holds where both do."""
    return tuple(dict.fromkeys((*one, *other)))


def negated(guard: Guard) -> Guard:
    """A guard that holds where one of plain conditions does not."""
    assert all(len(clause) == 1 for clause in guard), "only conditions of one event are negated"
    return (tuple((test, not wanted) for ((test, wanted),) in guard),)
