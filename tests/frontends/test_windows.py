"""Windows as they are written: what is refused, and what the error says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.errors import ExpressionError, FlowError, SchemaError, UnknownName
from penstock.graph.nodes import TimeField

SCHEMA = "user string, ts timestamp, n int"


def timed() -> ps.Stream:
    return ps.Flow("w").source("s", ps.items([], SCHEMA), event_time="ts")


def untimed() -> ps.Stream:
    return ps.Flow("w").source("s", ps.items([], SCHEMA))


def test_a_result_has_keys_bounds_and_aggregates_and_an_event_time() -> None:
    made = timed().key_by("user").window(ps.tumbling("10s")).aggregate("w", n="count(*)", top="max(n)")
    assert str(made.schema) == "user string, window_start timestamp, window_end timestamp, n bigint, top int"
    assert made.event_time_of == TimeField("window_end", -1)
    assert made.updates is None


@pytest.mark.parametrize(
    "how", [{"lateness": "1s"}, {"early": ps.every_records(2)}, {"mode": "update"}, {"mode": "complete"}]
)
def test_windows_that_are_given_more_than_once_are_updates(how: dict[str, Any]) -> None:
    made = timed().key_by("user").window(ps.tumbling("10s"), **how).count("n")
    assert made.updates == ("user", "window_start", "window_end")
    assert made.where("big", "n > 1").updates == made.updates
    assert made.key_by("user").sort("order").changes is None


@pytest.mark.parametrize(
    "message, make",
    [
        ("goes by the order in which records come", lambda s: s.window(ps.count_window(2))),
        ("nobody knows that when it goes", lambda s: s.window(ps.tumbling("1s"), clock="processing")),
        ("leave out early", lambda s: s.window(ps.tumbling("1s"), early=ps.every_records(2))),
        ("leave out accumulate", lambda s: s.window(ps.tumbling("1s"), mode="update", accumulate=False)),
    ],
)
def test_windows_that_cannot_take_a_row_back_are_refused_over_tables_with_the_reason(message: str, make: Any) -> None:
    table = timed().key_by("user").window(ps.tumbling("10s"), mode="update").count("n")
    with pytest.raises(FlowError, match=f"{message}.*changelog"):
        make(table.key_by("user")).count("again")


def test_results_that_add_up_are_records() -> None:
    made = timed().key_by("user").window(ps.tumbling("10s"), early=ps.every_records(2), accumulate=False).count("n")
    assert made.updates is None


def test_windows_over_time_need_an_event_time() -> None:
    with pytest.raises(FlowError, match=r"step 'n' .*event_time='a timestamp field'.*clock='processing'"):
        untimed().key_by("user").window(ps.tumbling("10s")).count("n")


def test_an_event_time_that_was_left_out_is_none() -> None:
    moved = timed().select("less", "user", "n")
    with pytest.raises(FlowError, match="less does not say"):
        moved.key_by("user").window(ps.tumbling("10s")).count("n")


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: ps.tumbling("0s"), "above zero"),
        (lambda: ps.tumbling("ten"), "expected a span of time such as"),
        (lambda: ps.sliding("10s", every="20s"), "leave gaps"),
        (lambda: ps.sliding("1d", every="1.001s"), "too many pieces"),
        (lambda: ps.tumbling("1d", timezone="Europe/Berln"), "Europe/Berlin"),
        (lambda: ps.count_window(0), "number of records"),
        (lambda: ps.count_window(5, every=6), "leave records out"),
        (lambda: ps.session("0s"), "above zero"),
        (lambda: ps.every_records(0), "each so many records"),
        (lambda: ps.every_interval("0s"), "above zero"),
    ],
)
def test_windows_that_cannot_be(make: Callable[[], Any], says: str) -> None:
    with pytest.raises(FlowError, match=says):
        make()


@pytest.mark.parametrize(
    ("spec", "how", "says"),
    [
        ("10s", {}, r"ps.tumbling\('10s'\)"),
        (ps.tumbling("10s"), {"mode": "updat"}, "update"),
        (ps.tumbling("10s"), {"clock": "wall"}, "'event' or 'processing'"),
        (ps.tumbling("10s"), {"early": "5s"}, r"ps.every_interval\('5s'\)"),
        (ps.tumbling("10s"), {"early": ps.every_records(1), "mode": "update"}, "leave out early"),
        (ps.tumbling("10s"), {"mode": "complete", "accumulate": False}, "complete results"),
        (ps.tumbling("10s"), {"clock": "processing", "lateness": "1s"}, "nothing is late in processing time"),
        (ps.count_window(3), {"lateness": "1s"}, "when it is full"),
        (ps.global_window(), {}, "never ends"),
        (ps.global_window(), {"mode": "update", "lateness": "1s"}, "nothing is late"),
    ],
)
def test_settings_that_do_not_go_together(spec: Any, how: dict[str, Any], says: str) -> None:
    with pytest.raises(FlowError, match=says):
        timed().key_by("user").window(spec, **how)


def test_a_field_of_the_same_name_as_a_bound_is_refused() -> None:
    stream = ps.Flow("w").source("s", ps.items([], "window_end string, ts timestamp"), event_time="ts")
    with pytest.raises(SchemaError, match="window_end"):
        stream.key_by("window_end").window(ps.tumbling("10s")).count("n")


def test_the_gap_of_a_session_is_a_number() -> None:
    with pytest.raises(SchemaError, match="number of seconds; user is string"):
        timed().key_by("user").window(ps.session(ps.col("user"))).count("n")


def test_windows_by_count_and_by_the_clock_have_no_late_records() -> None:
    counted = untimed().key_by("user").window(ps.count_window(3)).count("n")
    with pytest.raises(UnknownName, match="late"):
        counted.side("late")


def test_an_aggregate_of_a_field_that_is_not_there() -> None:
    with pytest.raises(ExpressionError, match="step 'w'"):
        timed().key_by("user").window(ps.tumbling("10s")).aggregate("w", a="sum(m)")


def test_a_stream_by_window_says_what_it_has() -> None:
    with pytest.raises(AttributeError, match="aggregate, count, reduce, sum and top"):
        timed().key_by("user").window(ps.tumbling("10s")).map("x")
