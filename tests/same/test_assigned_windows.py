"""Windows as fields, cumulating windows, and what is made of rows by their windows: totals, ranks, pairs, sessions."""

from __future__ import annotations

import datetime
from collections import Counter
from dataclasses import dataclass
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, SchemaError
from penstock.graph.aggregates.calls import calls_of
from penstock.graph.compose import KeyedInput
from penstock.graph.nodes import IntervalJoin
from penstock.graph.order import terms_of
from penstock.graph.relational.windows import add_session_rows, add_window_pairs, add_window_top, add_window_totals
from penstock.testing import Driver
from tests.same.conftest import Case, run_cut

MILLISECOND = datetime.timedelta(milliseconds=1)


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


SEEN = [
    ("a", 1, 5),
    ("b", 2, 3),
    ("a", 3, 12),
    ("a", 9, 24),
    ("b", 4, 30),
    ("a", 5, 21),
    ("a", 7, 45),
    ("b", 6, 45),
    ("a", 6, 45),
]
"""Key, number and second; out of order by up to nine seconds."""
ROWS = [(k, n, at(s)) for k, n, s in SEEN]


def seen(name: str) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("seen", ps.items([], "k string, n int, ts timestamp"), event_time="ts", lateness="10s")


def spans(second: int, size: int, every: int, offset: int = 0) -> list[tuple[int, int]]:
    """The sliding windows of a second, by looking at all of them."""
    starts = range(-10 * every + offset % every, 100 + every, every)
    return [(s, s + size) for s in starts if s <= second < s + size]


def growing(second: int, size: int, every: int, offset: int = 0) -> list[tuple[int, int]]:
    """The cumulating windows of a second, by looking at all of them."""
    starts = range(-10 * size + offset % size, 200, size)
    return [(s, e) for s in starts for e in range(s + every, s + size + 1, every) if s <= second < e]


@dataclass(frozen=True)
class Kind:
    """A kind of windows: how it is made, and what it must be."""

    windows: Any
    spans: Any


KINDS = {
    "tumbling": Kind(ps.tumbling("10s"), lambda s: spans(s, 10, 10)),
    "offset": Kind(ps.tumbling("10s", offset="3s"), lambda s: spans(s, 10, 10, 3)),
    "uneven": Kind(ps.sliding("25s", every="10s"), lambda s: spans(s, 25, 10)),
    "uneven offset": Kind(ps.sliding("25s", every="10s", offset="4s"), lambda s: spans(s, 25, 10, 4)),
    "cumulating": Kind(ps.cumulating("30s", every="10s"), lambda s: growing(s, 30, 10)),
    "cumulating offset": Kind(ps.cumulating("30s", every="10s", offset="15s"), lambda s: growing(s, 30, 10, 15)),
}


@pytest.mark.live("uneven offset")
@pytest.mark.parametrize("kind", KINDS)
def test_windows_as_fields(same: Case, kind: str) -> None:
    flow, stream = seen("assigned")
    stream.assign_windows("windows", KINDS[kind].windows).sink("out", ps.console())
    wanted = [(k, n, at(s), at(b), at(e), at(e) - MILLISECOND) for k, n, s in SEEN for b, e in KINDS[kind].spans(s)]
    same.check(flow, {"seen": ROWS}, {"out": wanted})


def totals(kind: str) -> list[Any]:
    """Count and sum by key and window."""
    groups: dict[Any, list[int]] = {}
    for k, n, s in SEEN:
        for b, e in KINDS[kind].spans(s):
            groups.setdefault((k, b, e), []).append(n)
    return [(k, at(b), at(e), len(all_), sum(all_)) for (k, b, e), all_ in groups.items()]


@pytest.mark.live("cumulating offset")
@pytest.mark.parametrize("kind", ["cumulating", "cumulating offset", "uneven offset"])
def test_aggregates_in_windows(same: Case, kind: str) -> None:
    """The same windows in the window step."""
    flow, stream = seen("cumulated")
    stream.key_by("k").window(KINDS[kind].windows).aggregate("sums", n="count(*)", total="sum(n)").sink(
        "out", ps.console()
    )
    same.check(flow, {"seen": ROWS}, {"out": totals(kind)})


def test_cumulating_windows_with_early_results_and_of_a_function(same: Case) -> None:
    flow, stream = seen("cumulated-early")
    windows = stream.key_by("k").window(ps.cumulating("30s", every="10s"), mode="update")
    windows.aggregate("sums", n="count(*)", total="sum(n)").sink("out", ps.console())
    largest = stream.key_by("k").window(ps.cumulating("30s", every="10s"))
    largest.reduce("largest", lambda one, other: max(one, other, key=lambda r: r.n)).sink("best", ps.console())
    best: dict[Any, Any] = {}
    for k, n, s in SEEN:
        for b, e in growing(s, 30, 10):
            best[k, b, e] = max(best.get((k, b, e), (0, 0)), (n, s))
    wanted = [(k, at(b), at(e), n, at(s)) for (k, b, e), (n, s) in best.items()]
    same.check(flow, {"seen": ROWS}, {"out": totals("cumulating"), "best": wanted})


@pytest.mark.parametrize("oracle", [True, False])
def test_a_record_is_late_when_all_its_cumulating_windows_have_ended(oracle: bool) -> None:
    """At 12 event time is past the 10 s window and not past the 30 s one, so a record of second 5 still counts there."""
    flow = ps.Flow("late")
    stream = flow.source("seen", ps.items([], "k string, n int, ts timestamp"), event_time="ts")
    counts = stream.key_by("k").window(ps.cumulating("30s", every="10s")).count("n")
    counts.sink("out", ps.console())
    counts.side("late").sink("late", ps.console())
    given = [("a", 1, at(1)), ("a", 2, at(12)), ("a", 3, at(5)), ("a", 4, at(31)), ("a", 5, at(29))]
    wanted = [("a", at(0), at(10), 1), ("a", at(0), at(20), 3), ("a", at(0), at(30), 3)]
    wanted += [("a", at(30), at(e), 1) for e in (40, 50, 60)]
    got = run_cut(flow, {"seen": given}, {"seen": [2, 2, 4, 4]}, oracle=oracle)
    assert sorted(map(tuple, got["out"])) == wanted
    assert got["late"] == [("a", 5, at(29))]


@pytest.mark.live
def test_totals_by_the_fields_of_a_window_are_final(same: Case) -> None:
    flow, stream = seen("totals")
    rows = stream.assign_windows("windows", ps.sliding("25s", every="10s"))
    keyed = KeyedInput(rows.port, ("k", "window_start", "window_end"))
    port = add_window_totals(flow.builder, "sums", keyed, calls_of({"n": "count(*)", "total": "sum(n)"}))
    made = rows._at(port)
    assert made.changes is None
    made.sink("out", ps.console())
    busiest = KeyedInput(made.port, ("window_start", "window_end"))
    rows._at(add_window_top(flow.builder, "best", busiest, 1, terms_of("total desc, k"))).sink("top", ps.console())
    sums = totals("uneven")
    best = {(b, e): max((total, k, n) for k, b2, e2, n, total in sums if (b2, e2) == (b, e)) for _, b, e, _, _ in sums}
    wanted = [(k, b, e, n, total, 1) for (b, e), (total, k, n) in best.items()]
    same.check(flow, {"seen": ROWS}, {"out": sums, "top": wanted})


def test_a_window_of_totals_over_windows(same: Case) -> None:
    """`window_time` is the event time of the result: windows over it close in the same batch."""
    flow, stream = seen("over")
    rows = stream.assign_windows("windows", ps.tumbling("10s"))
    keyed = KeyedInput(rows.port, ("k", "window_start", "window_end", "window_time"))
    port = add_window_totals(flow.builder, "sums", keyed, calls_of({"total": "sum(n)"}))
    moved = rows._at(port).select("moved", "k", "window_time", "total")
    assert moved.event_time_of is not None
    moved.key_by("k").window(ps.tumbling("30s")).aggregate("all", n="count(*)", total="sum(total)").sink(
        "out", ps.console()
    )
    wanted = [
        ("a", at(0), at(30), 3, 18),
        ("b", at(0), at(30), 1, 2),
        ("a", at(30), at(60), 1, 13),
        ("b", at(30), at(60), 2, 10),
    ]
    same.check(flow, {"seen": ROWS}, {"out": wanted})


@pytest.mark.live("left")
@pytest.mark.parametrize("how", ["inner", "left", "full"])
def test_pairs_of_rows_in_the_same_window(same: Case, how: str) -> None:
    flow, stream = seen("pairs")
    other = flow.source("named", ps.items([], "k string, name string, at timestamp"), event_time="at", lateness="10s")
    sums = []
    for source, into in ((stream, "n"), (other, "names")):
        rows = source.assign_windows(f"{into}-windows", ps.tumbling("10s"))
        keyed = KeyedInput(rows.port, ("k", "window_start", "window_end"))
        sums.append(add_window_totals(flow.builder, into, keyed, calls_of({into: "count(*)"})))
    keys = ("k", "window_start", "window_end")
    join = IntervalJoin("pairs", (sums[0], sums[1]), keys, keys, how, low=0, high=0)
    stream._at(add_window_pairs(flow.builder, join)).sink("out", ps.console())
    named = [("a", "x", 2), ("a", "y", 9), ("b", "x", 31), ("c", "z", 33)]
    left = Counter((k, s // 10 * 10) for k, _, s in SEEN)
    right = Counter((k, s // 10 * 10) for k, _, s in named)
    wanted: list[Any] = [
        (k, at(b), at(b + 10), n, right.get((k, b))) for (k, b), n in left.items() if how != "inner" or (k, b) in right
    ]
    wanted += [(k, at(b), at(b + 10), None, n) for (k, b), n in right.items() if how == "full" and (k, b) not in left]
    same.check(flow, {"seen": ROWS, "named": [(k, n, at(s)) for k, n, s in named]}, {"out": wanted})


@pytest.mark.live
def test_rows_with_their_session(same: Case) -> None:
    flow, stream = seen("sessions")
    keyed = KeyedInput(stream.port, ("k",))
    stream._at(add_session_rows(flow.builder, "rows", keyed, ps.session("10s"))).sink("out", ps.console())
    sessions = {"a": [(5, 34), (45, 55)], "b": [(3, 13), (30, 40), (45, 55)]}
    wanted = [
        (k, n, at(s), at(b), at(e), at(e) - MILLISECOND) for k, n, s in SEEN for b, e in sessions[k] if b <= s < e
    ]
    same.check(flow, {"seen": ROWS}, {"out": wanted})


@pytest.mark.live
def test_windows_of_the_rows_of_a_table(same: Case) -> None:
    """A row that goes leaves its windows; what a window holds when event time has passed it is final."""
    flow = ps.Flow("table")
    changes = flow.source(
        "changes", ps.items([], "op string, id int, n int, ts timestamp"), event_time="ts", lateness="1h"
    )
    rows = changes.as_table("rows", "id").assign_windows("windows", ps.cumulating("20s", every="10s"))
    rows.sink("all", ps.console())
    assert rows.updates == ("id", "window_start", "window_end")
    keyed = KeyedInput(rows.port, ("window_start", "window_end"))
    port = add_window_totals(flow.builder, "sums", keyed, calls_of({"n": "count(*)", "total": "sum(n)"}))
    rows._at(port).sink("out", ps.console())
    given = [
        ("insert", 1, 10, at(1)), ("insert", 2, 5, at(2)), ("update_before", 1, 10, at(1)), ("update_after", 1, 20, at(12)),
        ("insert", 3, 1, at(3)), ("delete", 2, 5, at(2)),
    ]  # fmt: skip
    kept = [(1, 20, 12, 0, 20), (3, 1, 3, 0, 10), (3, 1, 3, 0, 20)]
    same.check(
        flow,
        {"changes": given},
        {
            "all": [(i, n, at(s), at(b), at(e), at(e) - MILLISECOND) for i, n, s, b, e in kept],
            "out": [(at(0), at(10), 1, 1), (at(0), at(20), 2, 21)],
        },
    )


def test_windows_in_local_time(same: Case) -> None:
    """On the day the clock is put forward, a day by local time has 23 hours."""
    flow, stream = seen("local")
    stream.assign_windows("days", ps.tumbling("1d", timezone="Europe/Berlin")).sink("out", ps.console())
    noon = datetime.datetime(2024, 3, 31, 12, tzinfo=datetime.UTC)
    begin, end = (datetime.datetime(2024, 3, d, h, tzinfo=datetime.UTC) for d, h in ((30, 23), (31, 22)))
    same.check(flow, {"seen": [("a", 1, noon)]}, {"out": [("a", 1, noon, begin, end, end - MILLISECOND)]})


def test_refusals() -> None:
    flow, stream = seen("refused")
    with pytest.raises(FlowError, match="assign_windows expects"):
        stream.assign_windows("w", ps.session("5m"))  # type: ignore[arg-type]
    with pytest.raises(SchemaError, match="'window_start' is the name of a field"):
        stream.assign_windows("once", ps.tumbling("1m")).assign_windows("twice", ps.tumbling("1m"))
    with pytest.raises(FlowError, match="expected clock"):
        stream.assign_windows("wall", ps.tumbling("1m"), clock="wall")
    with pytest.raises(FlowError, match="multiple of every"):
        ps.cumulating("1h", every="25m")
    untimed = flow.source("untimed", ps.items([], "k string"))
    with pytest.raises(FlowError, match="needs to know when"):
        untimed.assign_windows("w2", ps.tumbling("1m"))
    rows = stream.assign_windows("w3", ps.tumbling("1m"))
    with pytest.raises(FlowError, match="end of the window"):
        add_window_totals(flow.builder, "n", KeyedInput(rows.port, ("k",)), calls_of({"n": "count(*)"}))


@pytest.mark.parametrize("oracle", [True, False])
def test_windows_of_processing_time_close_by_the_clock_when_nothing_comes(oracle: bool) -> None:
    flow = ps.Flow("clock")
    stream = flow.source("seen", ps.items([], "k string"))
    fields = stream.assign_windows("windows", ps.tumbling("1m"), clock="processing")
    assert fields.event_time_of is None
    fields.sink("fields", ps.console())
    stream.key_by("k").window(ps.tumbling("1m"), clock="processing").count("n").sink("out", ps.console())
    driver = Driver(flow, oracle=oracle)
    driver.push("seen", ("a",), ("a",))
    assert driver.barrier()["out"] == []
    driver.clock.advance(61)
    results = driver.barrier()
    driver.close()
    assert [(row.k, row.n) for row in results["out"]] == [("a", 2)]
    assert {row.window_end - row.window_start for row in results["fields"]} == {datetime.timedelta(minutes=1)}
