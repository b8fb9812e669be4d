"""Patterns of stages, case by case: loops, optional stages, greed, until, absences, groups, and time."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.frontends.streams.patterns import PatternBuilder
from tests.patterns.matching import found, kind

A, B, C, D = (kind(name) for name in "abcd")


def after_c() -> PatternBuilder:
    return ps.pattern("p").begin("s", C)


CASES: dict[str, tuple[PatternBuilder, str, list[str]]] = {
    "any, then a loop": (
        after_c().followed_by_any("m", A, one_or_more=True).followed_by("e", B),
        "c1 a1 a2 b1",
        ["c1 a1 b1", "c1 a2 b1", "c1 a1 a2 b1"],
    ),
    "relaxed, then a loop": (
        after_c().followed_by("m", A, one_or_more=True).followed_by("e", B),
        "c1 a1 a2 b1",
        ["c1 a1 b1", "c1 a1 a2 b1"],
    ),
    "a loop at the begin": (
        ps.pattern("p").begin("a", A, one_or_more=True).followed_by("b", B),
        "a1 a2 a3 b1",
        ["a1 b1", "a1 a2 b1", "a1 a2 a3 b1", "a2 b1", "a2 a3 b1", "a3 b1"],
    ),
    "none or more at the end": (
        after_c().followed_by("m", A, one_or_more=True, optional=True),
        "c1 a1 a2",
        ["c1", "c1 a1", "c1 a1 a2"],
    ),
    "optional between": (
        after_c().followed_by("m", A, optional=True).followed_by("e", B),
        "c1 a1 b1",
        ["c1 a1 b1", "c1 b1"],
    ),
    "twice, strictly": (
        after_c().next("m", A, times=2, consecutive=True).followed_by("e", B),
        "c1 a1 a2 a3 b1",
        ["c1 a1 a2 b1"],
    ),
    "twice, with others between": (
        after_c().followed_by("m", A, times=2).followed_by("e", B),
        "c1 a1 d1 a2 b1",
        ["c1 a1 a2 b1"],
    ),
    "twice in combinations": (
        after_c().followed_by("m", A, times=2, combinations=True).followed_by("e", B),
        "c1 a1 a2 a3 b1",
        ["c1 a1 a2 b1", "c1 a1 a3 b1"],
    ),
    "twice in combinations, from any": (
        after_c().followed_by_any("m", A, times=2, combinations=True).followed_by("e", B),
        "c1 a1 a2 a3 b1",
        ["c1 a1 a2 b1", "c1 a1 a3 b1", "c1 a2 a3 b1"],
    ),
    "one to three, optional": (
        after_c().followed_by("m", A, times=(1, 3), optional=True).followed_by("e", B),
        "c1 a1 a2 b1",
        ["c1 b1", "c1 a1 b1", "c1 a1 a2 b1"],
    ),
    "none to two": (
        after_c().followed_by("m", A, times=(0, 2)).followed_by("e", B),
        "c1 a1 a2 b1",
        ["c1 b1", "c1 a1 b1", "c1 a1 a2 b1"],
    ),
    "greedy": (
        after_c().followed_by("m", A, one_or_more=True, greedy=True).followed_by("e", B),
        "c1 a1 a2 a3 b1",
        ["c1 a1 a2 a3 b1"],
    ),
    "greedy and optional": (
        after_c().followed_by("m", A, one_or_more=True, greedy=True, optional=True).followed_by("e", B),
        "c1 a1 a2 b1",
        ["c1 a1 a2 b1"],
    ),
    "greedy, where the next stage takes the same": (
        after_c().followed_by("m", A, one_or_more=True, greedy=True).followed_by("e", "kind = 'b' or word = 'a3'"),
        "c1 a1 a2 a3 b1",
        ["c1 a1 a2 a3 b1"],
    ),
    "until": (
        ps.pattern("p").begin("m", A, one_or_more=True, until=B),
        "a1 c1 a2 b1 a3",
        ["a1", "a1 a2", "a2", "a3"],
    ),
    "until, then a stage": (
        after_c().followed_by("m", A, one_or_more=True, until=D).followed_by("e", B),
        "c1 a1 d1 a2 b1",
        ["c1 a1 b1"],
    ),
    "until one of the loop's own": (
        after_c().followed_by("m", A, one_or_more=True, combinations=True, until="word = 'a3'").followed_by("e", B),
        "c1 a1 a2 a3 b1",
        ["c1 a1 b1", "c1 a1 a2 b1"],
    ),
    "an absence between": (
        ps.pattern("p").begin("a", A).not_followed_by("n", C).followed_by("d", D),
        "a1 c1 d1 a2 b1 d2",
        ["a2 d2"],
    ),
    "an absence before any": (
        ps.pattern("p").begin("a", A).not_followed_by("n", C).followed_by_any("d", D),
        "a1 d1 c1 d2",
        ["a1 d1"],
    ),
    "not next": (
        ps.pattern("p").begin("a", A).not_next("n", B).followed_by("d", D),
        "a1 b1 d1 a2 c1 d2",
        ["a2 d2"],
    ),
    "an absence after an optional stage further back": (
        ps.pattern("p")
        .begin("a", A)
        .followed_by("b", B, optional=True)
        .followed_by("c", C)
        .not_followed_by("n", D)
        .followed_by("e", A),
        "a1 b1 c1 a2",
        ["a1 b1 c1 a2", "a1 c1 a2"],
    ),
    "an absence in a group that is repeated": (
        ps.pattern("p").begin(ps.pattern("g").begin("a", A).not_followed_by("n", C).followed_by("b", B), times=2),
        "a1 b1 a2 c1 b2 a3 b3",
        [],
    ),
    "a group twice": (
        after_c().followed_by(ps.pattern("g").begin("a", A).next("b", B), times=2).followed_by("e", D),
        "c1 a1 b1 a2 b2 d1",
        ["c1 a1 b1 a2 b2 d1"],
    ),
    "an optional group": (
        after_c().followed_by(ps.pattern("g").begin("a", A).followed_by("b", B), optional=True).followed_by("e", D),
        "c1 a1 b1 d1",
        ["c1 d1", "c1 a1 b1 d1"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_runs(name: str) -> None:
    pattern, words, expected = CASES[name]
    assert found(pattern, words) == sorted(expected)


TIMED: dict[str, tuple[PatternBuilder, list[tuple[str, int]], str, list[str]]] = {
    "the end of within is out": (
        ps.pattern("p").begin("a", A).followed_by("b", B).within("10s"),
        [("a1", 1), ("b1", 11)],
        "",
        [],
    ),
    "before its end": (
        ps.pattern("p").begin("a", A).followed_by("b", B).within("10s"),
        [("a1", 1), ("b1", 10)],
        "",
        ["a1 b1"],
    ),
    "an absence at the end": (
        ps.pattern("p").begin("a", A).not_followed_by("b", B).within("10s"),
        [("a1", 0), ("b1", 5), ("a2", 6), ("c1", 30)],
        "",
        ["a2"],
    ),
    "what was taken when time was up": (
        ps.pattern("p").begin("a", A).followed_by("b", B).followed_by("c", C).within("10s"),
        [("a1", 1), ("b1", 5), ("d1", 20)],
        "timed_out",
        ["a1 b1"],
    ),
    "the time of a stage": (
        ps.pattern("p").begin("a", A).followed_by("b", B).within("3s", per="stage").followed_by("c", C),
        [("a1", 0), ("b1", 3), ("a2", 4), ("b2", 6), ("c1", 99)],
        "",
        ["a2 b2 c1"],
    ),
}


@pytest.mark.parametrize("name", TIMED)
def test_time(name: str) -> None:
    pattern, words, side, expected = TIMED[name]
    assert found(pattern, words, side) == expected


def test_an_absence_is_reported_although_an_earlier_run_goes_on() -> None:
    """Every match counts, so that of a2 does not wait for the run of a1, whose loop has no end."""
    begun = ps.pattern("p").begin("s", A, optional=True).next("m", B, one_or_more=True)
    pattern = begun.not_followed_by("n", C).within("1s", per="stage")
    events = [("a1", 1), ("b1", 3), ("d1", 5), ("d2", 6), ("b2", 6)]
    assert found(pattern, events) == ["a1 b1", "a1 b1 b2", "b1", "b1 b2", "b2"]
