"""Joins of the records of two streams that fall into the same window."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case
from tests.same.test_join_interval import HOWS, at, shuffled, streams


def flow_of(window: Any, how: str = "inner") -> ps.Flow:
    flow = ps.Flow("windows")
    left, right = streams(flow)
    left.window_join("both", right, "user", window, how=how).sink("out", ps.console())
    return flow


def oracle(left: list[Any], right: list[Any], size: int, every: int, how: str) -> list[Any]:
    """The window join by brute force."""
    starts = range(-size, 200, every)
    made: list[Any] = []
    for start in starts:
        bounds = (at(start), at(start + size))
        ones, twos = ([r for r in rows if bounds[0] <= r[2] < bounds[1]] for rows in (left, right))
        near = [(one, two) for one in ones for two in twos if one[0] is not None and one[0] == two[0]]
        made += [(*bounds, *one, *two[1:]) for one, two in near]
        if how in ("left", "full"):
            made += [(*bounds, *one, None, None) for one in ones if all(one is not pair[0] for pair in near)]
        if how in ("right", "full"):
            made += [
                (*bounds, two[0], None, None, *two[1:]) for two in twos if all(two is not pair[1] for pair in near)
            ]
    return made


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.live("full")
def test_tumbling_windows(same: Case, how: str) -> None:
    left, right = shuffled("left", 50, ["a", "b", None, "x"]), shuffled("right", 50, ["a", "b", None, "y"])
    expected = oracle(left, right, 10, 10, how)
    same.check(flow_of(ps.tumbling("10s"), how), {"left": left, "right": right}, {"out": expected})


@pytest.mark.live
def test_sliding_windows_give_a_pair_once_for_each(same: Case) -> None:
    left, right = shuffled("one", 30, ["a", "b", None]), shuffled("two", 30, ["a", "b", None])
    expected = oracle(left, right, 20, 5, "full")
    same.check(flow_of(ps.sliding("20s", every="5s"), "full"), {"left": left, "right": right}, {"out": expected})


def test_windows_that_follow_the_clock_of_a_place(same: Case) -> None:
    zone = datetime.timezone(datetime.timedelta(hours=2))
    left, right = [("a", 1, at(3600))], [("a", 2, at(3600 * 21)), ("a", 3, at(3600 * 22))]
    day = datetime.datetime(2024, 5, 1, tzinfo=zone)
    expected = [(day, day + datetime.timedelta(days=1), "a", 1, at(3600), 2, at(3600 * 21))]
    plain = [tuple(v.astimezone(datetime.UTC) if isinstance(v, datetime.datetime) else v for v in r) for r in expected]
    flow = flow_of(ps.tumbling("1d", timezone="Europe/Berlin"))
    same.check(flow, {"left": left, "right": right}, {"out": plain})


def test_a_window_over_a_window_join(same: Case) -> None:
    flow = ps.Flow("rollup")
    left, right = streams(flow)
    both = left.window_join("both", right, "user", ps.tumbling("10s"))
    both.select("only", "user", "window_end").key_by("user").window(ps.tumbling("30s")).count("n").sink(
        "out", ps.console()
    )
    one, two = shuffled("left", 50, ["a", "b"]), shuffled("right", 50, ["a", "b"])
    counts: dict[Any, int] = {}
    for row in oracle(one, two, 10, 10, "inner"):
        start = row[0] - datetime.timedelta(seconds=row[0].timestamp() % 30)
        counts[row[2], start] = counts.get((row[2], start), 0) + 1
    expected = [(user, start, start + datetime.timedelta(seconds=30), n) for (user, start), n in counts.items()]
    same.check(flow, {"left": one, "right": two}, {"out": expected})
