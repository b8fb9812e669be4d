"""The aggregates that windows and running totals have."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case
from tests.same.test_window import at

SCHEMA = "user string, ts timestamp, n int, price double, what string"
GIVEN = [
    ("a", at(5), 3, 2.5, "x"),
    ("a", at(1), 1, None, "y"),
    ("a", at(9), None, 4.0, "x"),
    ("a", at(5), 2, 1.5, None),
    ("b", at(2), None, None, None),
]
ALL = {
    "oldest": "first(what)",
    "newest": "last(n)",
    "cheapest": "min_by(what, price)",
    "dearest": "max_by(n, price)",
    "each": "collect_list(n)",
    "words": "collect_set(what)",
    "kinds": "count(distinct what)",
    "best": "top(2, n)",
    "middle": "median(n)",
    "high": "percentile(n, 0.75)",
    "spread": "stddev(n)",
    "spread_all": "stddev_pop(n)",
    "var": "variance(n)",
    "var_all": "var_pop(n)",
}
A: tuple[Any, ...] = (
    "y",
    None,
    None,
    None,
    [1, 2, 3],
    ["x", "y"],
    2,
    [3, 2],
    2.0,
    2.5,
    1.0,
    (2 / 3) ** 0.5,
    1.0,
    2 / 3,
)
B: tuple[Any, ...] = (None, None, None, None, [], [], 0, [], None, None, None, None, None, None)
"""min_by goes to the lowest price, whose `what` is null; max_by to the highest, whose `n` is null."""


def source(name: str) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("rows", ps.items([], SCHEMA), event_time="ts", lateness="1m")


def rounded(rows: Any) -> list[Any]:
    return sorted([tuple(round(v, 9) if isinstance(v, float) else v for v in row) for row in rows], key=repr)


def check(got: Any, wanted: list[Any]) -> None:
    assert rounded(got) == rounded(wanted)


@pytest.mark.live
def test_aggregates_over_windows(same: Case) -> None:
    flow, stream = source("aggregates")
    stream.key_by("user").window(ps.tumbling("10s")).aggregate("w", **ALL).sink("out", ps.console())
    rows = same.run(flow, {"rows": GIVEN})["out"]
    check([(r[0], *r[3:]) for r in rows], [("a", *A), ("b", *B)])


@pytest.mark.live
def test_aggregates_as_running_totals(same: Case) -> None:
    flow, stream = source("totals")
    stream.key_by("user").aggregate("w", **ALL).sink("out", ps.console())
    check(same.run(flow, {"rows": GIVEN}).table("out").values(), [("a", *A), ("b", *B)])


@pytest.mark.live
def test_aggregates_over_sessions_and_slides(same: Case) -> None:
    flow, stream = source("sessions")
    keyed = stream.key_by("user")
    keyed.window(ps.session("20s")).aggregate("s", **ALL).sink("sessions", ps.console())
    keyed.window(ps.sliding("20s", every="10s"), mode="update").aggregate("u", **ALL).sink("slides", ps.console())
    results = same.run(flow, {"rows": GIVEN})
    check([(r[0], *r[3:]) for r in results["sessions"]], [("a", *A), ("b", *B)])
    slides = results.table("slides").values()
    check([(r[0], *r[3:]) for r in slides], [("a", *A), ("a", *A), ("b", *B), ("b", *B)])


def test_collect_list_goes_by_event_time_and_then_by_value(same: Case) -> None:
    flow, stream = source("list")
    windows = stream.key_by("user").window(ps.tumbling("1m"))
    windows.aggregate("w", prices="collect_list(price)").sink("out", ps.console())
    results = same.run(flow, {"rows": GIVEN})["out"]
    assert {r.user: r.prices for r in results} == {"a": [1.5, 2.5, 4.0], "b": []}


def test_first_needs_an_event_time() -> None:
    flow = ps.Flow("untimed")
    stream = flow.source("rows", ps.items([], "user string, n int"))
    with pytest.raises(ps.errors.ExpressionError, match=r"min_by\(n, a_field\)"):
        stream.key_by("user").aggregate("w", a="first(n)")


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("top(n)", r"top\(3, score\)"),
        ("top(0, n)", r"top\(3, score\)"),
        ("percentile(n, 2)", "0..1"),
        ("median(what)", "needs a number"),
        ("frist(n)", "first"),
    ],
)
def test_a_wrong_aggregate_says_how_it_is_written(written: str, says: str) -> None:
    _, stream = source("wrong")
    with pytest.raises(ps.errors.ExpressionError, match=says):
        stream.key_by("user").aggregate("w", a=written)


def test_sketches_are_about_right_over_windows_and_as_totals(same: Case) -> None:
    pytest.importorskip("datasketches")
    flow, stream = source("sketches")
    keyed = stream.key_by("user")
    sketches = {
        "about": "approx_count_distinct(n)",
        "words": "approx_count_distinct(what)",
        "p": "approx_percentile(n, 0.9)",
    }
    keyed.window(ps.tumbling("1h")).aggregate("w", **sketches).sink("windows", ps.console())
    keyed.aggregate("t", **sketches).sink("totals", ps.console())
    rows = [("a", at(i / 10), i % 3000, 1.0, f"word-{i % 40}") for i in range(6000)]
    results = same.run(flow, {"rows": [*rows, ("b", at(1), None, None, None)]})
    for made in ([r for r in results["windows"] if r.user == "a"], [results.table("totals")["a"]]):
        [row] = made
        assert abs(row.about - 3000) < 150
        assert row.words == 40
        assert abs(row.p - 2700) < 120
    nothing = results.table("totals")["b"]
    assert (nothing.about, nothing.words, nothing.p) == (0, 0, None)
