"""What an event does to a run, worked out once for each state and each set of conditions that the event satisfies."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

from penstock.graph.patterns.automaton import Action, Automaton, Guard, Kind

STAY, TAKE, MATCH, MATCH_WITHOUT = range(4)
"""The run goes on without the event; with it; it is a match with the event; it is one without it."""

Outcome: TypeAlias = tuple[tuple[int, int, int], ...]
"""What becomes of a run: for each run or match that comes of it one of the four, the state, and the stage that takes the event."""
Holds: TypeAlias = Callable[[int], bool]
"""Whether an event satisfies a test, by its number."""


class Transitions:
    """The outcomes of an automaton. Those that depend on nothing but the event are kept by the mask of its tests."""

    def __init__(self, automaton: Automaton, plain: int) -> None:
        self.automaton = automaton
        self.plain = plain
        """The mask of the tests that look at the event alone."""
        self.known: list[dict[int, Outcome]] = [{} for _ in automaton.states]
        self.unchanged: list[Outcome] = [((STAY, state, -1),) for state in range(len(automaton.states))]

    @cached_property
    def is_dynamic(self) -> list[bool]:
        """For each state, whether what an event does in it depends on what was taken before."""
        return [self._asks(state, set()) for state in range(len(self.automaton.states))]

    def _asks(self, state: int, seen: set[int]) -> bool:
        if state in seen:
            return False
        seen.add(state)
        for way in self.automaton.states[state].transitions:
            if any(not self.plain >> test & 1 for clause in way.guard for test, _ in clause):
                return True
            if way.action is not Action.IGNORE and self._asks(way.target, seen):
                return True
        return False

    def of_mask(self, state: int, mask: int) -> Outcome:
        """The outcome for an event whose tests are all in its mask."""
        found = self.known[state].get(mask)
        if found is None:
            found = self.known[state][mask] = self.of(state, lambda test: bool(mask >> test & 1))
        return found

    def of(self, state: int, holds: Holds) -> Outcome:
        """The outcome for an event."""
        made, is_stopped = [], False
        states, is_start = self.automaton.states, state == self.automaton.start
        for action, target, stage in self._ways(state, holds):
            kind = states[target].kind
            if action is Action.IGNORE:
                if is_start:
                    continue
                made.append((MATCH_WITHOUT if kind is Kind.FINAL else STAY, target, -1))
            elif kind is Kind.STOP:
                is_stopped = True
            elif kind is Kind.FINAL:
                made.append((MATCH, target, stage))
            else:
                made.append((TAKE, target, stage))
                made += [(MATCH, end, stage) for end in self._reached(target, Kind.FINAL, holds)]
                made += [(TAKE, absence, stage) for absence in self._reached(target, Kind.PENDING)]
        if is_stopped:
            made = [each for each in made if each[0] in (MATCH, MATCH_WITHOUT)]
        if self.automaton.skip_till_next:
            made = [each for each in made if each[0] in (TAKE, MATCH)] or ([(STAY, state, -1)] if made else [])
        outcome = tuple(made)
        return self.unchanged[state] if outcome == self.unchanged[state] else outcome

    def _ways(self, state: int, holds: Holds) -> list[tuple[Action, int, int]]:
        """The transitions that are open, those of states to which the run proceeds too.

        A loop before an absence at the end has no more to do with it: `of` made a run of its own that waits there.
        """
        found: list[tuple[Action, int, int]] = []
        waiting = [state]
        while waiting:
            for way in self.automaton.states[waiting.pop()].transitions:
                if not _is_open(way.guard, holds):
                    continue
                if way.action is Action.PROCEED:
                    if way.guard or self.automaton.states[way.target].kind is not Kind.PENDING:
                        waiting.append(way.target)
                else:
                    found.append((way.action, way.target, way.stage))
        return found

    def _reached(self, state: int, kind: Kind, holds: Holds | None = None) -> list[int]:
        """The state of a kind to which a run may proceed at once, if there is one; without `holds` whatever the event is."""
        waiting = [state]
        while waiting:
            for way in self.automaton.states[waiting.pop()].transitions:
                if way.action is Action.PROCEED and (not way.guard if holds is None else _is_open(way.guard, holds)):
                    if self.automaton.states[way.target].kind is kind:
                        return [way.target]
                    waiting.append(way.target)
        return []


def _is_open(guard: Guard, holds: Holds) -> bool:
    return all(any(holds(test) == wanted for test, wanted in clause) for clause in guard)
