"""Windows over time: tumbling and sliding, their triggers and modes, and what they do with late records."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from typing import Any

import pytest

import penstock as ps
from penstock.testing import BARRIER, Driver, run_spark
from tests.same.conftest import Case

CLICKS = "user string, ts timestamp, n int"
START = datetime.datetime(2024, 5, 1, tzinfo=datetime.UTC)


def at(seconds: float) -> datetime.datetime:
    """A moment, so many seconds into a day."""
    return START + datetime.timedelta(seconds=seconds)


def clicks(name: str, **timing: Any) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("clicks", ps.items([], CLICKS), event_time="ts", **timing)


GIVEN = [
    ("ada", at(1), 1),
    ("bob", at(12), 2),
    ("ada", at(9), 3),
    ("ada", at(11), 4),
    ("eve", at(65), 5),
    ("bob", at(13), None),
    (None, at(19.999999), 7),
]


@pytest.mark.live
def test_tumbling_count_of_records_out_of_order(same: Case) -> None:
    flow, stream = clicks("tumbling", lateness="2m")
    stream.key_by("user").window(ps.tumbling("10s")).count("n").sink("out", ps.console())
    same.check(flow, {"clicks": GIVEN}, {"out": [
        ("ada", at(0), at(10), 2), ("ada", at(10), at(20), 1), ("bob", at(10), at(20), 2), (None, at(10), at(20), 1),
        ("eve", at(60), at(70), 1),
    ]})  # fmt: skip


def test_tumbling_with_an_offset(same: Case) -> None:
    flow, stream = clicks("offset", lateness="2m")
    stream.key_by("user").window(ps.tumbling("10s", offset="2s")).sum("total", "n").sink("out", ps.console())
    same.check(flow, {"clicks": GIVEN}, {"out": [
        ("ada", at(-8), at(2), 1), ("ada", at(2), at(12), 7), ("bob", at(12), at(22), 2), (None, at(12), at(22), 7),
        ("eve", at(62), at(72), 5),
    ]})  # fmt: skip


@pytest.mark.live
def test_sliding_windows_hold_a_record_several_times(same: Case) -> None:
    flow, stream = clicks("sliding", lateness="2m")
    stream.key_by("user").window(ps.sliding("20s", every="10s")).count("n").sink("out", ps.console())
    same.check(flow, {"clicks": GIVEN[:5]}, {"out": [
        ("ada", at(-10), at(10), 2), ("ada", at(0), at(20), 3), ("ada", at(10), at(30), 1),
        ("bob", at(0), at(20), 1), ("bob", at(10), at(30), 1),
        ("eve", at(50), at(70), 1), ("eve", at(60), at(80), 1),
    ]})  # fmt: skip


def test_sliding_whose_size_is_not_a_multiple_of_the_step(same: Case) -> None:
    flow, stream = clicks("uneven", lateness="2m")
    stream.key_by("user").window(ps.sliding("15s", every="10s")).count("n").sink("out", ps.console())
    same.check(flow, {"clicks": [("a", at(3), 1), ("a", at(7), 1)]}, {"out": [
        ("a", at(-10), at(5), 1), ("a", at(0), at(15), 2),
    ]})  # fmt: skip


def expected_counts(records: list[Any], size: int, every: int) -> list[Any]:
    """Counts per user and window, by hand."""
    counts: Counter[Any] = Counter()
    for user, moment, _ in records:
        seconds = (moment - START) // datetime.timedelta(seconds=1)
        first = seconds - seconds % every
        for start in range(first, seconds - size, -every):
            counts[user, start] += 1
    return [(user, at(start), at(start + size), n) for (user, start), n in counts.items()]


@pytest.mark.parametrize(("size", "every"), [(10, 10), (60, 10)])
@pytest.mark.live("60-10")
def test_many_records_out_of_order_within_lateness(same: Case, size: int, every: int) -> None:
    rolled = random.Random(size)
    records = [(rolled.choice("abcdef"), at(i / 2 - rolled.randint(0, 20)), i) for i in range(600)]
    flow, stream = clicks(f"many-{size}", lateness="25s")
    spec = ps.tumbling(f"{size}s") if size == every else ps.sliding(f"{size}s", every=f"{every}s")
    stream.key_by("user").window(spec).count("n").sink("out", ps.console())
    same.check(flow, {"clicks": records}, {"out": expected_counts(records, size, every)})


class Joined(ps.Aggregator):
    """An aggregate of the user's own: what came, sorted."""

    schema = "string"

    def init(self) -> list[int]:
        return []

    def add(self, so_far: list[int], row: Any) -> list[int]:
        so_far.append(row.n or 0)
        return so_far

    def merge(self, one: list[int], other: list[int]) -> list[int]:
        one.extend(other)
        return one

    def result(self, so_far: list[int]) -> str:
        return "-".join(map(str, sorted(so_far)))


def test_own_aggregator_beside_a_native_one_in_sliding_windows(same: Case) -> None:
    flow, stream = clicks("own", lateness="2m")
    windows = stream.key_by("user").window(ps.sliding("20s", every="10s"))
    windows.aggregate("stats", seen=Joined, n="count(*)").sink("out", ps.console())
    same.check(flow, {"clicks": GIVEN[:4]}, {"out": [
        ("ada", at(-10), at(10), "1-3", 2), ("ada", at(0), at(20), "1-3-4", 3), ("ada", at(10), at(30), "4", 1),
        ("bob", at(0), at(20), "2", 1), ("bob", at(10), at(30), "2", 1),
    ]})  # fmt: skip


@pytest.mark.live
def test_reduce_folds_the_records_of_a_window(same: Case) -> None:
    flow, stream = clicks("reduce", lateness="2m")
    largest = stream.key_by("user").window(ps.tumbling("10s")).reduce("max", lambda a, b: a if a.n >= b.n else b)
    largest.sink("out", ps.console())
    same.check(flow, {"clicks": GIVEN[:5]}, {"out": [
        ("ada", at(0), at(10), at(9), 3), ("ada", at(10), at(20), at(11), 4), ("bob", at(10), at(20), at(12), 2),
        ("eve", at(60), at(70), at(65), 5),
    ]})  # fmt: skip


@pytest.mark.live
def test_windows_over_windows_move_together(same: Case) -> None:
    """Ten seconds roll up to a minute; a minute closes in the batch that closes its last ten seconds."""
    records = [(u, at(s), 1) for s in range(0, 180, 7) for u in "ab"]
    flow, stream = clicks("rollup")
    small = stream.key_by("user").window(ps.tumbling("10s")).count("few", into="n")
    small.key_by("user").window(ps.tumbling("1m")).aggregate("many", n="sum(n)", parts="count(*)").sink(
        "out", ps.console()
    )
    small.sink("small", ps.console())
    minutes: Counter[Any] = Counter((u, int((m - START).total_seconds()) // 60) for u, m, _ in records)
    same.check(flow, {"clicks": records}, {
        "out": [(u, at(60 * m), at(60 * m + 60), n, 6) for (u, m), n in minutes.items()],
        "small": expected_counts(records, 10, 10),
    })  # fmt: skip


def test_windows_behind_other_steps_keep_the_event_time(same: Case) -> None:
    flow, stream = clicks("behind", lateness="2m")
    odd = stream.where("odd", "n % 2 = 1").with_columns("wide", twice="n * 2").filter("all", lambda row: row.n < 7)
    odd.key_by(letter="substring(user, 1, 1)").window(ps.tumbling("10s")).sum("total", "twice").sink(
        "out", ps.console()
    )
    same.check(flow, {"clicks": GIVEN}, {"out": [("a", at(0), at(10), 8), ("e", at(60), at(70), 10)]})


@pytest.mark.live
def test_two_sources_move_time_by_the_slower_one(same: Case) -> None:
    flow = ps.Flow("two")
    one = flow.source("one", ps.items([], CLICKS), event_time="ts", lateness="2m")
    other = flow.source("other", ps.items([], CLICKS), event_time="ts", lateness="2m")
    both = one.union("both", other)
    both.key_by("user").window(ps.tumbling("10s")).count("n").sink("out", ps.console())
    records = {"one": [("a", at(s), 1) for s in range(0, 90, 4)], "other": [("a", at(s), 1) for s in range(0, 60, 9)]}
    same.check(flow, records, {"out": expected_counts(records["one"] + records["other"], 10, 10)})


@pytest.mark.live
def test_a_day_in_a_time_zone_follows_its_clock(same: Case) -> None:
    """In Berlin the 31st of March 2024 had 23 hours, the 27th of October 25."""
    days = [datetime.datetime(2024, 3, d, h, 30, tzinfo=datetime.UTC) for d in (30, 31) for h in range(24)]
    days += [datetime.datetime(2024, 10, d, h, 30, tzinfo=datetime.UTC) for d in (26, 27) for h in range(24)]
    flow, stream = clicks("berlin", lateness="2m")
    windows = stream.key_by("user").window(ps.tumbling("1d", timezone="Europe/Berlin"))
    windows.count("n").sink("out", ps.console())

    def utc(month: int, day: int, hour: int) -> datetime.datetime:
        return datetime.datetime(2024, month, day, hour, tzinfo=datetime.UTC)

    same.check(flow, {"clicks": [("a", d, 1) for d in days]}, {"out": [
        ("a", utc(3, 29, 23), utc(3, 30, 23), 23), ("a", utc(3, 30, 23), utc(3, 31, 22), 23), ("a", utc(3, 31, 22), utc(4, 1, 22), 2),
        ("a", utc(10, 25, 22), utc(10, 26, 22), 22), ("a", utc(10, 26, 22), utc(10, 27, 23), 25), ("a", utc(10, 27, 23), utc(10, 28, 23), 1),
    ]})  # fmt: skip


def test_hours_in_a_time_zone_slide_over_the_change(same: Case) -> None:
    moments = [datetime.datetime(2024, 10, 27, h, m, tzinfo=datetime.UTC) for h in range(4) for m in (0, 30)]
    flow, stream = clicks("hours", lateness="2m")
    windows = stream.key_by("user").window(ps.sliding("2h", every="1h", timezone="Europe/Berlin"))
    windows.count("n").sink("out", ps.console())

    def utc(hour: int) -> datetime.datetime:
        return datetime.datetime(2024, 10, 27, tzinfo=datetime.UTC) + datetime.timedelta(hours=hour)

    same.check(flow, {"clicks": [("a", m, 1) for m in moments]}, {"out": [
        ("a", utc(-1), utc(2), 4), ("a", utc(0), utc(3), 6), ("a", utc(2), utc(4), 4), ("a", utc(3), utc(5), 2),
    ]})  # fmt: skip


LATE = [("a", at(5), 1), ("a", at(30), 2), BARRIER, ("a", at(31), 3), BARRIER, ("a", at(7), 4), ("a", at(30.5), 5)]


def cut(records: list[Any]) -> tuple[list[Any], list[int]]:
    """The records without barriers, and behind which of them one stood."""
    cuts: list[int] = []
    plain: list[Any] = []
    for record in records:
        if record is BARRIER:
            cuts.append(len(plain))
        else:
            plain.append(record)
    return plain, cuts


def run(same: Case, flow: ps.Flow, records: list[Any]) -> Any:
    """Runs in the batches that the barriers name: locally, or live."""
    if same.in_process:
        return same.run_local(flow, {"clicks": records})
    plain, cuts = cut(records)
    return run_spark(flow, same.spark(), {"clicks": plain}, cuts={"clicks": cuts})


def plain(rows: Any) -> list[Any]:
    return sorted([tuple(row) for row in rows], key=repr)


@pytest.mark.live
def test_late_records_go_to_a_stream_of_their_own(same: Case) -> None:
    if same.runtime == "bounded":
        pytest.skip("in a bounded run nothing is late")
    made: dict[str, Any] = {"native": "count(*)", "own": Joined}
    for name, aggregate in made.items():
        flow, stream = clicks(f"late-{name}")
        counts = stream.key_by("user").window(ps.tumbling("10s")).aggregate("w", n=aggregate)
        counts.sink("out", ps.console())
        counts.side("late").sink("late", ps.console())
        results = run(same, flow, LATE)
        assert plain(results["late"]) == [("a", at(7), 4)]
        assert sorted(row.window_start for row in results["out"]) == [at(0), at(30)]


@pytest.mark.live
def test_late_within_allowed_lateness_corrects_what_was_given(same: Case) -> None:
    if same.runtime == "bounded":
        pytest.skip("in a bounded run nothing is late")
    flow, stream = clicks("correct")
    counts = stream.key_by("user").window(ps.tumbling("10s"), lateness="1m").count("n")
    counts.sink("out", ps.console())
    counts.side("late").sink("late", ps.console())
    results = run(same, flow, LATE)
    first = [tuple(row) for row in results["out"] if row.window_start == at(0)]
    assert first == [("a", at(0), at(10), 1), ("a", at(0), at(10), 2)]
    assert results["late"] == []


@pytest.mark.live
def test_update_gives_what_changed_after_every_batch(same: Case) -> None:
    flow, stream = clicks("update", lateness="2m")
    stream.key_by("user").window(ps.tumbling("10s"), mode="update").count("n").sink("out", ps.console())
    same.check(flow, {"clicks": GIVEN}, {"out": [
        ("ada", at(0), at(10), 2), ("ada", at(10), at(20), 1), ("bob", at(10), at(20), 2), (None, at(10), at(20), 1),
        ("eve", at(60), at(70), 1),
    ]})  # fmt: skip


def test_complete_gives_all_that_is_kept(same: Case) -> None:
    flow, stream = clicks("complete", lateness="2m")
    stream.key_by("user").window(ps.sliding("20s", every="10s"), mode="complete").sum("n", "n").sink(
        "out", ps.console()
    )
    same.check(flow, {"clicks": GIVEN[:3]}, {"out": [
        ("ada", at(-10), at(10), 4), ("ada", at(0), at(20), 4), ("bob", at(0), at(20), 2), ("bob", at(10), at(30), 2),
    ]})  # fmt: skip


@pytest.mark.live
def test_early_results_each_so_many_records(same: Case) -> None:
    records = [("a", at(i), 1) for i in range(9)]
    flow, stream = clicks("each")
    stream.key_by("user").window(ps.tumbling("10s"), early=ps.every_records(2)).count("n").sink("out", ps.console())
    same.check(flow, {"clicks": records}, {"out": [("a", at(0), at(10), 9)]})


@pytest.mark.live
def test_discarding_results_add_up_to_the_whole(same: Case) -> None:
    records = [("a", at(i), i) for i in range(9)]
    flow, stream = clicks("discard")
    windows = stream.key_by("user").window(ps.tumbling("10s"), early=ps.every_records(2), accumulate=False)
    windows.sum("n", "n").sink("out", ps.console())
    results = same.run(flow, {"clicks": records})
    assert sum(row.n for row in results["out"]) == 36


def test_whole_gives_totals_as_they_change(same: Case) -> None:
    flow, stream = clicks("whole")
    stream.key_by("user").window(ps.global_window(), mode="update").sum("n", "n").sink("out", ps.console())
    same.check(flow, {"clicks": GIVEN}, {"out": [("ada", 8), ("bob", 2), ("eve", 5), (None, 7)]})


@pytest.mark.live
def test_whole_with_a_trigger_gives_the_rest_at_the_end(same: Case) -> None:
    flow = ps.Flow("whole-early")
    source = flow.source("clicks", ps.items([], "user string, n int"))
    source.key_by("user").window(ps.global_window(), early=ps.every_records(3), accumulate=False).sum("n", "n").sink(
        "out", ps.console()
    )
    results = same.run(flow, {"clicks": [("a", i) for i in range(10)]})
    assert sum(row.n for row in results["out"]) == 45


@pytest.mark.live
def test_windows_by_the_clock_take_in_every_record(same: Case) -> None:
    flow = ps.Flow("clock")
    source = flow.source("clicks", ps.items([], "user string, n int"))
    windows = source.key_by("user").window(ps.tumbling("1h"), clock="processing")
    windows.sum("n", "n").sink("out", ps.console())
    results = same.run(flow, {"clicks": [("a", 1), ("b", 2), ("a", 3)]})
    totals: Counter[str] = Counter()
    for row in results["out"]:
        totals[row.user] += row.n
    assert totals == {"a": 4, "b": 2}


def test_bad_and_future_times_do_not_move_time(same: Case) -> None:
    far = datetime.datetime(9999, 1, 1, tzinfo=datetime.UTC)
    flow, stream = clicks("bad", lateness="2m")
    stream.key_by("user").window(ps.tumbling("10s")).count("n").sink("out", ps.console())
    stream.side("bad").sink("bad", ps.console())
    records = [("a", at(1), 1), ("a", far, 2), ("a", None, 3), ("a", at(2), 4), ("a", at(12), 5)]
    expected = [("a", at(0), at(10), 2), ("a", at(10), at(20), 1)]
    same.check(flow, {"clicks": records}, {"out": expected, "bad": [records[1], records[2]]})


def test_early_results_every_so_much_time(flow_driver: Any) -> None:
    flow, stream = clicks("every")
    stream.key_by("user").window(ps.tumbling("1h"), early=ps.every_interval("5s")).count("n").sink("out", ps.console())
    driver: Driver = flow_driver(flow)
    driver.push("clicks", ("a", at(1), 1))
    assert driver.barrier()["out"] == []
    driver.clock.advance(6)
    assert driver.barrier()["out"] == [("a", at(0), at(3600), 1)]
    driver.push("clicks", ("a", at(2), 1))
    driver.clock.advance(1)
    assert len(driver.barrier()["out"]) == 1
    driver.clock.advance(5)
    assert driver.barrier()["out"][1:] == [("a", at(0), at(3600), 2)]


def test_windows_by_the_clock_end_by_the_clock(flow_driver: Any) -> None:
    flow = ps.Flow("clock-end")
    source = flow.source("clicks", ps.items([], "user string, n int"))
    source.key_by("user").window(ps.tumbling("10s"), clock="processing").sum("n", "n").sink("out", ps.console())
    driver: Driver = flow_driver(flow)
    begin = driver.clock.time + 10 - driver.clock.time % 10
    driver.clock.advance(begin - driver.clock.time)
    driver.push("clicks", ("a", 1))
    driver.clock.advance(4)
    driver.push("clicks", ("a", 2))
    assert driver.barrier()["out"] == []
    driver.clock.advance(7)
    driver.push("clicks", ("a", 4))
    [row] = driver.barrier()["out"]
    assert (row.n, row.window_start.timestamp()) == (3, begin)


def test_a_window_closes_on_quiet_input_by_the_idle_clock(flow_driver: Any) -> None:
    flow, stream = clicks("quiet", idle="30s")
    stream.key_by("user").window(ps.tumbling("10s")).count("n").sink("out", ps.console())
    driver: Driver = flow_driver(flow)
    driver.push("clicks", ("a", at(1), 1))
    assert driver.barrier()["out"] == []
    driver.clock.advance(29)
    assert driver.barrier()["out"] == []
    driver.clock.advance(2)
    assert driver.barrier()["out"] == [("a", at(0), at(10), 1)]


def test_late_records_of_windows_in_a_time_zone_with_allowed_lateness(same: Case) -> None:
    """Before the first record there is no time from which the allowed lateness could be taken off."""
    if same.runtime == "bounded":
        pytest.skip("nothing is late in a bounded run")
    flow, stream = clicks("zone")
    windows = stream.key_by("user").window(ps.tumbling("10s", timezone="Europe/Berlin"), lateness="5s").count("n")
    windows.sink("out", ps.console())
    windows.side("late").sink("late", ps.console())
    results = run(same, flow, LATE)
    assert [row[0:2] for row in plain(results["late"])] == [("a", at(7))]
    assert sum(row[-1] for row in results["out"]) == 4


def test_late_records_that_nobody_reads_are_counted(flow_driver: Any) -> None:
    flow, stream = clicks("counted")
    stream.key_by("user").window(ps.tumbling("10s")).count("w").sink("out", ps.console())
    driver: Driver = flow_driver(flow)
    for record in LATE:
        driver.barrier() if record is BARRIER else driver.push("clicks", record)
    driver.barrier()
    kernel = next(k for k in driver.run.pipeline.kernels if k.node.name == "w")
    assert kernel.counters.late == 1


@pytest.mark.parametrize("field", ["number", "text"])
@pytest.mark.live("number")
def test_each_of_many_partitions_has_a_time_of_its_own(same: Case, field: str) -> None:
    """200 of them, null among them: slow ones are not late because of fast ones, whatever their numbers and names."""
    flow = ps.Flow("partitions")
    rows = flow.source("rows", ps.items([], "number int, text string, ts timestamp"))
    timed = rows.event_time("timed", "ts", lateness="0s", idle=None, partition=field)
    timed.key_by("number").window(ps.tumbling("10s")).count("n").sink("out", ps.console())
    names = [(None, None), *((n, f"name {n}") for n in range(1, 200))]
    first = [(number, text, at(10 * n)) for n, (number, text) in enumerate(names)]
    second = [(number, text, at(10 * n + 1)) for n, (number, text) in enumerate(names)]
    expected = [(number, at(10 * n), at(10 * n + 10), 2) for n, (number, _) in enumerate(names)]
    same.check(flow, {"rows": [*first, *second]}, {"out": expected}, cuts={"rows": [200, 201]})
