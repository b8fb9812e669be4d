"""The kernels that hold, sort and deduplicate, batch by batch."""

from __future__ import annotations

import datetime
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, SchemaError
from penstock.testing import BARRIER, CRASH, Driver, run_local

BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


def at(seconds: float) -> datetime.datetime:
    return BEGIN + datetime.timedelta(seconds=seconds)


def seen(lateness: str = "10s") -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow("seen")
    given = ps.items([], "id string, n int, ts timestamp")
    return flow, flow.source("seen", given, event_time="ts", lateness=lateness, idle=None)


def numbers(results: Any, sink: str = "out") -> list[int]:
    return [row.n for row in results[sink]]


def test_records_come_out_when_event_time_has_passed_them_and_not_before() -> None:
    flow, stream = seen("10s")
    stream.sort("order").sink("out", ps.console())
    driver = Driver(flow)
    driver.push("seen", ("a", 2, at(5)), ("a", 1, at(3)))
    assert numbers(driver.barrier()) == []
    driver.push("seen", ("a", 3, at(15)))
    assert numbers(driver.barrier()) == [1]
    driver.push("seen", ("a", 4, at(15.1)))
    assert numbers(driver.barrier()) == [1, 2]
    assert numbers(driver.barrier(end=True)) == [1, 2, 3, 4]


def test_late_records_go_to_their_own_output() -> None:
    flow, stream = seen("0s")
    ordered = stream.sort("order")
    ordered.sink("out", ps.console())
    ordered.side("late").sink("late", ps.console())
    results = run_local(
        flow, {"seen": [("a", 1, at(10)), BARRIER, ("a", 0, at(9.95)), BARRIER, ("a", 2, at(9.9)), ("a", 3, at(10))]}
    )
    assert numbers(results) == [0, 1, 3]
    assert numbers(results, "late") == [2]


@pytest.mark.parametrize("eager", [True, False])
def test_late_records_that_nobody_reads_are_counted(eager: bool) -> None:
    flow, stream = seen("0s")
    stream.key_by("id").distinct("once", within="5s", eager=eager).sink("out", ps.console())
    driver = Driver(flow)
    for record in (("a", 1, at(10)), ("a", 1, at(10)), ("b", 2, at(9))):
        driver.push("seen", record)
        driver.barrier()
    assert driver.run.pipeline.counts().late() == {"once": 1}


def _kept(driver: Driver, store: str) -> int:
    rows = driver.run.tables_kept[store].rows
    return 0 if rows is None else int(rows.num_rows)


def test_keys_are_forgotten_when_no_double_can_come_any_more() -> None:
    flow, stream = seen("0s")
    stream.key_by("id").distinct("once", within="5s").sink("out", ps.console())
    stream.key_by("id").distinct("at-once", within="5s", eager=True).sink("eager", ps.console())
    driver = Driver(flow)
    for n in range(20):
        driver.push("seen", (f"k{n}", n, at(n)))
        driver.barrier()
    for store in ("once@kept", "at-once"):
        assert _kept(driver, store) <= 6
    assert _kept(driver, "once") == 1


def test_a_span_is_sorted_as_a_whole_when_it_has_passed() -> None:
    flow, stream = seen("0s")
    stream.sort("order", by="n desc", within="10s").sink("out", ps.console())
    driver = Driver(flow)
    driver.push("seen", ("a", 1, at(1)), ("a", 5, at(2)))
    driver.barrier()
    driver.push("seen", ("a", 3, at(9)))
    assert numbers(driver.barrier()) == []
    driver.push("seen", ("a", 9, at(10)))
    assert numbers(driver.barrier()) == [5, 3, 1]


def test_a_crash_loses_and_doubles_nothing() -> None:
    flow, stream = seen("10s")
    stream.key_by("id").distinct("once", within="20s").sort("order").sink("out", ps.console())
    given = [
        ("a", 1, at(5)),
        BARRIER,
        ("a", 2, at(3)),
        CRASH,
        ("b", 3, at(20)),
        BARRIER,
        ("b", 4, at(22)),
        CRASH,
        ("a", 5, at(40)),
    ]
    assert numbers(run_local(flow, {"seen": given})) == [2, 3, 5]


def test_a_changelog_holds_what_happened_between_batches() -> None:
    flow, stream = seen()
    stream.key_by("id").count("n").changelog("changes").sink("out", ps.console())
    given = [("a", 1, at(1)), ("a", 1, at(1)), BARRIER, ("a", 1, at(2)), ("b", 1, at(2))]
    assert run_local(flow, {"seen": given})["out"] == [
        ("insert", "a", 2),
        ("update_before", "a", 2),
        ("update_after", "a", 3),
        ("insert", "b", 1),
    ]


def test_what_comes_again_unchanged_is_no_change() -> None:
    flow, stream = seen()
    best = stream.key_by("id").reduce("best", lambda a, b: a if a.n >= b.n else b)
    best.changelog("changes", before=False).sink("out", ps.console())
    given = [("a", 5, at(1)), BARRIER, ("a", 3, at(2)), BARRIER, ("a", 6, at(3))]
    assert [(r.op, r.n) for r in run_local(flow, {"seen": given})["out"]] == [("insert", 5), ("update_after", 6)]


def test_ranks_that_stay_are_not_given_again() -> None:
    flow, stream = seen()
    stream.key_by("id").top("best", 2, by="n desc").sink("out", ps.console())
    given = [("a", 5, at(1)), ("a", 3, at(1)), BARRIER, ("a", 4, at(2)), BARRIER, ("a", 1, at(3))]
    got = [(r.n, r.rank) for r in run_local(flow, {"seen": given})["out"]]
    assert got == [(5, 1), (3, 2), (4, 2)]


def test_a_step_in_time_needs_an_event_time() -> None:
    flow = ps.Flow("timeless")
    stream = flow.source("seen", ps.items([], "id string, n int"))
    with pytest.raises(FlowError, match="event_time='a field' at the source"):
        stream.sort("order")
    with pytest.raises(FlowError, match="distinct within a time needs to know when"):
        stream.key_by("id").distinct("once", within="1h")


def test_an_order_is_of_fields() -> None:
    _, stream = seen()
    with pytest.raises(SchemaError, match="nn"):
        stream.key_by("id").top("best", 2, by="nn desc")
    with pytest.raises(FlowError, match="got 'n downwards'"):
        stream.key_by("id").top("best-2", 2, by="n downwards")
    with pytest.raises(FlowError, match="at least 1, got 0"):
        stream.key_by("id").top("best-3", 0, by="n")
    with pytest.raises(SchemaError, match="into='another name'"):
        stream.key_by("id").top("best-4", 1, by="n", into="ts")


def test_a_changelog_is_of_running_totals() -> None:
    _, stream = seen()
    with pytest.raises(FlowError, match="emits records of their own"):
        stream.changelog("changes")
    with pytest.raises(FlowError, match="when the records of 'n' happened"):
        stream.key_by("id").count("n").sort("order")
