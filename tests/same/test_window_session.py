"""Session windows and windows by count."""

from __future__ import annotations

import random
from typing import Any

import pytest

import penstock as ps
from penstock.testing import BARRIER, run_local
from tests.same.conftest import Case
from tests.same.test_window import at, clicks, run

GIVEN = [
    ("ada", at(0), 1),
    ("ada", at(8), 2),
    ("bob", at(3), 3),
    ("ada", at(40), 4),
    ("ada", at(17), 5),
    ("ada", at(33), 6),
    ("bob", at(12), 7),
]


@pytest.mark.live
def test_sessions_go_on_while_records_come_within_the_gap(same: Case) -> None:
    flow, stream = clicks("session", lateness="2m")
    windows = stream.key_by("user").window(ps.session("10s"))
    windows.aggregate("w", n="count(*)", total="sum(n)").sink("out", ps.console())
    same.check(flow, {"clicks": GIVEN}, {"out": [
        ("ada", at(0), at(27), 3, 8), ("ada", at(33), at(50), 2, 10), ("bob", at(3), at(22), 2, 10),
    ]})  # fmt: skip


@pytest.mark.live
def test_a_record_between_two_sessions_makes_them_one(same: Case) -> None:
    flow, stream = clicks("bridge", lateness="2m")
    stream.key_by("user").window(ps.session("10s")).count("n").sink("out", ps.console())
    records = [("a", at(0), 1), ("a", at(16), 1), ("a", at(60), 1), ("a", at(8), 1)]
    same.check(flow, {"clicks": records}, {"out": [("a", at(0), at(26), 3), ("a", at(60), at(70), 1)]})


def test_the_gap_may_depend_on_the_record(same: Case) -> None:
    """n seconds behind each record; by an expression and by a function alike."""
    records = [("a", at(0), 5), ("a", at(4), 60), ("a", at(50), 1), ("a", at(70), 3), ("b", at(0), 2)]
    expected = [("a", at(0), at(64), 3), ("a", at(70), at(73), 1), ("b", at(0), at(2), 1)]
    gaps: dict[str, Any] = {"expression": ps.col("n"), "function": lambda row: row.n}
    for name, gap in gaps.items():
        flow, stream = clicks(f"gap-{name}", lateness="2m")
        stream.key_by("user").window(ps.session(gap)).count("n").sink("out", ps.console())
        same.check(flow, {"clicks": records}, {"out": expected})


def by_hand(records: list[Any], gap: int) -> list[Any]:
    """Sessions of each user, by hand."""
    made = []
    for user in {r[0] for r in records}:
        times = sorted(r[1] for r in records if r[0] == user)
        first, last, n = times[0], times[0], 0
        for time in times:
            if (time - last).total_seconds() >= gap:
                made.append((user, first, last, n))
                first, n = time, 0
            last, n = time, n + 1
        made.append((user, first, last, n))
    return [(user, first, last + (at(gap) - at(0)), n) for user, first, last, n in made]


def test_many_sessions_out_of_order_within_lateness(same: Case) -> None:
    rolled = random.Random(3)
    records = [(rolled.choice("abcdefgh"), at(i - rolled.randint(0, 20)), i) for i in range(500)]
    flow, stream = clicks("sessions", lateness="25s")
    stream.key_by("user").window(ps.session("8s")).count("n").sink("out", ps.console())
    same.check(flow, {"clicks": records}, {"out": by_hand(records, 8)})


@pytest.mark.live
def test_sessions_that_change_are_given_anew_and_taken_back(same: Case) -> None:
    """Of a session that grew, the row under its old bounds is gone."""
    flow, stream = clicks("changing", lateness="2m")
    stream.key_by("user").window(ps.session("10s"), mode="update").count("n").sink("out", ps.console())
    records = [("a", at(0), 1), ("a", at(16), 1), BARRIER, ("a", at(8), 1)]
    results = run_local(flow, {"clicks": records}) if same.runtime == "bounded" else run(same, flow, records)
    table = results.table("out")
    assert {(k[1], k[2]): row.n for k, row in table.items()} == {(at(0), at(26)): 3}


def test_the_changelog_of_a_session_that_grew_deletes_the_old_one(same: Case) -> None:
    flow, stream = clicks("grown", lateness="2m")
    counts = stream.key_by("user").window(ps.session("10s"), mode="update").count("n")
    counts.changelog("log").sink("out", ps.console())
    counts.key_by("user").aggregate("sessions", many="count(*)", longest="max(n)").sink("many", ps.console())
    records = [("a", at(0), 1), ("a", at(16), 1), BARRIER, ("a", at(8), 1)]
    results = run_local(flow, {"clicks": records}) if same.runtime == "bounded" else run(same, flow, records)
    changes = [(r.op, r.window_start, r.window_end, r.n) for r in results["out"]]
    assert set(changes[:2]) == {("insert", at(0), at(10), 1), ("insert", at(16), at(26), 1)}
    assert set(changes[2:]) == {
        ("delete", at(0), at(10), 1),
        ("delete", at(16), at(26), 1),
        ("insert", at(0), at(26), 3),
    }
    assert results.table("many") == {"a": ("a", 1, 3)}


def test_own_aggregator_over_sessions(same: Case) -> None:
    class Words(ps.Aggregator):
        schema = "string"

        def init(self) -> str:
            return ""

        def add(self, so_far: str, row: Any) -> str:
            return self.merge(so_far, str(row.n))

        def merge(self, one: str, other: str) -> str:
            return "".join(sorted(one + other))

    flow, stream = clicks("own-session", lateness="2m")
    stream.key_by("user").window(ps.session("10s")).aggregate("w", seen=Words).sink("out", ps.console())
    same.check(flow, {"clicks": GIVEN}, {"out": [
        ("ada", at(0), at(27), "125"), ("ada", at(33), at(50), "46"), ("bob", at(3), at(22), "37"),
    ]})  # fmt: skip


def orders(name: str) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("orders", ps.items([], "user string, n int"))


ORDERS = [("a", 1), ("b", 10), ("a", 2), ("a", 3), ("b", 20), ("a", 4), ("a", 5), ("a", 6), ("a", 7)]


@pytest.mark.live
def test_windows_of_so_many_records(same: Case) -> None:
    flow, stream = orders("count-window")
    stream.key_by("user").window(ps.count_window(3)).sum("total", "n").sink("out", ps.console())
    same.check(flow, {"orders": ORDERS}, {"out": [("a", 1, 6), ("a", 2, 15)]})


@pytest.mark.live
def test_windows_of_the_last_so_many_records(same: Case) -> None:
    flow, stream = orders("count-sliding")
    stream.key_by("user").window(ps.count_window(4, every=2)).sum("total", "n").sink("out", ps.console())
    same.check(flow, {"orders": ORDERS}, {"out": [("a", 1, 10), ("a", 2, 18)]})


def test_reduce_over_windows_by_count(same: Case) -> None:
    flow, stream = orders("count-reduce")
    windows = stream.key_by("user").window(ps.count_window(2))
    windows.reduce("sum", lambda one, other: (one.user, one.n + other.n)).sink("out", ps.console())
    same.check(flow, {"orders": ORDERS}, {"out": [("a", 1, 3), ("a", 2, 7), ("a", 3, 11), ("b", 1, 30)]})
