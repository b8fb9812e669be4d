"""An event on which a condition fails becomes a dead letter where the step says so; for the runs of its key it has not happened."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.errors import StepError
from penstock.testing import BARRIER, run_local

SCHEMA = "k int, kind string, n int"


def by_taken(row: Any, taken: Any) -> bool:
    """Fails on an event with n = 0."""
    return bool(row.kind == "b" and 10 / row.n > len(taken["a"]))


def by_event(row: Any) -> bool:
    """Fails on an event with n = 0."""
    return bool(row.kind == "b" and 10 / row.n > 1)


PATTERNS: dict[str, Any] = {
    "looks at what was taken": ps.pattern("p").begin("a", "kind = 'a'").followed_by("b", by_taken),
    "looks at the event": ps.pattern("p").begin("a", "kind = 'a'").followed_by("b", by_event),
    "strict": ps.pattern("p").begin("a", "kind = 'a'").next("b", by_taken),
    "an expression": ps.pattern("p").begin("a", "kind = 'a'").followed_by("b", "kind = 'b' and 10 div n > count(a)"),
    "operators": ps.pattern_text("every a=a -> b=b(10 div n > a.n)", types="kind"),
    "operators, the event alone": ps.pattern_text("every a=a -> b=b(10 div n > 1)", types="kind"),
}


def flow_of(pattern: Any, policy: object = "dead_letter") -> ps.Flow:
    flow = ps.Flow("f")
    events = flow.source("events", ps.items([], SCHEMA))
    hits = events.key_by("k").match("m", pattern, select={"k": "k", "a": "a.n", "b": "b.n"})
    (hits if policy is None else hits.on_error(policy)).sink("out", ps.console())  # type: ignore[arg-type]  # a word or a policy
    flow.dead_letters("dead", ps.console())
    return flow


EVENTS = [(1, "a", 1), (2, "a", 1), (1, "b", 0), (2, "b", 3), (1, "b", 2)]


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=list(PATTERNS))
@pytest.mark.parametrize("is_cut", [False, True])
def test_an_event_on_which_a_condition_fails_is_put_aside_and_the_flow_goes_on(pattern: Any, is_cut: bool) -> None:
    given = [each for event in EVENTS for each in (event, BARRIER)] if is_cut else EVENTS
    results = run_local(flow_of(pattern), {"events": given})
    assert sorted(results["out"]) == [(1, 1, 2), (2, 1, 3)]
    (letter,) = results["dead"]
    assert letter.step == "m"
    assert "zero" in letter.cause.lower()
    assert json.loads(letter.payload) == {"schema": SCHEMA, "record": {"k": 1, "kind": "b", "n": 0}}


@pytest.mark.parametrize("pattern", PATTERNS.values(), ids=list(PATTERNS))
def test_without_a_policy_the_flow_stops_at_the_event(pattern: Any) -> None:
    with pytest.raises(StepError, match="step 'm'"):
        run_local(flow_of(pattern, None), {"events": EVENTS})


def test_skipped_events_are_counted_and_no_dead_letters() -> None:
    results = run_local(flow_of(PATTERNS["looks at the event"], "skip"), {"events": EVENTS})
    assert (len(results["out"]), results["dead"]) == (2, [])


@pytest.mark.parametrize("sees_taken", [False, True])
def test_a_condition_is_called_again_as_often_as_the_policy_says(sees_taken: bool) -> None:
    calls: list[int] = []

    def wavers(row: Any) -> bool:
        calls.append(row.n)
        if len(calls) < 3:
            raise OSError("busy")
        return bool(row.kind == "b")

    condition: Callable[..., bool] = (lambda row, taken: wavers(row)) if sees_taken else wavers
    pattern = ps.pattern("p").begin("a", "kind = 'a'").followed_by("b", condition)
    flow = flow_of(pattern, ps.retry(3, "1ms", then="dead_letter"))
    results = run_local(flow, {"events": [(1, "a", 1), (1, "b", 5)]})
    assert results["out"] == [(1, 1, 5)]
    assert results["dead"] == []
    assert len(calls) >= 3


def test_late_failures_and_timed_out_runs_stay_apart() -> None:
    """A run goes on past an event that was put aside, and its time runs out as ever."""
    flow = ps.Flow("f")
    events = flow.source("events", ps.items([], "k int, kind string, n int, at timestamp"), event_time="at")
    pattern = ps.pattern("p").begin("a", "kind = 'a'").followed_by("b", by_taken).within("10s")
    hits = events.key_by("k").match("m", pattern, select={"k": "k"}).on_error("dead_letter")
    hits.sink("out", ps.console())
    hits.side("timed_out").sink("over", ps.console())
    flow.dead_letters("dead", ps.console())
    given = [(1, "a", 1, "2026-01-01 00:00:00"), (1, "b", 0, "2026-01-01 00:00:05")]
    rows = [(k, kind, n, datetime.datetime.fromisoformat(at + "+00:00")) for k, kind, n, at in given]
    results = run_local(flow, {"events": rows})
    assert (results["out"], len(results["over"]), len(results["dead"])) == ([], 1, 1)
