"""Joins of two streams within an interval of time."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case

BEGIN = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)
HOWS = ["inner", "left", "right", "full"]
LEFT = "user string, n bigint, ts timestamp"
RIGHT = "user string, m bigint, tb timestamp"


def at(seconds: float | None) -> Any:
    return None if seconds is None else BEGIN + datetime.timedelta(seconds=seconds)


def streams(flow: ps.Flow) -> tuple[Any, Any]:
    left = flow.source("left", ps.items([], LEFT), event_time="ts", lateness="10s")
    return left, flow.source("right", ps.items([], RIGHT), event_time="tb", lateness="10s")


def flow_of(how: str, within: Any, **options: Any) -> ps.Flow:
    flow = ps.Flow("join")
    left, right = streams(flow)
    left.join("near", right, "user", within=within, how=how, **options).sink("out", ps.console())
    return flow


def oracle(left: Iterable[Any], right: Iterable[Any], how: str, low: float, high: float) -> list[Any]:
    """The join by brute force."""

    def near(one: Any, two: Any) -> bool:
        between = datetime.timedelta(seconds=low) <= two[2] - one[2] <= datetime.timedelta(seconds=high)
        return one[0] is not None and one[0] == two[0] and between

    made = [(*one, two[1], two[2]) for one in left for two in right if near(one, two)]
    if how in ("left", "full"):
        made += [(*one, None, None) for one in left if not any(near(one, two) for two in right)]
    if how in ("right", "full"):
        made += [(two[0], None, None, *two[1:]) for two in right if not any(near(one, two) for one in left)]
    return made


def shuffled(seed: str, many: int, keys: list[Any], spread: float = 60, lateness: float = 10) -> list[Any]:
    """Records in an order in which none is further than the lateness behind one that came before it."""
    rolled = random.Random(seed)
    times = sorted(rolled.uniform(0, spread) for _ in range(many))
    ordered = sorted(times, key=lambda time: time + rolled.uniform(0, lateness * 0.9))
    return [(rolled.choice(keys), number, at(round(time, 1))) for number, time in enumerate(ordered)]


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.live("full")
def test_out_of_order_records_meet_whatever_the_batches(same: Case, how: str) -> None:
    left = shuffled("left", 60, ["a", "b", "c", None, "only left"])
    right = shuffled("right", 60, ["a", "b", "c", None, "only right"])
    same.check(flow_of(how, ("-5s", "10s")), {"left": left, "right": right}, {"out": oracle(left, right, how, -5, 10)})


@pytest.mark.parametrize(
    ("within", "low", "high"), [(("5s", "10s"), 5, 10), (("-10s", "-5s"), -10, -5), ((0, 0), 0, 0)]
)
def test_intervals_that_do_not_hold_the_record_itself(same: Case, within: Any, low: float, high: float) -> None:
    left, right = shuffled("one", 40, ["a", "b"]), shuffled("two", 40, ["a", "b"])
    same.check(flow_of("full", within), {"left": left, "right": right}, {"out": oracle(left, right, "full", low, high)})


def test_the_edges_belong_to_the_interval(same: Case) -> None:
    left = [("a", 1, at(100))]
    right = [("a", m, at(100 + s)) for m, s in enumerate([-5.000001, -5, 10, 10.000001])]
    expected: list[Any] = [("a", 1, at(100), 1, at(95)), ("a", 1, at(100), 2, at(110))]
    expected += [("a", None, None, 0, right[0][2]), ("a", None, None, 3, right[3][2])]
    same.check(flow_of("right", ("-5s", "10s")), {"left": left, "right": right}, {"out": expected})


def test_one_span_reaches_to_both_sides(same: Case) -> None:
    left, right = [("a", 1, at(10))], [("a", 2, at(7)), ("a", 3, at(13)), ("a", 4, at(14))]
    expected = [("a", 1, at(10), 2, at(7)), ("a", 1, at(10), 3, at(13))]
    same.check(flow_of("inner", "3s"), {"left": left, "right": right}, {"out": expected})


@pytest.mark.live
def test_hot_keys_give_all_their_pairs_and_no_more(same: Case) -> None:
    left = [("hot", n, at(n * 0.1)) for n in range(300)]
    right = [("hot", m, at(m * 0.1)) for m in range(300)]
    expected = oracle(left, right, "inner", -1, 1)
    assert len(expected) < 300 * 22
    same.check(flow_of("inner", "1s"), {"left": left, "right": right}, {"out": expected})


def test_pairs_of_key_fields_and_a_prefix(same: Case) -> None:
    flow = ps.Flow("orders")
    orders = flow.source("orders", ps.items([], "id bigint, day date, ts timestamp"), event_time="ts")
    paid = flow.source("paid", ps.items([], "id string, order_id bigint, day date, ts timestamp"), event_time="ts")
    joined = orders.join("both", paid, [("id", "order_id"), "day"], within=(0, "1h"), how="full", prefix="paid_")
    assert joined.schema.names == ("id", "day", "ts", "paid_id", "paid_order_id", "paid_ts")
    joined.sink("out", ps.console())
    day, other = datetime.date(2024, 5, 1), datetime.date(2024, 5, 2)
    inputs: dict[str, list[Any]] = {
        "orders": [(1, day, at(0)), (2, day, at(0))],
        "paid": [("p", 1, day, at(60)), ("q", 2, other, at(60))],
    }
    expected = [
        (1, day, at(0), "p", 1, at(60)),
        (2, day, at(0), None, None, None),
        (None, other, None, "q", 2, at(60)),
    ]
    same.check(flow, inputs, {"out": expected})


def test_a_stream_joins_itself(same: Case) -> None:
    flow = ps.Flow("self")
    moves = flow.source("moves", ps.items([], LEFT), event_time="ts", lateness="5s")
    moves.join("next", moves, "user", within=("1ms", "10s"), prefix="next_").sink("out", ps.console())
    rows = [("a", 1, at(0)), ("a", 2, at(5)), ("b", 3, at(6)), ("a", 4, at(16))]
    same.check(flow, {"moves": rows}, {"out": [("a", 1, at(0), 2, at(5))]})


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.live("full")
def test_the_later_time_in_a_field_of_its_own(same: Case, how: str) -> None:
    left, right = [("a", 1, at(10)), ("b", 2, at(20))], [("a", 3, at(12)), ("c", 4, at(30))]
    expected = [(*row, max(t for t in (row[2], row[4]) if t is not None)) for row in oracle(left, right, how, -5, 5)]
    same.check(flow_of(how, "5s", into="at"), {"left": left, "right": right}, {"out": expected})


@pytest.mark.live
def test_a_join_of_joins(same: Case) -> None:
    flow = ps.Flow("three")
    left, right = streams(flow)
    third = flow.source("third", ps.items([], "user string, k bigint, tc timestamp"), event_time="tc", lateness="10s")
    first = left.join("first", right, "user", within="5s", how="left")
    first.join("second", third, "user", within=("-5s", "20s"), how="left").sink("out", ps.console())
    one, two = shuffled("1", 40, ["a", "b", None]), shuffled("2", 40, ["a", "b", None])
    three = shuffled("3", 40, ["a", "b", None])
    expected = []
    for row in oracle(one, two, "left", -5, 5):
        found = oracle([row[:3]], three, "left", -5, 20)
        expected += [(*row, *pair[3:]) for pair in found]
    same.check(flow, {"left": one, "right": two, "third": three}, {"out": expected})


@pytest.mark.parametrize("how", ["inner", "left", "right"])
@pytest.mark.live("left")
def test_windows_over_a_join_are_whole(same: Case, how: str) -> None:
    flow = ps.Flow("behind")
    left, right = streams(flow)
    joined = left.join("near", right, "user", within=("-5s", "10s"), how=how)
    joined.key_by("user").window(ps.tumbling("10s")).aggregate("n", n="count(n)", m="count(m)").sink(
        "out", ps.console()
    )
    one, two = shuffled("1", 60, ["a", "b", "c"]), shuffled("2", 60, ["a", "b", "d"])
    expected: dict[Any, list[int]] = {}
    for user, n, ts, m, tb in oracle(one, two, how, -5, 10):
        time = tb if how == "right" else ts
        start = time - datetime.timedelta(seconds=time.timestamp() % 10)
        both = expected.setdefault((user, start), [0, 0])
        both[0], both[1] = both[0] + (n is not None), both[1] + (m is not None)
    rows = [(u, s, s + datetime.timedelta(seconds=10), *both) for (u, s), both in expected.items()]
    same.check(flow, {"left": one, "right": two}, {"out": rows})


def test_a_join_of_two_windowed_streams(same: Case) -> None:
    """Windows are timed by their end; those of the same span meet."""
    flow = ps.Flow("windows")
    counts = [
        stream.key_by("user").window(ps.tumbling("10s")).count(name, into=name)
        for stream, name in zip(streams(flow), ("n", "m"), strict=True)
    ]
    counts[0].join("both", counts[1], "user", within=0, how="full", prefix="r_").sink("out", ps.console())
    one, two = shuffled("1", 40, ["a", "b", "c"]), shuffled("2", 40, ["a", "b", "d"])
    sides: list[dict[Any, int]] = [{}, {}]
    for side, rows in enumerate((one, two)):
        for user, _, time in rows:
            key = (user, time - datetime.timedelta(seconds=time.timestamp() % 10))
            sides[side][key] = sides[side].get(key, 0) + 1

    def bounds(side: int, key: Any) -> Any:
        if key not in sides[side]:
            return (None, None, None)
        return key[1], key[1] + datetime.timedelta(seconds=10), sides[side][key]

    expected = [(key[0], *bounds(0, key), *bounds(1, key)) for key in {*sides[0], *sides[1]}]
    same.check(flow, {"left": one, "right": two}, {"out": expected})


def late_flow() -> ps.Flow:
    flow = ps.Flow("late")
    left, right = streams(flow)
    joined = left.join("near", right, "user", within="5s", how="full")
    joined.sink("out", ps.console())
    joined.side("late").sink("late", ps.console())
    joined.side("late_right").sink("late-right", ps.console())
    return flow


LATE_ROWS = {
    "left": [("a", 1, at(100)), ("b", 2, at(100)), ("a", 3, at(89.9)), ("a", 4, at(90))],
    "right": [("a", 5, at(100)), ("b", 6, at(100)), ("a", 7, at(89.9)), ("a", 8, at(90))],
}


def test_late_records_come_out_on_their_own(flow_driver: Any) -> None:
    """The watermark is at 90 when they come: what is behind it is late, what is as far back as it may be is not."""
    driver = flow_driver(late_flow())
    for part in (slice(0, 1), slice(1, 2), slice(2, 4)):
        driver.push("left", *LATE_ROWS["left"][part])
        driver.push("right", *LATE_ROWS["right"][part])
        driver.barrier(waiting=True)
    results = driver.barrier(end=True)
    assert [row[1] for row in results["late"]] == [3]
    assert [row[1] for row in results["late-right"]] == [7]
    assert sorted(row[1] for row in results["out"]) == [1, 2, 4]


@pytest.mark.spark
def test_late_records_come_out_on_their_own_on_spark(penstock_spark: Any) -> None:
    from penstock.testing import run_spark

    results = run_spark(late_flow(), penstock_spark, LATE_ROWS, cuts={"left": [1, 2], "right": [1, 2]})
    assert [row[1] for row in results["late"]] == [3]
    assert [row[1] for row in results["late-right"]] == [7]
    assert sorted(row[1] for row in results["out"]) == [1, 2, 4]


@pytest.mark.spark
def test_a_join_goes_on_after_a_restart_with_other_parallelism(penstock_spark: Any, tmp_path: Path) -> None:
    from penstock.testing import run_spark

    left, right = shuffled("left", 60, ["a", "b", "c", None]), shuffled("right", 60, ["a", "b", "d", None])
    flow, found = flow_of("full", ("-5s", "10s")), []
    for many, cuts, tasks in ((30, [15], 4), (60, [15, 30], 2)):
        inputs = {"left": left[:many], "right": right[:many]}
        results = run_spark(
            flow,
            penstock_spark,
            inputs,
            cuts={"left": cuts, "right": cuts},
            folder=tmp_path,
            parallelism=tasks,
            drain=many == 60,
        )
        found += results["out"]
    assert Counter(map(tuple, found)) == Counter(oracle(left, right, "full", -5, 10))


@pytest.mark.live
def test_types_of_every_kind_pass_through(same: Case) -> None:
    flow = ps.Flow("types")
    kinds = "k bigint, ts timestamp, d decimal(10,2), l array<string>, m map<string,int>, s struct<a:int,b:string>"
    left = flow.source("left", ps.items([], kinds), event_time="ts")
    right = flow.source("right", ps.items([], kinds), event_time="ts")
    left.join("both", right, "k", within="1s", how="full", prefix="r_").sink("out", ps.console())
    from decimal import Decimal

    record = (1, at(0), Decimal("1.50"), ["a", None], {"x": 1}, {"a": 1, "b": "z"})
    lone = (2, at(0), None, None, None, None)
    expected = [(*record, *record[1:]), (*lone, *[None] * 5)]
    same.check(flow, {"left": [record, lone], "right": [record]}, {"out": expected})
