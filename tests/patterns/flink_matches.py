"""Matches that Flink has recorded, and what else may stand beside them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from tests.patterns.cases import Case
from tests.patterns.reference import Reference, is_lost_by_flink


def are_those_of_flink(case: Case, matches: Iterable[str]) -> bool:
    """Whether matches are those of a case, or by definition where Flink loses some.

    Beside them stand those that Flink never emits since a run that began before them goes on: here the end of the input emits them.
    """
    expected: list[str] = case["matches"]
    ours, theirs = Counter(matches), Counter(expected)
    if ours != theirs and case["skip"] == ["no_skip"] and is_lost_by_flink(case["parts"]):
        return ours == Counter(Reference(case).matches())
    if ours == theirs or theirs - ours:
        return ours == theirs
    held, emitted = min(map(first_event, ours - theirs)), max(map(first_event, theirs), default=-1)
    return case["skip"] != ["no_skip"] and not case.get("within") and held > emitted


def first_event(match: str) -> int:
    """The number of the first event of a match."""
    return min(events_of(match))


def last_event(match: str) -> int:
    """The number of the last event of a match."""
    return max(events_of(match))


def events_of(match: str) -> list[int]:
    """The numbers of the events of a match."""
    return [int(number) for number in re.findall(r"(?<=[=,])\d+", match)]
