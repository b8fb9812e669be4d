"""What the search for a match is given, and what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

RowLabel: TypeAlias = tuple[str, bool]
"""The variable of a row in a match, and whether the row is left out of the output."""


@dataclass(frozen=True, slots=True)
class Span:
    """The rows that a match may take: from `start` to before `end`.

    `at_start` says that the first is the first row of its key, `at_end` that the last is the last one. `is_closed` says that no other
    row can be taken; else more may come.
    """

    start: int
    end: int
    at_start: bool
    at_end: bool
    is_closed: bool


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was found: the variable of each row of the match, none for an empty one; None where there is no match.

    `partial` has the rows of the preferred thread that might have gone on, where there is no match because no other row can be taken.
    """

    labels: tuple[RowLabel, ...] | None
    partial: tuple[RowLabel, ...] = ()


FAILED = Outcome(None)
"""There is no match."""
WAITING = Outcome(None)
"""It depends on rows that are not known yet."""
