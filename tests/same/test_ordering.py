"""distinct, sort, top, changelog."""

from __future__ import annotations

import datetime
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case

SCHEMA = "id string, n int, ts timestamp"


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


def seen(name: str, lateness: str = "10s") -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("seen", ps.items([], SCHEMA), event_time="ts", lateness=lateness)


SEEN = [
    ("a", 1, at(5)),
    ("b", 2, at(3)),
    ("a", 3, at(2)),
    (None, 6, at(9)),
    ("a", 9, at(24)),
    ("b", 4, at(30)),
    ("a", 5, at(21)),
    (None, 6, at(22)),
    ("a", 7, at(45)),
    ("a", 6, at(45)),
]
"""Out of order by up to nine seconds."""


@pytest.mark.live
def test_distinct_gives_the_first_record_of_a_key(same: Case) -> None:
    flow, stream = seen("first")
    stream.key_by("id").distinct("once").sink("out", ps.console())
    same.check(flow, {"seen": SEEN}, {"out": [SEEN[0], SEEN[1], SEEN[3]]})


def test_distinct_of_two_keys(same: Case) -> None:
    flow = ps.Flow("two")
    stream = flow.source("words", ps.items([], "a string, b int"))
    stream.key_by("a", "b").distinct("once").sink("out", ps.console())
    given = [("x", 1), ("x", 2), ("x", 1), (None, None), ("y", 1), (None, None), ("x", 2)]
    same.check(flow, {"words": given}, {"out": [("x", 1), ("x", 2), (None, None), ("y", 1)]})


@pytest.mark.live
def test_distinct_within_a_time_keeps_the_earliest_and_counts_from_it(same: Case) -> None:
    flow, stream = seen("within")
    stream.key_by("id").distinct("once", within="20s").sink("out", ps.console())
    wanted = [("a", 3, at(2)), ("b", 2, at(3)), (None, 6, at(9)), ("a", 9, at(24)), ("b", 4, at(30)), ("a", 6, at(45))]
    same.check(flow, {"seen": SEEN}, {"out": wanted})


def test_distinct_in_time_for_ever(same: Case) -> None:
    flow, stream = seen("earliest")
    stream.key_by("id").distinct("once", eager=False).sink("out", ps.console())
    same.check(flow, {"seen": SEEN}, {"out": [("a", 3, at(2)), ("b", 2, at(3)), (None, 6, at(9))]})


def test_distinct_within_a_time_at_once(same: Case) -> None:
    """The first to come stands for those around it, whichever side they are on."""
    flow, stream = seen("eager")
    stream.key_by("id").distinct("once", within="20s", eager=True).sink("out", ps.console())
    wanted = [SEEN[0], SEEN[1], SEEN[3], ("b", 4, at(30)), ("a", 7, at(45))]
    same.check(flow, {"seen": SEEN}, {"out": wanted})


@pytest.mark.live
def test_sort_gives_the_records_of_a_key_in_order_of_time(same: Case) -> None:
    flow, stream = seen("sorted")
    stream.key_by("id").sort("order", by="n").sink("out", ps.console())
    got = same.run(flow, {"seen": SEEN})["out"]
    assert [tuple(r) for r in got if r.id == "a"] == sorted(
        (r for r in SEEN if r[0] == "a"), key=lambda r: (r[2], r[1])
    )
    assert len(got) == len(SEEN)


def test_sort_of_all_records(same: Case) -> None:
    flow, stream = seen("sorted-all")
    stream.sort("order", by="n").sink("out", ps.console())
    got = [tuple(r) for r in same.run(flow, {"seen": SEEN})["out"]]
    assert got == sorted(SEEN, key=lambda r: (r[2], r[1]))


def test_sort_within_spans_of_time(same: Case) -> None:
    flow, stream = seen("spans")
    stream.sort("order", by="n desc", within="20s").sink("out", ps.console())
    got = [tuple(r) for r in same.run(flow, {"seen": SEEN})["out"]]
    assert got == sorted(SEEN, key=lambda r: ((r[2] - at(0)) // datetime.timedelta(seconds=20), -r[1], r[2]))


@pytest.mark.live
def test_several_steps_in_time_one_behind_the_other(same: Case) -> None:
    """What a span holds back is not late in the step behind it."""
    flow, stream = seen("chain")
    spans = stream.sort("spans", by="n", within="20s")
    spans.key_by("id").sort("again").key_by("id").distinct("once", within="20s").sink("out", ps.console())
    wanted = [("a", 3, at(2)), ("b", 2, at(3)), (None, 6, at(9)), ("a", 9, at(24)), ("b", 4, at(30)), ("a", 6, at(45))]
    same.check(flow, {"seen": SEEN}, {"out": wanted})


@pytest.mark.live
def test_top_gives_the_best_of_each_key_with_their_rank(same: Case) -> None:
    flow, stream = seen("top")
    stream.key_by("id").top("best", 2, by="n desc, ts").sink("out", ps.console())
    wanted = [
        ("a", 9, at(24), 1), ("a", 7, at(45), 2), ("b", 4, at(30), 1), ("b", 2, at(3), 2), (None, 6, at(9), 1), (None, 6, at(22), 2),
    ]  # fmt: skip
    same.check(flow, {"seen": SEEN}, {"out": wanted})


def test_top_puts_null_last_and_not_a_number_first(same: Case) -> None:
    flow = ps.Flow("top-nan")
    stream = flow.source("x", ps.items([], "k int, x double"))
    stream.key_by("k").top("best", 3, by="x desc").sink("out", ps.console())
    stream.key_by("k").top("worst", 2, by="x", into="place").sink("low", ps.console())
    nan = float("nan")
    given = [(1, 1.0), (1, None), (1, nan), (2, None), (1, 3.0)]
    same.check(
        flow,
        {"x": given},
        {
            "out": [(1, nan, 1), (1, 3.0, 2), (1, 1.0, 3), (2, None, 1)],
            "low": [(1, None, 1), (1, 1.0, 2), (2, None, 1)],
        },
    )


def table_of(changes: Iterable[Any], width: int = 1) -> list[Any]:
    """The table that a changelog makes; each change must fit what is there."""
    table: dict[Any, Any] = {}
    for op, *row in changes:
        key = tuple(row[:width])
        if op == "insert":
            assert key not in table
            table[key] = row
        elif op in ("update_before", "delete"):
            assert table[key] == row
            if op == "delete":
                del table[key]
        else:
            assert key in table
            table[key] = row
    return sorted(map(tuple, table.values()), key=repr)


@pytest.mark.live
def test_a_changelog_tells_what_happens_to_running_totals(same: Case) -> None:
    flow, stream = seen("changes")
    stream.key_by("id").sum("total", "n").changelog("changes").sink("out", ps.console())
    changes = same.run(flow, {"seen": SEEN})["out"]
    assert table_of(changes) == sorted([("a", 31), ("b", 6), (None, 12)], key=repr)
    assert sum(r.op == "insert" for r in changes) == 3


def test_a_changelog_without_old_rows(same: Case) -> None:
    flow, stream = seen("changes-after")
    stream.key_by("id").top("best", 1, by="n desc").changelog("changes", before=False).sink("out", ps.console())
    changes = same.run(flow, {"seen": SEEN})["out"]
    assert {r.op for r in changes} <= {"insert", "update_after"}
    assert {(r.id, r.n) for r in changes} >= {("a", 9), ("b", 4), (None, 6)}


@pytest.mark.live
def test_a_total_over_totals_takes_old_values_back(same: Case) -> None:
    flow, stream = seen("net")
    totals = stream.key_by("id").aggregate("totals", n="count(*)", total="sum(n)")
    totals.key_by("n").aggregate("spread", ids="count(*)", total="sum(total)", mean="avg(total)").sink(
        "out", ps.console()
    )
    totals.key_by(even="total % 2 = 0").count("parity", into="ids").sink("even", ps.console())
    same.check(
        flow,
        {"seen": SEEN},
        {"out": [(6, 1, 31, 31.0), (2, 2, 18, 9.0)], "even": [(False, 1), (True, 2)]},
    )


@pytest.mark.live
def test_a_table_from_changes_and_a_total_over_it(same: Case) -> None:
    flow = ps.Flow("cdc")
    changes = flow.source("changes", ps.items([], "op string, id int, city string, money decimal(10,2)"))
    people = changes.as_table("people", "id")
    people.sink("out", ps.console())
    people.key_by("city").aggregate("cities", n="count(*)", money="sum(money)").sink("per-city", ps.console())
    ten, two = Decimal("10.50"), Decimal("2.25")
    given = [
        ("insert", 1, "Rome", ten), ("insert", 2, "Rome", two), ("insert", 3, "Oslo", None), ("update_before", 1, "Rome", ten),
        ("update_after", 1, "Oslo", ten), ("delete", 2, "Rome", two), ("insert", 4, None, two), ("delete", 4, None, two),
    ]  # fmt: skip
    same.check(
        flow,
        {"changes": given},
        {"out": [(1, "Oslo", ten), (3, "Oslo", None)], "per-city": [("Oslo", 2, ten)]},
    )
