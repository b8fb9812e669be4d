"""An absence at the end of a pattern, after what may go on or after another absence: a match is emitted when time is up, whatever else happens."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.testing import run_local

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
LOOPS: list[dict[str, Any]] = [
    {"one_or_more": True}, {"one_or_more": True, "greedy": True}, {"one_or_more": True, "combinations": True}, {"one_or_more": True, "consecutive": True},
    {"times": (1, 2)}, {"times": (1, 2), "greedy": True}, {"one_or_more": True, "greedy": True, "until": "kind = 'u'"},
]  # fmt: skip


def matches(pattern: PatternBuilder, events: str, reads_timed_out: bool) -> list[str]:
    """The matches in events such as `a1 b4`: kinds with seconds."""
    flow = ps.Flow("absence")
    stream = flow.source("events", ps.items([], "kind string, id string, at timestamp"), event_time="at")
    found = stream.match("found", pattern)
    found.sink("out", ps.console())
    if reads_timed_out:
        found.side("timed_out").sink("timed_out", ps.console())
    given = [(each[0], each, START + datetime.timedelta(seconds=int(each[1:]))) for each in events.split()]
    rows = run_local(flow, {"events": given})["out"]
    return sorted(" ".join(event["id"] for part in row if isinstance(part, list) for event in part) for row in rows)


def of_kind(kind: str) -> str:
    return f"kind = '{kind}'"


@pytest.mark.parametrize("reads_timed_out", [False, True])
@pytest.mark.parametrize("loop", LOOPS, ids=" ".join)
def test_a_loop_before_it_needs_no_other_event(loop: dict[str, Any], reads_timed_out: bool) -> None:
    pattern = ps.pattern("p").begin("a", of_kind("a")).followed_by("b", of_kind("b"), **loop)
    pattern = pattern.not_followed_by("c", of_kind("c")).within("10s")
    for events in ("a0 b1", "a0 b1 x2", "a0 b1 x2 x3 c10"):
        assert matches(pattern, events, reads_timed_out) == ["a0 b1"], events
    for events in ("a0", "a0 b1 c2", "a0 b1 x2 c9", "a0 b10"):
        assert matches(pattern, events, reads_timed_out) == [], events


def test_a_greedy_loop_takes_what_it_can_until_it_is_ended() -> None:
    pattern = (
        ps.pattern("p")
        .begin("a", of_kind("a"))
        .followed_by("b", of_kind("b"), one_or_more=True, greedy=True, until=of_kind("u"))
    )
    pattern = pattern.not_followed_by("c", of_kind("c")).within("10s")
    assert matches(pattern, "a0 b1 b2", False) == ["a0 b1 b2"]
    assert matches(pattern, "a0 b1 x2 b3 x4", False) == ["a0 b1 b3"]
    assert matches(pattern, "a0 b1 u2 b3", False) == ["a0 b1"]
    assert matches(pattern, "a0 b1 x2 u3 b4", False) == ["a0 b1"]
    assert matches(pattern, "a0 b1 u2 c3", False) == []


def test_the_time_of_its_stage_counts_from_the_last_event_of_the_loop() -> None:
    pattern = ps.pattern("p").begin("a", of_kind("a"), one_or_more=True, greedy=True)
    pattern = pattern.not_followed_by("c", of_kind("c")).within("5s", per="stage")
    assert matches(pattern, "a0 a3 x4 c9", False) == ["a0 a3", "a3"]
    assert matches(pattern, "a0 a3 c7", False) == []


@pytest.mark.parametrize(("events", "expected"), [("a0", ["a0"]), ("a0 b1", []), ("a0 c1", []), ("a0 x1 b10", ["a0"])])
def test_two_absences_at_the_end_both_count(events: str, expected: list[str]) -> None:
    pattern = (
        ps.pattern("p").begin("a", of_kind("a")).not_followed_by("b", of_kind("b")).not_followed_by("c", of_kind("c"))
    )
    assert matches(pattern.within("10s"), events, False) == expected
