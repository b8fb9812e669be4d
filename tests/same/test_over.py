"""Rows over their neighbours: frames of rows and of ranges, ranks, earlier and later rows; in time, in the order of arrival, of tables."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from penstock.errors import ExpressionError, FlowError, SchemaError
from penstock.testing import BARRIER, Driver, run_local
from tests.same.conftest import Case, run_cut


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


SEEN = [
    ("a", 1, 5), ("b", 2, 3), ("a", 3, 12), ("a", 9, 24), ("b", 4, 30), ("a", 5, 21), ("a", 7, 45), ("b", None, 45), ("a", 6, 45), ("a", 8, 46),
]  # fmt: skip
"""Key, number and second; out of order by up to nine seconds."""
ROWS = [(k, n, at(s)) for k, n, s in SEEN]


def seen(name: str) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("seen", ps.items([], "k string, n int, ts timestamp"), event_time="ts", lateness="10s")


def partitions() -> list[list[Any]]:
    """The rows of each key in order of time, then of values."""
    return [sorted((r for r in SEEN if r[0] == k), key=lambda r: (r[2], r[1] or -1)) for k in ("a", "b")]


def total(rows: list[Any]) -> int | None:
    known = [n for _, n, _ in rows if n is not None]
    return sum(known) if known else None


def smallest(rows: list[Any]) -> int | None:
    return min((n for _, n, _ in rows if n is not None), default=None)


def expected(rows: Any = None, span: Any = None) -> list[Any]:
    """The answers by looking at every frame: (row, sum, min, count, first, last)."""
    made = []
    for part in partitions():
        for i, row in enumerate(part):
            if rows is not None:
                before, after = rows
                frame = part[0 if before is None else max(0, i - before) : i + after + 1]
            else:
                before, after = span
                frame = [r for r in part if (before is None or r[2] >= row[2] - before) and r[2] <= row[2] + after]
            made.append(
                (row[0], row[1], at(row[2]), total(frame), smallest(frame), len(frame), frame[0][1], frame[-1][1])
            )
    return made


FUNCTIONS = {
    "total": "sum(n)",
    "least": "min(n)",
    "many": "count(*)",
    "first": "first_value(n)",
    "last": "last_value(n)",
}
FRAMES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "rows": ({"rows": 2}, {"rows": (2, 0)}),
    "all rows": ({"rows": (None, 0)}, {"rows": (None, 0)}),
    "one row": ({"rows": 0}, {"rows": (0, 0)}),
    "rows around": ({"rows": (1, 1)}, {"rows": (1, 1)}),
    "range": ({"within": "12s"}, {"span": (12, 0)}),
    "range around": ({"within": ("5s", "10s")}, {"span": (5, 10)}),
    "peers": ({"within": 0}, {"span": (0, 0)}),
    "all": ({}, {"span": (None, 0)}),
}


@pytest.mark.bounded("around", "peers")
@pytest.mark.live("range around")
@pytest.mark.parametrize("frame", FRAMES)
def test_functions_over_a_frame(same: Case, frame: str) -> None:
    flow, stream = seen("frames")
    given, wanted = FRAMES[frame]
    made = stream.key_by("k").over(by="ts", **given).aggregate("over", **FUNCTIONS)
    assert made.changes is None
    made.sink("out", ps.console())
    same.check(flow, {"seen": ROWS}, {"out": expected(**wanted)})


@pytest.mark.bounded("around")
@pytest.mark.parametrize("frame", FRAMES)
def test_of_a_table_the_answer_is_the_same(same: Case, frame: str) -> None:
    """In an order that is not of event time the result is a table; at the end it is the same."""
    flow = ps.Flow("table")
    stream = flow.source("seen", ps.items([], "k string, n int, ts timestamp"))
    given, wanted = FRAMES[frame]
    made = stream.key_by("k").over(by="ts", **given).aggregate("over", **FUNCTIONS)
    assert made.changes is not None
    made.sink("out", ps.console())
    same.check(flow, {"seen": ROWS}, {"out": expected(**wanted)})


@pytest.mark.live
def test_ranks_and_neighbours_in_time(same: Case) -> None:
    flow, stream = seen("ranks")
    functions = {"number": "row_number()", "place": "rank()", "dense": "dense_rank()", "before": "lag(n, 2, 0)"}
    stream.key_by("k").over().aggregate("over", **functions).sink("out", ps.console())
    wanted = []
    for part in partitions():
        times = [s for _, _, s in part]
        for i, (k, n, s) in enumerate(part):
            rank, dense = times.index(s) + 1, len({t for t in times if t <= s})
            wanted.append((k, n, at(s), i + 1, rank, dense, part[i - 2][1] if i >= 2 else 0))
    same.check(flow, {"seen": ROWS}, {"out": wanted})


@pytest.mark.live
def test_lead_waits_for_the_rows_after(same: Case) -> None:
    flow, stream = seen("leads")
    made = stream.key_by("k").over().aggregate("over", after="lead(n)", far="lead(n, 2, -1)", many="count(*)")
    assert made.event_time_of is None
    made.sink("out", ps.console())
    wanted = []
    for part in partitions():
        for i, (k, n, s) in enumerate(part):
            after = part[i + 1][1] if i + 1 < len(part) else None
            far = part[i + 2][1] if i + 2 < len(part) else -1
            wanted.append((k, n, at(s), after, far, sum(1 for r in part if r[2] <= s)))
    same.check(flow, {"seen": ROWS}, {"out": wanted})


def test_without_a_key_all_rows_are_one_partition(same: Case) -> None:
    flow, stream = seen("whole")
    stream.over(rows=1).aggregate("over", total="sum(n)").select("short", "ts", "total").sink("out", ps.console())
    rows = sorted(SEEN, key=lambda r: (r[2], r[0], r[1] or -1))
    wanted = [(at(rows[i][2]), total(rows[max(0, i - 1) : i + 1])) for i in range(len(rows))]
    same.check(flow, {"seen": ROWS}, {"out": wanted})


def test_a_window_after_it_and_the_late_rows(same: Case) -> None:
    """The event time goes on, so windows may follow."""
    flow, stream = seen("after")
    made = stream.key_by("k").over(within="12s").aggregate("over", total="sum(n)")
    made.key_by("k").window(ps.tumbling("30s")).aggregate("most", most="max(total)").sink("out", ps.console())
    most: dict[Any, Any] = {}
    for k, _, moment, sums, *_ in expected(span=(12, 0)):
        window = (k, at(0) if moment < at(30) else at(30))
        most[window] = max(most.get(window, 0), sums or 0)
    wanted = [(k, start, start + datetime.timedelta(seconds=30), n) for (k, start), n in most.items()]
    same.check(flow, {"seen": ROWS}, {"out": wanted})


@pytest.mark.live
def test_in_the_order_of_arrival(same: Case) -> None:
    flow = ps.Flow("arrival")
    stream = flow.source("seen", ps.items([], "k string, n int"))
    made = stream.key_by("k").over(rows=1, order="arrival").aggregate("over", total="sum(n)", number="row_number()")
    made.sink("out", ps.console())
    given = [("a", 3), ("b", 5), ("a", 1), ("a", 4), ("b", 1), ("a", 1)]
    wanted = [("a", 3, 3, 1), ("a", 1, 4, 2), ("a", 4, 5, 3), ("a", 1, 5, 4), ("b", 5, 5, 1), ("b", 1, 6, 2)]
    same.check(flow, {"seen": given}, {"out": wanted})


@pytest.mark.live
def test_rows_of_a_table_change_with_their_frames(same: Case) -> None:
    flow = ps.Flow("changing")
    changes = flow.source("changes", ps.items([], "op string, id int, k string, n int"))
    table = changes.as_table("table", "id")
    functions = {"number": "row_number()", "share": "sum(n)", "before": "lag(id)"}
    table.key_by("k").over(by="n desc, id").aggregate("over", **functions).sink("out", ps.console())
    given = [
        ("insert", 1, "a", 10), ("insert", 2, "a", 30), ("insert", 3, "a", 20), ("insert", 4, "b", 1), ("delete", 2, "a", 30),
        ("update_after", 4, "a", 15), ("insert", 5, "a", 15), ("insert", 6, "c", 1), ("delete", 6, "c", 1),
    ]  # fmt: skip
    wanted = [(3, "a", 20, 1, 20, None), (4, "a", 15, 2, 35, 3), (5, "a", 15, 3, 50, 4), (1, "a", 10, 4, 60, 5)]
    same.check(flow, {"changes": given}, {"out": wanted})


def test_only_rows_whose_frame_changed_are_emitted() -> None:
    flow = ps.Flow("frames")
    stream = flow.source("rows", ps.items([], "k string, n int"))
    stream.key_by("k").over(by="n", rows=1).aggregate("over", total="sum(n)").changelog("log").sink("out", ps.console())
    changes = run_local(flow, {"rows": [("a", 1), ("a", 5), ("a", 9), BARRIER, ("a", 4)]})["out"]
    assert changes[3:] == [("delete", "a", 5, 6), ("insert", "a", 4, 5), ("insert", "a", 5, 9)]


def test_late_rows_go_aside() -> None:
    flow = ps.Flow("late")
    stream = flow.source("seen", ps.items([], "k string, n int, ts timestamp"), event_time="ts")
    made = stream.key_by("k").over(rows=1).aggregate("over", total="sum(n)")
    made.sink("out", ps.console())
    made.side("late").sink("late", ps.console())
    given = [("a", 1, at(1)), ("a", 2, at(20)), ("a", 3, at(5)), ("a", 4, at(21))]
    got = run_cut(flow, {"seen": given}, {"seen": [2, 2]})
    assert got["late"] == [("a", 3, at(5))]
    assert sorted(r.total for r in got["out"]) == [1, 3, 6]


def test_frames_of_a_range_keep_no_more_than_they_need() -> None:
    """When event time has passed the range, nothing is left of a key."""
    flow = ps.Flow("forgets")
    stream = flow.source("seen", ps.items([], "k string, n int, ts timestamp"), event_time="ts")
    stream.key_by("k").over(within="5s").aggregate("over", total="sum(n)").sink("out", ps.console())
    driver = Driver(flow)
    driver.push("seen", ("a", 1, at(1)), ("b", 1, at(2)))
    driver.barrier()
    driver.push("seen", ("c", 1, at(60)))
    driver.barrier()
    driver.barrier()
    assert dict(driver.run.states["over"].items()) == {}
    driver.push("seen", ("a", 2, at(61)))
    assert driver.barrier(end=True)["out"][-1] == ("a", 2, at(61), 2)
    driver.close()


def test_refusals() -> None:
    flow, stream = seen("refused")
    keyed = stream.key_by("k")
    with pytest.raises(FlowError, match="one of rows and within"):
        keyed.over(rows=1, within="1s")
    with pytest.raises(FlowError, match="'time' or 'arrival'"):
        keyed.over(order="random")
    with pytest.raises(FlowError, match="ends after it begins"):
        keyed.over(rows=(-3, 0)).aggregate("o1", n="count(*)")
    with pytest.raises(SchemaError, match="'n', which is there already"):
        keyed.over().aggregate("o2", n="count(*)")
    with pytest.raises(ExpressionError, match="number of rows"):
        keyed.over().aggregate("o3", x="lag(n, k)")
    with pytest.raises(ExpressionError, match="expects 0 arguments"):
        keyed.over().aggregate("o4", x="row_number(n)")
    with pytest.raises(ExpressionError, match="default of lag"):
        keyed.over().aggregate("o5", x="lag(n, 1, 'x')")
    with pytest.raises(FlowError, match="over expects functions"):
        keyed.over().aggregate("o6")
    untimed = flow.source("untimed", ps.items([], "k string, n int"))
    with pytest.raises(FlowError, match="over expects an order"):
        untimed.key_by("k").over(rows=3).aggregate("o7", x="sum(n)")
    with pytest.raises(FlowError, match="one number or time"):
        untimed.key_by("k").over(by="k, n", within=5).aggregate("o8", x="sum(n)")


def test_rows_of_a_table_in_the_order_of_texts_bytes_and_truths(same: Case) -> None:
    """Downwards, with and without a key; only a range of a distance needs an order that can be measured."""
    flow = ps.Flow("texts")
    rows = flow.source("rows", ps.items([], "k int, name string, raw binary, is_old boolean"))
    for column in ("name", "raw", "is_old"):
        made = rows.over(f"{column} desc").aggregate(f"all-{column}", place="rank()", many="count(*)")
        made.select(f"short-{column}", column, "place", "many").sink(f"out-{column}", ps.console())
    rows.key_by("k").over("name desc", rows=1).aggregate("pairs", before="lag(name)", n="count(*)").select(
        "short", "name", "before", "n"
    ).sink("out", ps.console())
    given = [(1, "b", b"\x02", True), (1, "a", b"\xff", False), (2, "c", b"", None), (1, None, None, True)]
    same.check(
        flow,
        {"rows": given},
        {
            "out-name": [("c", 1, 1), ("b", 2, 2), ("a", 3, 3), (None, 4, 4)],
            "out-raw": [(b"\xff", 1, 1), (b"\x02", 2, 2), (b"", 3, 3), (None, 4, 4)],
            "out-is_old": [(True, 1, 2), (True, 1, 2), (False, 3, 3), (None, 4, 4)],
            "out": [("b", None, 1), ("a", "b", 2), (None, "a", 2), ("c", None, 1)],
        },
    )
