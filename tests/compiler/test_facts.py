"""What a step says of itself before it runs: what it keeps and how that grows, what makes an answer approximate."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import penstock as ps
from penstock.compiler.describe import describe
from penstock.frontends.streams.stream import Stream
from penstock.graph.picture.text import as_text

ROWS = "user string, day int, price double, ts timestamp"
Made = Callable[[Stream, Stream], Stream]


def stream(flow: ps.Flow, name: str = "rows") -> Stream:
    return flow.source(name, ps.items([], ROWS), event_time="ts", lateness="1m")


def facts(make: Made) -> dict[str, object]:
    """What the step `made` says of itself."""
    flow = ps.Flow("facts")
    make(stream(flow), stream(flow, "others")).sink("out", ps.console())
    return next(s for s in describe(flow.graph)["steps"] if s["name"] == "made")


KEPT: dict[str, tuple[Made, str]] = {
    "totals": (lambda s, _: s.key_by("user").aggregate("made", n="count(*)"), "one row per user, for ever"),
    "sets": (
        lambda s, _: s.key_by("user").aggregate("made", n="count(distinct day)"),
        "one row, and in it all values for n, per user, for ever",
    ),
    "reduce": (lambda s, _: s.key_by("user", "day").reduce("made", max), "one row per user, day, for ever"),
    "top": (lambda s, _: s.key_by("user").top("made", 3, by="price desc"), "3 rows per user, for ever"),
    "distinct": (lambda s, _: s.key_by("user").distinct("made"), "one time per user, for ever"),
    "distinct within": (
        lambda s, _: s.key_by("user").distinct("made", within="10m"),
        "the records that event time has not passed, and one time per user, until event time is 10m past it",
    ),
    "windows": (
        lambda s, _: s.key_by("user").window(ps.tumbling("1h")).aggregate("made", n="count(*)"),
        "one row per user and window, until the watermark passes window_end",
    ),
    "late windows": (
        lambda s, _: s.key_by("user").window(ps.tumbling("1h"), lateness="5m").aggregate("made", n="count(*)"),
        "one row per user and window, until the watermark passes window_end + 5m",
    ),
    "processing time": (
        lambda s, _: s.key_by("user").window(ps.tumbling("1h"), clock="processing").aggregate("made", n="count(*)"),
        "one row per user and window, until processing time passes window_end",
    ),
}


@pytest.mark.parametrize("case", KEPT)
def test_a_step_says_what_it_keeps_and_for_how_long(case: str) -> None:
    make, expected = KEPT[case]
    found = facts(make)
    assert found["keeps"] == expected
    assert found["kept_for_ever"] == expected.endswith("for ever")


def test_a_bounded_run_keeps_nothing() -> None:
    flow = ps.Flow("facts")
    stream(flow).key_by("user").count("made").sink("out", ps.console())
    assert {s["keeps"] for s in describe(flow.graph, live=False)["steps"]} == {""}


def test_a_sketch_and_a_time_to_live_make_an_answer_approximate() -> None:
    sketch = facts(lambda s, _: s.key_by("user").aggregate("made", n="approx_count_distinct(day)", m="max(day)"))
    assert sketch["approximate"] == "a sketch: n=approx_count_distinct(day)"
    joined = facts(lambda s, o: s.join("made", o, on="user", prefix="o_", ttl="1h"))
    assert "1h" in str(joined["approximate"])
    assert not joined["kept_for_ever"]
    assert facts(lambda s, o: s.join("made", o, on="user", prefix="o_"))["kept_for_ever"]


def test_functions_that_may_vary_are_named() -> None:
    assert facts(lambda s, _: s.with_columns("made", x=ps.sql("rand()", "double")))["varying"] == ["rand()"]
    assert facts(lambda s, _: s.with_columns("made", x="upper(user)"))["varying"] == []


def test_the_text_marks_each_stream_where_modes_are_asked_for() -> None:
    flow = ps.Flow("facts")
    stream(flow).key_by("user").count("made").sink("out", ps.console())
    text = as_text(describe(flow.graph), modes=True)
    assert "[append-only]" in text
    assert "[updates by user]" in text
    assert "keeps one row per user, for ever" in text
    assert "[append-only]" not in as_text(describe(flow.graph))
