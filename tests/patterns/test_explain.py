"""`explain_match` says of each event what it did, and agrees with the step."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from penstock.errors import ExpressionError
from penstock.testing import explain_match
from tests.patterns.cases import Case, answered, pattern_of, rows_of
from tests.patterns.flink_matches import are_those_of_flink
from tests.patterns.test_flink_answers import is_refused_here

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
A, B, C = (f"kind = '{letter}'" for letter in "abc")


def at(*events: tuple[str, int]) -> list[tuple[str, datetime.datetime]]:
    return [(kind, START + datetime.timedelta(seconds=second)) for kind, second in events]


def test_a_match_is_explained_event_by_event() -> None:
    pattern = ps.pattern("p").begin("a", A).followed_by("b", B)
    found = explain_match(pattern, ["a", "c", "b"], "kind string")
    assert str(found).splitlines() == [
        "1 (kind='a'): satisfies a",
        "  begins a run: a=1; it waits for b",
        "2 (kind='c'): satisfies no condition",
        "  changes nothing",
        "3 (kind='b'): satisfies b",
        "  is the last event of a match: a=1 b=3",
        "match: a=1 b=3",
    ]


def test_a_run_that_must_be_continued_at_once_says_so() -> None:
    found = explain_match(ps.pattern("p").begin("a", A).next("b", B), ["a", "c"], "kind string")
    assert "  ends the run a=1: the very next event had to satisfy b" in found.lines
    assert found.lines[-1] == "no match"


def test_what_must_not_happen_is_named() -> None:
    pattern = ps.pattern("p").begin("a", A).not_followed_by("c", C).followed_by("b", B)
    found = explain_match(pattern, ["a", "c", "b"], "kind string")
    assert "  ends the run a=1: the event is c, which must not happen" in found.lines


def test_a_run_whose_time_is_up_says_so() -> None:
    pattern = ps.pattern("p").begin("a", A).followed_by("b", B).within("10s")
    found = explain_match(pattern, at(("a", 0), ("b", 10)), "kind string, at timestamp", event_time="at")
    assert "  before it the run a=1 has timed out (within 10s)" in found.lines
    assert (found.matches, found.timed_out, found.open) == ([], [{"a": [1]}], [])


def test_an_absence_is_sure_once_time_has_passed() -> None:
    pattern = ps.pattern("p").begin("a", A).not_followed_by("b", B).within("10s")
    found = explain_match(pattern, at(("a", 0)), "kind string, at timestamp", event_time="at")
    assert found.open == [({"a": [1]}, "no b")]
    assert "once its time is up the run a=1 is a match" in found.lines
    assert found.matches == [{"a": [1]}]


def test_a_run_that_a_match_drops_says_so() -> None:
    pattern = ps.pattern("p").begin("a", A, one_or_more=True).followed_by("b", B).after_match("past_last")
    found = explain_match(pattern, ["a", "a", "b"], "kind string")
    assert "  ends the run a=2: after_match past_last drops it" in found.lines


def test_a_condition_on_what_was_taken_is_asked_for_each_run() -> None:
    pattern = ps.pattern("p").begin("a", A).followed_by("b", f"{B} and n > a.n")
    found = explain_match(pattern, [("a", 5), ("b", 3), ("b", 7)], "kind string, n int")
    assert found.lines[2] == "2 (kind='b', n=3): satisfies no condition"
    assert found.matches == [{"a": [1], "b": [3]}]


def test_events_are_put_in_the_order_of_their_time() -> None:
    pattern = ps.pattern("p").begin("a", A).followed_by("b", B)
    found = explain_match(pattern, at(("b", 5), ("a", 1)), "kind string, at timestamp", event_time="at")
    assert found.matches == [{"a": [1], "b": [2]}]


def test_no_events_match_nothing() -> None:
    assert explain_match(ps.pattern("p").begin("a", A), [], "kind string").lines == ("no match",)


def test_a_condition_that_does_not_fit_is_refused() -> None:
    with pytest.raises(ExpressionError, match="kind"):
        explain_match(ps.pattern("p").begin("a", "kinds = 1"), ["a"], "kind string")


def written(runs: list[dict[str, list[int]]]) -> list[str]:
    shown = [" ".join(f"{stage}={','.join(str(n - 1) for n in run[stage])}" for stage in sorted(run)) for run in runs]
    return sorted(shown)


@pytest.mark.parametrize("kind", ["documented", "skips", "absence", "groups", "rules", "gaps"])
def test_the_matches_that_are_explained_are_those_of_flink(kind: str) -> None:
    cases: list[Case] = [case for case in answered() if case["kind"] == kind and "matches" in case]
    for case in cases[::5]:
        if not is_refused_here(case):
            rows: list[Any] = rows_of([case["events"]])
            found = explain_match(
                pattern_of(case), rows, "k int, i int, kind string, n int, at timestamp", event_time="at"
            )
            assert are_those_of_flink(case, written(found.matches)), case
            assert written(found.timed_out) == sorted(each.partition("@")[0] for each in case["timed_out"]), case
