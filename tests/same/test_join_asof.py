"""As-of joins: each record with the nearest one of another stream."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case
from tests.same.test_join_interval import at, shuffled, streams

DIRECTIONS = ["backward", "forward", "nearest"]


def flow_of(direction: str = "backward", **options: Any) -> ps.Flow:
    flow = ps.Flow("asof")
    left, right = streams(flow)
    left.asof_join("quote", right, "user", direction=direction, **options).sink("out", ps.console())
    return flow


def oracle(left: list[Any], right: list[Any], direction: str, tolerance: float | None, how: str) -> list[Any]:
    """The as-of join by brute force; of several at one moment the one with the largest number."""
    most = datetime.timedelta.max if tolerance is None else datetime.timedelta(seconds=tolerance)
    made = []
    for user, n, time in left:
        mine = [r for r in right if user is not None and r[0] == user and abs(r[2] - time) <= most]
        before = max((r for r in mine if r[2] <= time), key=lambda r: (r[2], r[1]), default=None)
        behind = min((r for r in mine if r[2] >= time), key=lambda r: (r[2], -r[1]), default=None)
        best = before if direction == "backward" else behind
        if direction == "nearest":
            best = min((r for r in (before, behind) if r), key=lambda r: abs(r[2] - time), default=None)
        if best or how == "left":
            made.append((user, n, time, *(best[1:] if best else (None, None))))
    return made


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.live("nearest")
def test_the_nearest_within_a_tolerance(same: Case, direction: str) -> None:
    left = shuffled("left", 60, ["a", "b", "c", None])
    right = [(u, 10 + m, time) for u, m, time in shuffled("right", 40, ["a", "b", "d", None])]
    expected = oracle(left, right, direction, 6, "left")
    assert any(row[3] is None for row in expected)
    same.check(flow_of(direction, tolerance="6s"), {"left": left, "right": right}, {"out": expected})


def test_backward_without_a_tolerance_reaches_back_any_time(same: Case) -> None:
    right = [("a", 10, at(0)), ("b", 11, at(1)), ("a", 12, at(5000)), ("c", 13, at(9000))]
    left = [("a", 1, at(2)), ("b", 2, at(4000)), ("a", 3, at(4999)), ("a", 4, at(5000)), ("c", 5, at(8000))]
    same.check(flow_of(), {"left": left, "right": right}, {"out": oracle(left, right, "backward", None, "left")})


def test_inner_leaves_out_what_has_no_match(same: Case) -> None:
    left = shuffled("few", 30, ["a", "b"])
    right = [(u, 10 + m, time) for u, m, time in shuffled("more", 10, ["a"])]
    expected = oracle(left, right, "backward", None, "inner")
    same.check(flow_of(how="inner"), {"left": left, "right": right}, {"out": expected})


@pytest.mark.parametrize("direction", DIRECTIONS)
def test_of_several_at_one_moment_every_run_takes_the_same(same: Case, direction: str) -> None:
    right = [("a", m, at(10)) for m in (13, 17, 11, 15)]
    left = [("a", 1, at(8)), ("a", 2, at(10)), ("a", 3, at(12))]
    expected = oracle(left, right, direction, 5, "left")
    same.check(flow_of(direction, tolerance="5s"), {"left": left, "right": right}, {"out": expected})


def test_an_equal_distance_goes_to_the_earlier_one(same: Case) -> None:
    right = [("a", 11, at(12)), ("a", 12, at(8))]
    same.check(
        flow_of("nearest", tolerance="5s"),
        {"left": [("a", 1, at(10))], "right": right},
        {"out": [("a", 1, at(10), 12, at(8))]},
    )


@pytest.mark.live
def test_windows_over_an_asof_join_are_whole(same: Case) -> None:
    flow = ps.Flow("behind")
    left, right = streams(flow)
    quoted = left.asof_join("quote", right, "user", direction="forward", tolerance="15s")
    quoted.key_by("user").window(ps.tumbling("10s")).aggregate("n", n="count(*)", m="count(m)").sink(
        "out", ps.console()
    )
    one = shuffled("left", 50, ["a", "b"])
    two = shuffled("right", 50, ["a", "b"])
    expected: dict[Any, list[int]] = {}
    for user, _, time, m, _ in oracle(one, two, "forward", 15, "left"):
        start = time - datetime.timedelta(seconds=time.timestamp() % 10)
        both = expected.setdefault((user, start), [0, 0])
        both[0], both[1] = both[0] + 1, both[1] + (m is not None)
    rows = [(u, s, s + datetime.timedelta(seconds=10), *both) for (u, s), both in expected.items()]
    same.check(flow, {"left": one, "right": two}, {"out": rows})


def test_two_fields_may_have_to_equal_one_of_the_other_stream(same: Case) -> None:
    """In each batch the newest row of a key is found among those of batches before, too."""
    flow = ps.Flow("asof")
    left, right = streams(flow)
    pairs = left.select("both", "user", "n", "ts", other="if(n % 2 = 0, user, 'x')")
    pairs.asof_join("quote", right, [("user", "user"), ("other", "user")], prefix="r_").select(
        "short", "user", "n", "r_m"
    ).sink("out", ps.console())
    given = {"left": [("a", n, at(10 * n)) for n in range(1, 7)], "right": [("a", n, at(20 * n)) for n in range(4)]}
    expected = [("a", n, n // 2 if n % 2 == 0 else None) for n in range(1, 7)]
    same.check(flow, given, {"out": expected}, cuts={"left": [2, 4], "right": [1, 2]})
