"""Triggers: changes wait until their key fires."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, SchemaError
from penstock.testing import BARRIER, Driver, run_local
from tests.same.conftest import Case

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ORDERS = "who string, amount bigint, ts timestamp"


def at(seconds: int) -> datetime:
    return NOON + timedelta(seconds=seconds)


def orders(**options: Any) -> Any:
    return ps.Flow("f").source("orders", ps.items([], ORDERS), event_time="ts", **options)


def totals(stream: Any) -> Any:
    return stream.key_by("who").aggregate("totals", total="sum(amount)").key_by("who")


ROWS = [("ann", 7, at(0)), ("bob", 1, at(20)), ("ann", 5, at(70)), ("bob", 2, at(130)), ("ann", 1, at(200))]


@pytest.mark.live
def test_the_changes_of_a_table_add_up_to_it_whenever_they_are_emitted(same: Case) -> None:
    stream = orders()
    totals(stream).trigger("each", every="1m").sink("out", ps.console())
    same.check(stream.flow, {"orders": ROWS}, {"out": [("ann", 13), ("bob", 3)]})


def test_records_wait_too(same: Case) -> None:
    stream = orders()
    stream.key_by("who").trigger("each", every="1m").select("s", "who", "amount").sink("out", ps.console())
    same.check(stream.flow, {"orders": ROWS}, {"out": [row[:2] for row in ROWS]})


def test_processing_time_fires_when_the_input_is_over(same: Case) -> None:
    stream = orders()
    totals(stream).trigger("each", every="1h", clock="processing").sink("out", ps.console())
    same.check(stream.flow, {"orders": ROWS}, {"out": [("ann", 13), ("bob", 3)]})


def test_a_condition_fires_once_each_time_it_turns_true(same: Case) -> None:
    stream = ps.Flow("f").source("orders", ps.items([], "who string, amount bigint"))
    stream.key_by("who").aggregate("sums", amount="sum(amount)").key_by("who").trigger(
        "large", when="amount > 10", whole=True
    ).sink("out", ps.console())
    rows = [("ann", 12), ("ann", 1), ("ann", -9), ("ann", 30), ("bob", 3)]
    wanted = [("ann", 34)] if same.runtime in ("oracle", "bounded") else [("ann", 12), ("ann", 34)]
    same.check(stream.flow, {"orders": rows}, {"out": wanted}, cuts={"orders": [1, 2, 3, 4]})


def test_a_key_that_has_ended_stays_so(same: Case) -> None:
    stream = ps.Flow("f").source("orders", ps.items([], "who string, amount bigint"))
    made = (
        stream.key_by("who").aggregate("sums", amount="sum(amount)").key_by("who").trigger("some", until="amount > 10")
    )
    made.sink("out", ps.console())
    made.side("ended").select("names", "who").sink("ended", ps.console())
    rows = [("ann", 8), ("bob", 1), ("ann", 4), ("ann", 1), ("bob", 1)]
    total = 13 if same.runtime in ("oracle", "bounded") else 12
    same.check(
        stream.flow,
        {"orders": rows},
        {"out": [("ann", total), ("bob", 2)], "ended": [("ann",)]},
        cuts={"orders": [2, 3, 4]},
    )


def test_settings_say_when_keys_come_and_go(same: Case) -> None:
    flow = ps.Flow("f")
    rows = flow.source("rows", ps.items([], "q string, n bigint"))
    changes = flow.source("changes", ps.items([], "q string, op string, every bigint"))
    rows.key_by("q").trigger("some", settings=changes).sink("out", ps.console())
    given: dict[str, list[Any]] = {
        "rows": [("a", 1), ("b", 1), ("a", 2), ("a", 3)],
        "changes": [("a", "add", None), ("a", "drop", None), ("a", "add", None)],
    }
    if same.runtime in ("oracle", "bounded"):
        wanted = [("a", 1), ("a", 2), ("a", 3)]
    else:
        wanted = [("a", 1), ("a", 3)]
    same.check(flow, given, {"out": wanted}, cuts={"rows": [2, 3], "changes": [1, 2]})


def test_event_time_fires_at_the_multiples_of_the_span() -> None:
    stream = orders()
    totals(stream).trigger("each", every="1m").changelog("log").sink("out", ps.console())
    driver = Driver(stream.flow)
    seen: list[list[Any]] = []
    before = 0
    for row in [*ROWS, ("ann", 1, at(201)), ("ann", 1, at(300))]:
        driver.push("orders", row)
        rows = driver.barrier()["out"]
        seen.append([tuple(r) for r in rows[before:]])
        before = len(rows)
    assert seen[0] == []
    changed = [tuple(r) for part in seen for r in part if r[0] in ("insert", "update_after")]
    assert changed[:2] == [("insert", "ann", 12), ("insert", "bob", 1)]
    assert changed[-1][1] == "ann"
    assert len(changed) < len(ROWS) + 2


def test_processing_time_fires_on_quiet_input() -> None:
    stream = ps.Flow("f").source("orders", ps.items([], "who string, amount bigint"))
    summed = stream.key_by("who").aggregate("sums", amount="sum(amount)").key_by("who")
    summed.trigger("each", every="1m", clock="processing", whole=True).sink("out", ps.console())
    driver = Driver(stream.flow)
    driver.push("orders", ("ann", 1), ("ann", 2))
    assert driver.barrier()["out"] == []
    driver.clock.advance(61)
    assert driver.barrier()["out"] == [("ann", 3)]
    driver.clock.advance(60)
    assert driver.barrier()["out"] == [("ann", 3), ("ann", 3)]
    driver.clock.advance(10)
    assert driver.barrier()["out"] == [("ann", 3), ("ann", 3)]


@pytest.mark.parametrize("whole", [False, True])
def test_rows_that_come_all_the_time_put_no_firing_off(whole: bool) -> None:
    stream = ps.Flow("f").source("orders", ps.items([], "who string, amount bigint"))
    stream.key_by("who").trigger("each", every="1m", clock="processing", whole=whole).sink("out", ps.console())
    driver, emitted = Driver(stream.flow), []
    for number in range(8):
        driver.push("orders", ("ann", number))
        emitted.append(len(driver.barrier()["out"]))
        driver.clock.advance(25)
    assert driver.barrier()["out"][-1] == ("ann", 7)
    assert len(set(emitted)) == 3


def test_rows_that_come_all_the_time_put_no_firing_by_event_time_off() -> None:
    stream = orders()
    stream.key_by("who").trigger("each", every="1m").select("s", "who", "amount").sink("out", ps.console())
    driver, emitted = Driver(stream.flow), []
    for number in range(5):
        driver.push("orders", ("ann", number, at(number * 50)))
        emitted.append(len(driver.barrier()["out"]))
    assert emitted == [0, 0, 3, 4, 5]


def test_what_waits_survives_a_crash() -> None:
    stream = ps.Flow("f").source("orders", ps.items([], "who string, amount bigint"))
    stream.key_by("who").trigger("each", every="1m", clock="processing").sink("out", ps.console())
    driver = Driver(stream.flow)
    driver.push("orders", ("ann", 1))
    driver.barrier()
    driver.push("orders", ("bob", 2))
    driver.crash()
    driver.clock.advance(60)
    assert driver.barrier()["out"] == [("ann", 1)]
    driver.clock.advance(60)
    assert driver.barrier()["out"] == [("ann", 1), ("bob", 2)]


def test_a_row_that_goes_makes_the_condition_false_again() -> None:
    flow = ps.Flow("f")
    rows = flow.source("rows", ps.items([], "op string, k string, n bigint"))
    rows.as_table("t", "k").key_by("k").trigger("large", when="n > 10", whole=True).sink("out", ps.console())
    given = [
        ("insert", "a", 11), BARRIER, ("update_after", "a", 12), BARRIER, ("delete", "a", 12), BARRIER, ("insert", "a", 13),
    ]  # fmt: skip
    assert run_local(flow, {"rows": given})["out"] == [("a", 11), ("a", 13)]


@pytest.mark.parametrize(
    "options, says",
    [
        ({"every": "1m", "when": "amount > 1"}, "expected one of both"),
        ({"every": "0s"}, "every"),
        ({"when": "amount"}, "boolean"),
        ({"clock": "wall"}, "expected clock"),
    ],
)
def test_what_no_trigger_is_refused(options: dict[str, Any], says: str) -> None:
    stream = orders()
    with pytest.raises((FlowError, SchemaError), match=says):
        stream.key_by("who").trigger("t", **options)
