"""Joins with a static table."""

from __future__ import annotations

import pytest

import penstock as ps
from tests.same.conftest import Case

PEOPLE = [("ada", "London", 36), ("bob", "Paris", 20), ("bob", "Rome", 21), (None, "Nowhere", 0)]
TABLE = ps.items(PEOPLE, "user string, city string, age int")
EVENTS = [("ada", 1), ("eve", 2), ("bob", 3), (None, 4)]


def test_inner_join_keeps_matches(same: Case) -> None:
    flow = ps.Flow("inner")
    events = flow.source("events", ps.items([], "user string, n bigint"))
    events.join("who", TABLE, on="user").sink("out", ps.console())
    expected = [("ada", 1, "London", 36), ("bob", 3, "Paris", 20), ("bob", 3, "Rome", 21)]
    same.check(flow, {"events": EVENTS}, {"out": expected})


@pytest.mark.live
def test_left_join_keeps_all(same: Case) -> None:
    flow = ps.Flow("left")
    events = flow.source("events", ps.items([], "user string, n bigint"))
    events.join("who", TABLE, on="user", how="left").sink("out", ps.console())
    expected = [
        ("ada", 1, "London", 36),
        ("eve", 2, None, None),
        ("bob", 3, "Paris", 20),
        ("bob", 3, "Rome", 21),
        (None, 4, None, None),
    ]
    same.check(flow, {"events": EVENTS}, {"out": expected})


def test_a_test_may_bring_its_own_table(same: Case) -> None:
    flow = ps.Flow("given")
    events = flow.source("events", ps.items([], "user string, n bigint"))
    events.join("who", TABLE, on=["user"]).select("city", "city").sink("out", ps.console())
    same.check(flow, {"events": EVENTS}, {"out": ["Oslo"]}, tables={"who": [("eve", "Oslo", 1)]})
