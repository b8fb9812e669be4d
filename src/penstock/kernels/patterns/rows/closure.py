"""Where a program stands before its next row: the instructions that may take it, the preferred first."""

from __future__ import annotations

from penstock.graph.patterns.row_program import At, Done, RowProgram, Split, Take
from penstock.graph.patterns.tree import Edge

DONE = -1
"""Stands for a complete match among the instructions that may take a row."""


class Closure:
    """Follows the instructions of a program that take no row."""

    def __init__(self, program: RowProgram) -> None:
        self.program = program
        self.instructions = program.instructions
        self.known: dict[tuple[int, bool, bool], tuple[list[int], frozenset[int]]] = {}

    def follow(self, start: int, seen: set[int], *, at_start: bool = False, at_end: bool = False) -> list[int]:
        """The instructions that are reached, in order, each that takes a row or DONE. Those in `seen` are not entered again.

        Nothing is looked for after DONE: it is preferred. What is reached where nothing was seen yet is looked up.
        """
        if seen:
            return self._followed(start, seen, at_start, at_end)
        known = self.known.get((start, at_start, at_end))
        if known is None:
            found = self._followed(start, seen, at_start, at_end)
            self.known[start, at_start, at_end] = (found, frozenset(seen))
            return found
        seen.update(known[1])
        return known[0]

    def _followed(self, start: int, seen: set[int], at_start: bool, at_end: bool) -> list[int]:
        found: list[int] = []
        left = [start]
        while left:
            at = left.pop()
            instruction = self.instructions[at]
            if at in seen:
                # The end of a loop comes again before a row is taken: a round that takes nothing is the last one.
                if isinstance(instruction, Split) and instruction.way_out is not None:
                    left.append(instruction.way_out)
                continue
            seen.add(at)
            if isinstance(instruction, Take):
                found.append(at)
            elif isinstance(instruction, Split):
                left.extend(reversed(instruction.targets))
            elif isinstance(instruction, At):
                if at_start if instruction.edge is Edge.START else at_end:
                    left.append(at + 1)
            elif isinstance(instruction, Done):
                found.append(DONE)
                break
        return found
