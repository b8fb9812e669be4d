"""`explain_match` says of each event what it did, and agrees with the step."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from penstock.errors import ExpressionError, FlowError, StepError
from penstock.testing import explain_match, run_local
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


def test_a_run_whose_loop_has_ended_says_so() -> None:
    pattern = ps.pattern("p").begin("a", A).followed_by("b", B, one_or_more=True, until=C)
    found = explain_match(pattern, ["a", "b", "c"], "kind string")
    assert found.lines[-2] == (
        "  ends the run a=1 b=2: the event satisfies until b, which ends the loop, and nothing else may come next"
    )
    assert found.matches == [{"a": [1], "b": [2]}]


def test_a_run_that_the_limit_drops_says_so() -> None:
    pattern = ps.pattern("p").begin("a", A).followed_by("b", B).limit(1)
    found = explain_match(pattern, ["a", "a", "b"], "kind string")
    assert "  ends the run a=1: a key may have 1 at a time, and it is the oldest" in found.lines
    assert found.matches == [{"a": [2], "b": [3]}]


def test_functions_are_asked_for_the_runs_that_ask_them() -> None:
    pattern = (
        ps.pattern("p").begin("a", lambda row, taken: row.n > 1).next("b", lambda row, taken: row.n > taken["a"][0].n)
    )
    found = explain_match(pattern, [1, 2, 3, 1], "n int")
    assert found.matches == [{"a": [2], "b": [3]}]


def test_a_condition_that_fails_names_the_event() -> None:
    pattern = ps.pattern("p").begin("a", "10 div n > 1")
    with pytest.raises(StepError, match=r"(?s)division by zero.*record: +\(0,\)"):
        explain_match(pattern, [1, 0], "n int")
    with pytest.raises(StepError, match=r"(?s)division by zero.*record: +\(0,\)"):
        explain_match(ps.pattern_text("every a=A(10 div n > 1)"), [1, 0], "n int")


def test_row_patterns_have_an_explanation_of_their_own() -> None:
    with pytest.raises(FlowError, match="use explain_rows"):
        explain_match(ps.row_pattern("A", measures={"n": "A.n"}), [1], "n int")  # type: ignore[arg-type]  # a mistake


def test_pattern_text_is_explained_event_by_event() -> None:
    pattern = ps.pattern_text("every ([2] a=a -> b=b(n > a[0].n)) where timer:within(10 sec)", types="kind")
    given = [("a", 1, 0), ("a", 2, 1), ("b", 1, 2), ("x", 0, 3), ("b", 2, 4), ("a", 1, 5), ("x", 0, 30)]
    events = [(kind, n, START + datetime.timedelta(seconds=second)) for kind, n, second in given]
    found = explain_match(pattern, events, "kind string, n int, at timestamp", event_time="at")
    assert [line.split(": ", 1)[-1] if line[0] != " " else line for line in found.lines] == [
        "satisfies a=a",
        "  goes on: a=1; it waits for more events, or time",
        "satisfies a=a",
        "  goes on: a=1,2; it waits for more events, or time",
        "satisfies b=b(n > a[0].n)",
        "  changes nothing",
        "satisfies no filter",
        "  changes nothing",
        "satisfies b=b(n > a[0].n)",
        "  completes a match: a=1,2 b=5",
        "satisfies a=a",
        "  goes on: a=6; it waits for more events, or time",
        "satisfies no filter",
        "  before it the time of a=6 is up",
        "a=1,2 b=5",
    ]
    assert (found.matches, found.open) == ([{"a": [1, 2], "b": [5]}], [])


def test_what_time_completes_and_what_ends_a_pattern_text_is_said() -> None:
    absent = ps.pattern_text("every a=a -> (timer:interval(10 sec) and not b)", types="kind")
    found = explain_match(
        absent, at(("a", 0), ("b", 1), ("a", 5), ("x", 20)), "kind string, at timestamp", event_time="at"
    )
    assert "  ends a=1: what must hold until then holds no more" in found.lines
    assert "  before it, at 2026-01-01T00:00:15+00:00 time completes a match: a=3" in found.lines
    found = explain_match(ps.pattern_text("a=a and not b", types="kind"), ["b", "a"], "kind string")
    assert found.lines[1] == "  makes the pattern false for ever: nothing after it can match"
    assert found.lines[3:] == ("  changes nothing: the pattern has ended, and no every starts it again", "no match")


@pytest.mark.parametrize(
    "text",
    [
        "every a=a -> b=b",
        "every (a=a -> b=b) where timer:within(3 sec)",
        "every (a=a and not c)",
        "a=a -> every b=b or c=c",
        "[2] a=a until c=c",
        "every timer:interval(4 sec) -> b=b",
        "every a=a -> timer:schedule(period: 2 sec)",
    ],
)
def test_an_explanation_of_pattern_text_has_the_matches_of_the_step(text: str) -> None:
    events = at(*((kind, second) for second, kind in enumerate("abacbbaccabxab")))
    pattern = ps.pattern_text(text, types="kind")
    flow = ps.Flow("same")
    stream = flow.source("events", ps.items([], "kind string, at timestamp"), event_time="at")
    stream.match("hits", pattern).sink("out", ps.console())
    wanted = []
    for row in run_local(flow, {"events": events})["out"]:
        tagged = {name: row[name] for name in row.names if isinstance(row[name], list)}
        numbers = {tag: [events.index((e["kind"], e["at"])) + 1 for e in taken] for tag, taken in tagged.items()}
        wanted.append({tag: taken for tag, taken in numbers.items() if taken})
    found = explain_match(pattern, events, "kind string, at timestamp", event_time="at")
    assert found.matches == wanted
    assert wanted


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
