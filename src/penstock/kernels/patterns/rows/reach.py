"""Which rows can begin a match at all, found in one pass from the last row back.

Without it a pattern such as `A B* C` goes over all rows again for each A where no C comes. A row that is found may still begin no match: the
start of the rows is not looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.kernels.patterns.rows.automaton import Automaton
from penstock.kernels.patterns.rows.closure import DONE


@dataclass(slots=True, eq=False)
class BackState:
    """The instructions that can take a row and come to a match after it; `begins` says whether one of them can be the first."""

    takes: frozenset[int]
    begins: bool
    edges: dict[int, BackState] = field(default_factory=dict)


class Reach:
    """Finds the rows that can begin a match.

    Args:
        automaton: the pattern, whose conditions are known for each row.
    """

    def __init__(self, automaton: Automaton) -> None:
        self.masks = automaton.masks
        follow = automaton.closure.follow
        first = follow(0, set(), at_start=True)
        self.first = frozenset(first)
        self.after = {at: frozenset(follow(at + 1, set())) for at in automaton.takes}
        self.ends = [at for at in automaton.takes if DONE in follow(at + 1, set(), at_end=True)]
        self.states: dict[frozenset[int], BackState] = {}

    def starts(self, masks: Sequence[int], begin: int, end: int, *, is_closed: bool) -> list[int]:
        """The rows from `begin` to before `end` that can begin a match; where more rows may come, so may what is missing."""
        state = self._state(frozenset(self.after))
        found: list[int] = []
        if is_closed and begin < end:
            end -= 1
            state = self._state(frozenset(at for at in self.ends if not self.masks[at] or self.masks[at] & masks[end]))
            found += [end] if state.begins else []
        for row in range(end - 1, begin - 1, -1):
            before = state.edges.get(masks[row])
            if before is None:
                before = state.edges[masks[row]] = self._before(state, masks[row])
            state = before
            if state.begins:
                found.append(row)
        found.reverse()
        return found

    def _before(self, state: BackState, mask: int) -> BackState:
        """What can take a row with this mask, where the state says what can take the next."""
        takes = (at for at in self.after if not self.masks[at] or self.masks[at] & mask)
        return self._state(frozenset(at for at in takes if DONE in self.after[at] or self.after[at] & state.takes))

    def _state(self, takes: frozenset[int]) -> BackState:
        if takes not in self.states:
            self.states[takes] = BackState(takes, bool(takes & self.first) or DONE in self.first)
        return self.states[takes]
