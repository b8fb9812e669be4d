"""The tree of a row pattern as a program: instructions that take a row, choose among ways in the order of preference, or look for an end of the rows.

A loop ends with the choice to repeat it, so an iteration that takes no row can end it and cannot go round forever.

>>> from penstock.graph.patterns.tree import Preference, Repeat, Stage
>>> for at, each in enumerate(compile_rows(Repeat(Stage("A"), 0, None, preference=Preference.GREEDY)).instructions):
...     print(at, each)
0 split 1 3
1 take A
2 split 1 3
3 done
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import permutations
from math import factorial
from typing import TypeAlias

from penstock.errors import FlowError
from penstock.graph.patterns.tree import (
    Anchor,
    Choice,
    Edge,
    Empty,
    Exclusion,
    Part,
    Permutation,
    Preference,
    Repeat,
    Sequence,
    Stage,
)

MOST_INSTRUCTIONS = 20_000
"""So long a program may be; repetitions with bounds are written out."""


@dataclass(frozen=True)
class Take:
    """Takes a row as a variable; `hidden` leaves it out of the output."""

    variable: str
    hidden: bool = False

    def __str__(self) -> str:
        return f"take {self.variable}{' hidden' if self.hidden else ''}"


@dataclass(frozen=True)
class Split:
    """Goes on at several instructions, the preferred first.

    `way_out` is that of the end of a loop: where it goes on after a round that has taken no row.
    """

    targets: tuple[int, ...]
    way_out: int | None = None

    def __str__(self) -> str:
        return f"split {' '.join(map(str, self.targets))}"


@dataclass(frozen=True)
class At:
    """Goes on only at an end of the rows of a key."""

    edge: Edge

    def __str__(self) -> str:
        return f"at {self.edge.value}"


@dataclass(frozen=True)
class Done:
    """The match is complete."""

    def __str__(self) -> str:
        return "done"


Instruction: TypeAlias = Take | Split | At | Done


@dataclass(frozen=True)
class RowProgram:
    """The instructions of a pattern; the first is where a match starts."""

    instructions: tuple[Instruction, ...]

    @property
    def looks_for_end(self) -> bool:
        """Whether it asks for the last row of a key."""
        return At(Edge.END) in self.instructions

    @property
    def looks_for_start(self) -> bool:
        """Whether it asks for the first row of a key."""
        return At(Edge.START) in self.instructions

    def first_variables(self) -> frozenset[str]:
        """What the first row of a match may be."""
        return frozenset(self._variable(at) for at in self._takes([0]))

    def later_variables(self) -> frozenset[str]:
        """What a row of a match after its first may be."""
        found: set[int] = set()
        left = self._takes([0])
        while left := self._takes([at + 1 for at in left]) - found:
            found |= left
        return frozenset(map(self._variable, found))

    def _variable(self, at: int) -> str:
        take = self.instructions[at]
        return take.variable if isinstance(take, Take) else ""

    def _takes(self, starts: list[int]) -> set[int]:
        """The instructions that may take the next row."""
        seen: set[int] = set()
        left = list(starts)
        while left:
            at = left.pop()
            if at in seen:
                continue
            seen.add(at)
            instruction = self.instructions[at]
            if isinstance(instruction, Split):
                left += (
                    instruction.targets if instruction.way_out is None else (*instruction.targets, instruction.way_out)
                )
            elif isinstance(instruction, At):
                left.append(at + 1)
        return {at for at in seen if isinstance(self.instructions[at], Take)}


@lru_cache(maxsize=256)
def compile_rows(root: Part) -> RowProgram:
    """The program of a tree.

    Raises:
        FlowError: it would be too long.
    """
    writer = _Writer()
    writer.write(root)
    writer.add(Done())
    return RowProgram(tuple(writer.made))


class _Writer:
    """Writes instructions one after the other."""

    def __init__(self) -> None:
        self.made: list[Instruction] = []
        self.hidden = 0

    def add(self, instruction: Instruction) -> int:
        """Adds an instruction; returns where it is."""
        if len(self.made) >= MOST_INSTRUCTIONS:
            raise _too_large()
        self.made.append(instruction)
        return len(self.made) - 1

    def write(self, part: Part) -> None:
        """The instructions of a part, after those that are there."""
        _WRITERS[type(part)](self, part)

    def stage(self, part: Stage) -> None:
        """A row of a variable."""
        self.add(Take(part.name, self.hidden > 0))

    def sequence(self, part: Sequence) -> None:
        """One part after the other."""
        for each in part.parts:
            self.write(each)

    def choice(self, part: Choice) -> None:
        """One of several parts, the first preferred."""
        self.one_of([lambda each=each: self.write(each) for each in part.parts])  # type: ignore[misc]  # bound now

    def one_of(self, ways: list[Callable[[], None]]) -> None:
        """Several ways, the first preferred, which end at the same instruction."""
        split = self.add(Split(()))
        starts, ends = [], []
        for at, way in enumerate(ways):
            starts.append(len(self.made))
            way()
            if at < len(ways) - 1:
                ends.append(self.add(Split(())))
        self.made[split] = Split(tuple(starts))
        for end in ends:
            self.made[end] = Split((len(self.made),))

    def permutation(self, part: Permutation) -> None:
        """All orders of the parts, in the order of the list. Orders of plain variables share their ends."""
        if all(isinstance(each, Stage) for each in part.parts):
            self._shared(part.parts)
            return
        if factorial(min(len(part.parts), 20)) > MOST_INSTRUCTIONS:
            raise _too_large()
        orders = permutations(part.parts)
        self.one_of([lambda order=order: self.sequence(Sequence(order)) for order in orders])  # type: ignore[misc]  # bound now

    def _shared(self, parts: tuple[Part, ...]) -> None:
        """A choice for each set of parts that are still to come, written once."""
        known: dict[tuple[int, ...], int] = {}
        exits: list[int] = []

        def rest(left: tuple[int, ...]) -> int:
            if left not in known:
                known[left] = at = self.add(Split(()))
                if not left:
                    exits.append(at)
                else:
                    self.made[at] = Split(tuple(one(left, each) for each in left))
            return known[left]

        def one(left: tuple[int, ...], each: int) -> int:
            after = rest(tuple(other for other in left if other != each))
            at = len(self.made)
            self.write(parts[each])
            self.add(Split((after,)))
            return at

        rest(tuple(range(len(parts))))
        for at in exits:
            self.made[at] = Split((len(self.made),))

    def repeat(self, part: Repeat) -> None:
        """A part so many times."""
        if max(part.least, part.most or 0) > MOST_INSTRUCTIONS:
            raise _too_large()
        greedy = part.preference is not Preference.RELUCTANT
        if part.most is None:
            self._loop(part.part, part.least, greedy)
        else:
            self._range(part.part, part.least, part.most, greedy)

    def _loop(self, part: Part, least: int, greedy: bool) -> None:
        split = self.add(Split(())) if least == 0 else None
        for _ in range(max(least, 1)):
            begin = len(self.made)
            self.write(part)
        end = len(self.made) + 1
        self.add(replace(_choice(begin, end, greedy), way_out=end))
        if split is not None:
            self.made[split] = _choice(begin, end, greedy)

    def _range(self, part: Part, least: int, most: int, greedy: bool) -> None:
        for _ in range(least):
            self.write(part)
        splits = []
        for _ in range(most - least):
            splits.append(self.add(Split(())))
            self.write(part)
        for split in splits:
            self.made[split] = _choice(split + 1, len(self.made), greedy)

    def empty(self, part: Empty) -> None:
        """Nothing."""

    def anchor(self, part: Anchor) -> None:
        """An end of the rows."""
        self.add(At(part.edge))

    def exclusion(self, part: Exclusion) -> None:
        """Rows that are left out of the output."""
        self.hidden += 1
        self.write(part.part)
        self.hidden -= 1


def _too_large() -> FlowError:
    return FlowError(
        f"the pattern is too large: its repetitions and permutations, written out, take more than {MOST_INSTRUCTIONS:,} steps; use "
        f"smaller bounds, or * and + with a condition that counts"
    )


def _choice(inside: int, outside: int, greedy: bool) -> Split:
    return Split((inside, outside) if greedy else (outside, inside))


_WRITERS: dict[type, Callable[..., None]] = {
    Stage: _Writer.stage,
    Sequence: _Writer.sequence,
    Choice: _Writer.choice,
    Permutation: _Writer.permutation,
    Repeat: _Writer.repeat,
    Empty: _Writer.empty,
    Anchor: _Writer.anchor,
    Exclusion: _Writer.exclusion,
}
