"""The preferred match where no condition looks at what was matched before: threads in the order of preference, as a table that is filled on the way.

A state is the list of instructions that may take the next row. What a row makes of it depends on which variables it may be, so it is
computed once for each such set and looked up ever after. The way back through the states tells the variable of each row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from penstock.graph.patterns.row_program import RowProgram, Take
from penstock.kernels.patterns.rows.closure import DONE, Closure
from penstock.kernels.patterns.rows.outcome import FAILED, WAITING, Outcome, RowLabel, Span

MOST_STATES = 10_000
"""So many states are kept; then the table starts over."""


@dataclass(slots=True, eq=False)
class State:
    """The threads before a row: the instructions that may take it, the preferred first."""

    takes: tuple[int, ...]
    edges: dict[int, Edge] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Edge:
    """What a row makes of a state: the next, which thread each of its threads comes from, and from which a match does (below zero: none)."""

    state: State
    parents: tuple[int, ...]
    done: int


class Automaton:
    """Finds the preferred match of a start.

    Args:
        program: the pattern.
        bits: the bit of each variable that has a condition; the others take every row.
        has_partial: whether the rows of a match that could not be completed are asked for.
    """

    def __init__(self, program: RowProgram, bits: Mapping[str, int], *, has_partial: bool = False) -> None:
        self.closure, self.has_partial = Closure(program), has_partial
        self.looks_for_end = program.looks_for_end
        self.steps = 0
        """How many rows were looked at."""
        self.takes = [at for at, each in enumerate(program.instructions) if isinstance(each, Take)]
        self.labels: list[RowLabel] = []
        self.masks: list[int] = []
        for each in program.instructions:
            taken = each if isinstance(each, Take) else Take("")
            self.labels.append((taken.variable, taken.hidden))
            self.masks.append(bits.get(taken.variable, 0))
        self.clear()

    def clear(self) -> None:
        """Forgets the table."""
        self.states: dict[tuple[int, ...], State] = {}
        self.starts = {
            at_start: self._edge(self.closure.follow(0, set(), at_start=at_start)) for at_start in (False, True)
        }

    def _edge(self, found: list[int]) -> Edge:
        takes = tuple(at for at in found if at != DONE)
        return Edge(self._state(takes), (), 0 if DONE in found else -1)

    def _state(self, takes: tuple[int, ...]) -> State:
        if takes not in self.states:
            self.states[takes] = State(takes)
        return self.states[takes]

    def first_bits(self) -> int | None:
        """The bits of the variables that a match may begin with; None where any row may begin one."""
        takes = {at for start in self.starts.values() for at in start.state.takes}
        if any(start.done >= 0 for start in self.starts.values()) or any(not self.masks[at] for at in takes):
            return None
        made = 0
        for at in takes:
            made |= self.masks[at]
        return made

    def find(self, masks: Sequence[int], span: Span) -> Outcome:
        """The preferred match of the rows of a span.

        Args:
            masks: the bits of each row.
            span: where it starts, and up to where rows are known.
        """
        if len(self.states) > MOST_STATES:
            self.clear()
        start = self.starts[span.at_start]
        state, trace = start.state, [start]
        found = 0 if start.done >= 0 else -1
        at, end = span.start, span.end
        last = end - 1 if span.at_end and self.looks_for_end else end
        while at < end and state.takes:
            edge = state.edges.get(masks[at]) if at != last else None
            if edge is None:
                edge = self._step(state, masks[at], at_end=at == last)
            trace.append(edge)
            at += 1
            if edge.done >= 0:
                found = len(trace) - 1
            state = edge.state
        self.steps += len(trace)
        if state.takes and not span.is_closed:
            return WAITING
        if found >= 0:
            return Outcome(self._labels(trace, found, trace[found].done))
        if not self.has_partial or not state.takes or len(trace) == 1:
            return FAILED
        return Outcome(None, self._labels(trace, len(trace) - 1, -1))

    def _step(self, state: State, mask: int, *, at_end: bool) -> Edge:
        """What a row with this mask makes of a state."""
        seen: set[int] = set()
        takes: list[int] = []
        parents: list[int] = []
        done = -1
        for parent, at in enumerate(state.takes):
            if self.masks[at] and not self.masks[at] & mask:
                continue
            for each in self.closure.follow(at + 1, seen, at_end=at_end):
                if each == DONE:
                    done = parent
                    break
                takes.append(each)
                parents.append(parent)
            if done >= 0:
                break
        made = Edge(self._state(tuple(takes)), tuple(parents), done)
        if not at_end:
            state.edges[mask] = made
        return made

    def _labels(self, trace: list[Edge], end: int, thread: int) -> tuple[RowLabel, ...]:
        """The variables of the rows of a thread, from its last row back to the first.

        `thread` is the one that took row `end`; below zero it is that of the preferred thread after it.
        """
        if thread < 0:
            thread = trace[end].parents[0]
        made: list[RowLabel] = []
        for row in range(end, 0, -1):
            before = trace[row - 1]
            made.append(self.labels[before.state.takes[thread]])
            thread = before.parents[thread] if row > 1 else 0
        made.reverse()
        return tuple(made)
