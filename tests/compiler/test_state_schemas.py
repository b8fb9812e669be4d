"""What a step keeps, as a text: the same for the same flow, another one when what was kept could not be read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.compiler.shapes import shape_of_state
from penstock.graph.state.shapes import fits

Made = Callable[[ps.Stream, ps.Stream], ps.Stream]
LEFT, RIGHT = "k string, n int, ts timestamp", "o string, m int, at timestamp"


def shapes(make: Made, left: str = LEFT, right: str = RIGHT) -> dict[str, str]:
    """The text of every store of a flow with one step."""
    flow = ps.Flow("f")
    one = flow.source("one", ps.items([], left), event_time="ts")
    two = flow.source("two", ps.items([], right), event_time="at")
    make(one, two).sink("out", ps.console())
    graph = compile_graph(flow.graph, live=True).graph
    return {store: shape_of_state(n, graph, store) for n in graph.nodes for store in n.stores}


def misfits(kept: dict[str, str], wanted: dict[str, str]) -> list[str]:
    """The stores that a changed flow cannot go on with."""
    return [store for store in kept if store not in wanted or not fits(kept[store], wanted[store])]


def join(how: str = "inner", within: str = "10s") -> Made:
    return lambda one, two: one.join("s", two, {"k": "o"}, within=within, how=how)


def as_of(direction: str = "backward", tolerance: str | None = None) -> Made:
    return lambda one, two: one.asof_join("s", two, {"k": "o"}, direction=direction, tolerance=tolerance)


def in_windows(size: str = "10s") -> Made:
    return lambda one, two: one.window_join("s", two, {"k": "o"}, ps.tumbling(size))


def sort(by: str = "", within: str | None = None) -> Made:
    return lambda one, _: one.key_by("k").sort("s", by, within=within)


def top(n: int = 3, by: str = "n desc") -> Made:
    return lambda one, _: one.key_by("k").top("s", n, by)


def distinct(*, eager: bool = False) -> Made:
    return lambda one, _: one.key_by("k").distinct("s", within="1m", eager=eager)


def changelog(of: str = "sum(n)", **more: str) -> Made:
    return lambda one, _: one.key_by("k").aggregate("totals", total=of, **more).changelog("s")


def over_totals(of: str = "sum(total)", by: str = "total % 2", inner: str = "sum(n)", **more: str) -> Made:
    def make(one: ps.Stream, _: ps.Stream) -> ps.Stream:
        totals = one.key_by("k").aggregate("totals", total=inner, **more)
        return totals.key_by(kind=by).aggregate("s", all=of)

    return make


def first(row: Any, _: Any) -> Any:
    return row


def reduced(one: ps.Stream, _: ps.Stream) -> ps.Stream:
    return one.key_by("k").window(ps.tumbling("10s")).reduce("s", first)


EVERY = [
    *(join(), as_of(), as_of(tolerance="5s"), in_windows(), sort(), sort("n", "10s"), top(), distinct()),
    *(distinct(eager=True), changelog(), over_totals(), reduced),
]


@pytest.mark.parametrize("make", EVERY)
def test_an_unchanged_flow_goes_on(make: Made) -> None:
    assert shapes(make) == shapes(make)


@pytest.mark.parametrize("make", [sort(), sort("n", "10s"), top(), distinct(), reduced])
@pytest.mark.parametrize(
    "now", ["k string, n bigint, ts timestamp", f"{LEFT}, more int", "k string, ts timestamp, n int"]
)
def test_a_step_that_keeps_whole_records_needs_them_as_they_were(make: Made, now: str) -> None:
    assert misfits(shapes(make), shapes(make, now)) == ["s"]


@pytest.mark.parametrize("make", [join(), as_of(), in_windows()])
def test_each_side_of_a_join_has_a_form_of_its_own(make: Made) -> None:
    before = shapes(make)
    sides = {"s@left"}, set(before) - {"s@left"}
    assert set(misfits(before, shapes(make, left="k string, n bigint, ts timestamp"))) == sides[0]
    assert set(misfits(before, shapes(make, right="o string, m bigint, at timestamp"))) == sides[1]


@pytest.mark.parametrize(
    "before, now",
    [
        (join(), join(within="1h")),
        (join(), join(how="left")),
        (as_of(tolerance="5s"), as_of("nearest", "5s")),
        (as_of(tolerance="5s"), as_of(tolerance="6s")),
        (in_windows(), in_windows("20s")),
        (sort(), sort("n", "10s")),
        (top(), top(by="n")),
        (top(), top(4)),
        (distinct(), distinct(eager=True)),
        (changelog(), changelog("avg(n)")),
        (over_totals(), over_totals("count_if(total > 3)")),
        (over_totals(), over_totals(by="total % 3")),
        (over_totals(), over_totals(inner="avg(n)", by="cast(total as bigint) % 2")),
    ],
)
def test_what_decides_over_that_which_is_kept_may_not_change(before: Made, now: Made) -> None:
    kept, wanted = shapes(before), shapes(now)
    mine = {store for store in kept if store.startswith("s")}
    assert set(misfits(kept, wanted)) - {"totals"} == mine, "all of a step is given up, or none"


@pytest.mark.parametrize("make", [changelog, over_totals])
def test_the_rows_of_a_table_may_gain_fields(make: Callable[..., Made]) -> None:
    assert misfits(shapes(make()), shapes(make(many="count(*)"))) == []
    assert misfits(shapes(make(many="count(*)")), shapes(make())) != []


def test_the_order_in_which_a_sort_gives_may_change() -> None:
    assert misfits(shapes(sort()), shapes(sort("n desc"))) == []


def test_what_an_earlier_build_kept_with_a_shorter_text_is_taken() -> None:
    for make in (sort(), top(), changelog(), over_totals(), in_windows()):
        kept = {store: text.partition(": ")[0] for store, text in shapes(make).items() if store.startswith("s")}
        assert misfits(kept, shapes(make)) == []


def test_what_a_bolt_keeps_is_its_own_affair_whatever_an_earlier_build_said_of_it() -> None:
    assert fits("bolt by : word string", "bolt")
    assert not fits("sort by k int", "bolt")
