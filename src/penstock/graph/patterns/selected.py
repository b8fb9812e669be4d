"""A pattern with the fields of its matches, where one text says both."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.graph.expr import Expr
from penstock.graph.patterns.pattern import Pattern


@dataclass(frozen=True, eq=False)
class SelectedPattern:
    """A pattern, and the fields of a match by expressions over its stages; None for all."""

    pattern: Pattern
    select: tuple[tuple[str, Expr], ...] | None = None

    def __str__(self) -> str:
        return str(self.pattern)
