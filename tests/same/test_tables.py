"""Steps over tables that change which keep rows, or wait for event time: on all runtimes the answer is that of the rows that stay."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case

BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def at(second: int) -> datetime.datetime:
    return BEGIN + datetime.timedelta(seconds=second)


ORDERS = [(1, "Ada", 10), (2, "BOB", 3), (3, "ada", 1), (4, "Cy", 7), (5, None, 9), (2, "BOB", 3)]
LIMITS = [("ada", 5), ("bob", 5), ("ada", 0), ("dan", 1)]
PAIRS = [(1, "Ada", 10, "ada", 5), (1, "Ada", 10, "ada", 0), (3, "ada", 1, "ada", 0)]
ALONE = [(2, "BOB", 3, None, None), (2, "BOB", 3, None, None), (4, "Cy", 7, None, None), (5, None, 9, None, None)]
RIGHT = [(None, None, None, "bob", 5), (None, None, None, "dan", 1)]


@pytest.mark.live
def test_joins_with_a_condition_computed_keys_and_a_time_to_live(same: Case) -> None:
    flow = ps.Flow("conditions")
    orders = flow.source("orders", ps.items([], "id int, who string, amount int"))
    limits = flow.source("limits", ps.items([], "name string, low int"))
    for how in ("inner", "left", "right", "full", "semi", "anti"):
        made = orders.join(
            f"join-{how}", limits, on={"lower(who)": "name"}, how=how, condition="amount > low", ttl="1h"
        )
        made.sink(how, ps.console())
    same.check(
        flow,
        {"orders": ORDERS, "limits": LIMITS},
        {
            "inner": PAIRS,
            "left": [*PAIRS, *ALONE],
            "right": [*PAIRS, *RIGHT],
            "full": [*PAIRS, *ALONE, *RIGHT],
            "semi": [(1, "Ada", 10), (3, "ada", 1)],
            "anti": [row[:3] for row in ALONE],
        },
    )


def test_an_outer_join_in_time_with_a_condition(same: Case) -> None:
    flow = ps.Flow("in-time")
    left = flow.source("left", ps.items([], "k string, v int, ts timestamp"), event_time="ts", lateness="60s")
    right = flow.source("right", ps.items([], "k string, w int, rts timestamp"), event_time="rts", lateness="60s")
    left.join("full-step", right, on="k", within="5s", how="full", condition="v < w").sink("out", ps.console())
    same.check(
        flow,
        {
            "left": [("a", 1, at(1)), ("a", 9, at(2)), ("b", 1, at(3)), ("a", 2, at(30))],
            "right": [("a", 3, at(3)), ("b", 0, at(4)), ("a", 8, at(31))],
        },
        {
            "out": [
                ("a", 1, at(1), 3, at(3)), ("a", 9, at(2), None, None), ("b", 1, at(3), None, None),
                ("a", 2, at(30), 8, at(31)), ("b", None, None, 0, at(4)),
            ]
        },
    )  # fmt: skip


CHANGES = [
    ("insert", 1, "a", 5, at(1)), ("insert", 2, "a", 7, at(2)), ("insert", 3, "b", 1, at(4)), ("insert", 4, "a", 2, at(6)),
    ("delete", 2, "a", 7, at(2)), ("update_after", 3, "a", 2, at(8)), ("insert", 5, "b", 6, at(14)), ("insert", 6, "b", 1, at(15)),
    ("update_after", 5, "b", 8, at(12)), ("delete", 6, "b", 1, at(15)), ("insert", 7, "a", 9, at(21)),
]  # fmt: skip
"""What stays: 1 a 5 at 1, 3 a 2 at 8, 4 a 2 at 6, 5 b 8 at 12, 7 a 9 at 21."""
OTHERS = [("a", 1, at(2)), ("b", 2, at(9)), ("a", 3, at(22)), ("c", 4, at(5))]


def people(flow: ps.Flow) -> ps.Stream:
    """The table of the changes; nothing of it is late."""
    schema = "op string, id int, k string, v int, ts timestamp"
    return flow.source("changes", ps.items([], schema), event_time="ts", lateness="60s").as_table("people", "id")


def test_folds_and_windows_over_a_source_of_changes(same: Case) -> None:
    flow = ps.Flow("folds")
    table = people(flow)
    table.key_by("k").reduce("largest", larger).sink("reduce-out", ps.console())
    table.key_by("k").fold("ids", "", listed, "ids string").sink("fold-out", ps.console())
    table.map_batches("same", unchanged).aggregate("total", n="count(*)", s="sum(v)").sink("batches-out", ps.console())
    by_key = table.key_by("k")
    by_key.window(ps.tumbling("10s")).aggregate("once", n="count(*)", s="sum(v)").sink("once-out", ps.console())
    updated = by_key.window(ps.sliding("10s", every="5s"), mode="update").aggregate("sliding", s="sum(v)")
    updated.key_by("k").aggregate("over-windows", n="count(*)", top="max(s)").sink("sliding-out", ps.console())
    by_key.window(ps.session("5s"), mode="update").aggregate("sessions", n="count(*)").sink("session-out", ps.console())
    last = table.key_by("k").aggregate("last", last="max(ts)", v="max(v)").event_time("timed", "last", lateness="60s")
    last.key_by(all="1").window(ps.tumbling("10s")).aggregate("latest", s="sum(v)").sink("latest-out", ps.console())
    same.check(
        flow,
        {"changes": CHANGES},
        {
            "reduce-out": [(7, "a", 9, at(21)), (5, "b", 8, at(12))],
            "fold-out": [("a", "1 3 4 7"), ("b", "5")],
            "batches-out": [(5, 26)],
            "once-out": [
                ("a", at(0), at(10), 3, 9), ("b", at(10), at(20), 1, 8), ("a", at(20), at(30), 1, 9),
            ],
            "sliding-out": [("a", 5, 9), ("b", 2, 8)],
            "session-out": [
                ("a", at(1), at(6), 1), ("a", at(6), at(13), 2), ("a", at(21), at(26), 1), ("b", at(12), at(17), 1),
            ],
            "latest-out": [(1, at(20), at(30), 9), (1, at(10), at(20), 8)],
        },
    )  # fmt: skip


def larger(one: Any, other: Any) -> Any:
    return max(one, other, key=lambda row: (row.v, row.id))


def listed(so_far: str, row: Any) -> str:
    return f"{so_far} {row.id}".strip()


def unchanged(batch: Any) -> Any:
    return batch


@pytest.mark.live
def test_steps_that_wait_for_event_time_over_a_source_of_changes(same: Case) -> None:
    flow = ps.Flow("waiting")
    table = people(flow)
    others = flow.source("others", ps.items([], "k string, w int, ots timestamp"), event_time="ots", lateness="60s")
    table.sort("in-order", by="v").sink("sort-out", ps.console())
    table.key_by("k").distinct("spaced", within="6s").select("ids", "id").sink("distinct-out", ps.console())
    table.join("near", others, on="k", within="3s", how="full").select("near-ids", "id", "w").sink(
        "near-out", ps.console()
    )
    table.asof_join("before", others, on="k").select("before-ids", "id", "w").sink("asof-out", ps.console())
    both = table.window_join("both", others, on="k", window=ps.tumbling("10s"), how="left")
    both.select("both-ids", "id", "w").sink("window-out", ps.console())
    same.check(
        flow,
        {"changes": CHANGES, "others": OTHERS},
        {
            "sort-out": [
                (1, "a", 5, at(1)), (4, "a", 2, at(6)), (3, "a", 2, at(8)), (5, "b", 8, at(12)), (7, "a", 9, at(21)),
            ],
            "distinct-out": [(1,), (3,), (5,), (7,)],
            "near-out": [(1, 1), (4, None), (3, None), (5, 2), (7, 3), (None, 4)],
            "asof-out": [(1, None), (4, 1), (3, 1), (5, 2), (7, 1)],
            "window-out": [(1, 1), (4, 1), (3, 1), (5, None), (7, 3)],
        },
    )  # fmt: skip


@pytest.mark.live
def test_totals_by_one_key_are_joined_and_totalled_again_where_they_are(same: Case) -> None:
    flow = ps.Flow("by-one-key")
    orders = flow.source("orders", ps.items([], "k string, n int"))
    limits = flow.source("limits", ps.items([], "name string, m int"))
    totals = orders.key_by("k").aggregate("totals", many="count(*)", total="sum(n)")
    lowest = limits.key_by("name").aggregate("lowest", low="min(m)", number="count(*)")
    some = totals.where("some", "many > 1").select("named", "many", "total", who="k")
    known = some.join("known", lowest, on={"who": "name"}, how="left", prefix="l_")
    known.sink("joined", ps.console())
    known.where("over", "total > l_low").key_by("who").aggregate("again", rows="count(*)").sink(
        "again-out", ps.console()
    )
    some.key_by("many").count("levels").sink("levels-out", ps.console())
    totals.join("all", lowest.select("l", "low", k="name"), on="k", how="full").sink("full", ps.console())
    same.check(
        flow,
        {
            "orders": [("a", 1), ("b", 5), ("a", 2), ("c", 1), ("b", 1), ("a", 4), (None, 3), ("c", 0), (None, 3)],
            "limits": [("a", 9), ("d", 1), ("a", 3), ("c", 1), ("c", 5), (None, 0)],
        },
        {
            "joined": [(3, 7, "a", "a", 3, 2), (2, 6, "b", None, None, None), (2, 1, "c", "c", 1, 2), (2, 6, None, None, None, None)],
            "again-out": [("a", 1)],
            "levels-out": [(3, 1), (2, 3)],
            "full": [("a", 3, 7, 3), ("b", 2, 6, None), ("c", 2, 1, 1), (None, 2, 6, None), ("d", None, None, 1), (None, None, None, 0)],
        },
    )  # fmt: skip
