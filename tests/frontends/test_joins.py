"""Joins as they are written: what is refused, and what a join says of itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, NotYet, SchemaError
from penstock.graph.logic.broadcast import BroadcastProcess
from penstock.graph.nodes import TimeField


@pytest.fixture
def flow() -> ps.Flow:
    return ps.Flow("joins")


def timed(flow: ps.Flow, name: str, schema: str = "k bigint, {0} bigint, ts{0} timestamp") -> Any:
    return flow.source(name, ps.items([], schema.format(name)), event_time=f"ts{name}")


class Keep(BroadcastProcess):
    def on_event(self, row: Any, rules: Any) -> list[Any]:
        return []


REFUSED: list[tuple[str, Callable[[Any, Any, ps.Flow], Any]]] = [
    (
        "how is one of inner, left, right, full, semi, anti, got 'outer'",
        lambda a, b, f: a.join("j", b, "k", how="outer"),
    ),
    ("into is for joins", lambda a, b, f: a.join("j", b, "k", into="later")),
    (
        "how is one of inner, left, right, full, got 'outer'",
        lambda a, b, f: a.join("j", b, "k", within=1, how="outer"),
    ),
    ("within begins before it ends", lambda a, b, f: a.join("j", b, "k", within=("10s", "5s"))),
    ("within is two spans", lambda a, b, f: a.join("j", b, "k", within=("10s",))),
    ("no field 'user'", lambda a, b, f: a.join("j", b, "user", within=1)),
    (
        "'k' is bigint on the left and 'tsb' is timestamp on the right",
        lambda a, b, f: a.join("j", b, {"k": "tsb"}, within=1),
    ),
    ("on is a field, a list of fields, or pairs", lambda a, b, f: a.join("j", b, [("k", "b", "c")], within=1)),
    ("refresh is for joins with a static table", lambda a, b, f: a.join("j", b, "k", within=1, refresh="5m")),
    ("'a' would appear twice in the result; give prefix='right_'", lambda a, b, f: a.join("j", a, "k", within=1)),
    ("'b' would appear twice", lambda a, b, f: a.join("j", b, "k", within=1, into="b")),
    ("needs a tolerance", lambda a, b, f: a.asof_join("j", b, "k", direction="nearest")),
    ("direction is one of backward", lambda a, b, f: a.asof_join("j", b, "k", direction="up")),
    ("how is one of left, inner", lambda a, b, f: a.asof_join("j", b, "k", how="full")),
    ("below zero", lambda a, b, f: a.asof_join("j", b, "k", tolerance=-1)),
    ("the windows of a join are", lambda a, b, f: a.window_join("j", b, "k", "10s")),
    ("within is for joins of two streams", lambda a, b, f: a.join("j", ps.items([], "k bigint"), "k", within=1)),
    ("watches files of this machine", lambda a, b, f: a.join("j", ps.items([], "k bigint"), "k", refresh="changed")),
    ("a join is with a stream, or with a static table", lambda a, b, f: a.join("j", [1], "k", within=1)),
    ("a stream of another flow", lambda a, b, f: a.join("j", timed(ps.Flow("x"), "c"), "k", within=1)),
    (
        "both streams of a join need event time; n on the right has none",
        lambda a, b, f: a.join("j", b.key_by("k").count("n"), "k", within=1),
    ),
    ("ttl is for joins without within", lambda a, b, f: a.join("j", b, "k", within=1, ttl="1h", prefix="b_")),
    ("ttl is for how long rows are kept", lambda a, b, f: a.join("j", b, "k", ttl=0, prefix="b_")),
    (
        "condition is for joins of two streams",
        lambda a, b, f: a.join("j", ps.items([], "k bigint"), "k", condition="k > 1"),
    ),
    ("needs a boolean", lambda a, b, f: a.join("j", b, "k", condition="k + 1", prefix="b_")),
    ("runs in Python", lambda a, b, f: a.join("j", b, "k", condition=ps.sql("k > 1", "boolean", "k"), prefix="b_")),
    ("must define on_event", lambda a, b, f: a.with_broadcast("j", b, BroadcastProcess, "n bigint", key="k")),
    ("needs a penstock.BroadcastProcess", lambda a, b, f: a.with_broadcast("j", b, int, "n bigint", key="k")),
    ("must say what it emits", lambda a, b, f: a.with_broadcast("j", b, Keep, key="k")),
]


@pytest.mark.parametrize(("message", "make"), REFUSED, ids=[message for message, _ in REFUSED])
def test_what_cannot_be_joined_is_refused_with_step_and_reason(
    flow: ps.Flow, message: str, make: Callable[[Any, Any, ps.Flow], Any]
) -> None:
    with pytest.raises((FlowError, NotYet)) as caught:
        make(timed(flow, "a"), timed(flow, "b"), flow)
    assert message in str(caught.value)
    assert "step 'j'" in str(caught.value)
    assert "test_joins.py" in str(caught.value)


def test_a_stream_without_event_time_is_refused_with_the_fix(flow: ps.Flow) -> None:
    plain = flow.source("plain", ps.items([], "k bigint, n bigint"))
    with pytest.raises(FlowError, match=r"plain on the right has none.*\.event_time\('plain\.time'"):
        timed(flow, "a").join("j", plain, "k", within="1s")


def test_floats_and_lists_are_no_keys(flow: ps.Flow) -> None:
    schema = "k double, {0} bigint, ts{0} timestamp"
    with pytest.raises(SchemaError, match="a key is a plain value; 'k' is double"):
        timed(flow, "a", schema).join("j", timed(flow, "b", schema), "k", within="1s")


@pytest.mark.parametrize(
    ("options", "column", "hold"),
    [
        ({"how": "inner"}, "tsa", 10),
        ({"how": "left"}, "tsa", 10),
        ({"how": "right"}, "tsb", 5),
        ({"how": "full"}, None, 10),
        ({"how": "inner", "into": "at"}, "at", 0),
        ({"how": "left", "into": "at"}, "at", 10),
        ({"how": "right", "into": "at"}, "at", 5),
        ({"how": "full", "into": "at"}, "at", 10),
    ],
)
def test_the_event_time_of_a_join_and_how_far_it_holds_back(
    flow: ps.Flow, options: dict[str, Any], column: str | None, hold: int
) -> None:
    made = timed(flow, "a").join("j", timed(flow, "b"), "k", within=("-5s", "10s"), **options)
    assert made.event_time_of == (None if column is None else TimeField(column))
    assert flow.graph.node("j").hold == hold * 1_000_000


def test_the_time_of_a_right_join_keeps_its_prefix(flow: ps.Flow) -> None:
    made = timed(flow, "a").join("j", timed(flow, "b"), "k", within="1s", how="right", prefix="other_")
    assert made.event_time_of == TimeField("other_tsb")


def test_joins_describe_themselves(flow: ps.Flow) -> None:
    one, two = timed(flow, "a"), timed(flow, "b")
    one.join("near", two, {"k": "b"}, within=("-5s", "1m"), how="left", prefix="b_")
    one.asof_join("asof", two, "k", tolerance="10s")
    one.window_join("win", two, "k", ps.sliding("1m", every="10s"))
    one.join("table", ps.items([], "k bigint, city string"), "k", refresh="5m")
    reported = {n.name: n.settings() for n in flow.graph.nodes}
    assert reported["near"] == {"on": "k = b", "how": "left", "within": "-5s to 1m"}
    assert reported["asof"] == {"on": "k", "how": "left", "direction": "backward", "tolerance": "10s"}
    assert reported["win"]["window"] == "1m every 10s"
    assert reported["table"]["refresh"] == "every 5m"
