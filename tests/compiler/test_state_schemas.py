"""The schema of what a step keeps: the same for the same flow, with reasons when what was kept could not be read."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock import trident
from penstock.compiler.compile import compile_graph
from penstock.compiler.state_schemas import schemas_of
from penstock.graph.state.schema import StateSchema, schemas_from_json, schemas_to_json

Made = Callable[[ps.Stream, ps.Stream], ps.Stream]
LEFT, RIGHT = "k string, n int, ts timestamp", "o string, m int, at timestamp"


def shapes(make: Made, left: str = LEFT, right: str = RIGHT) -> dict[str, StateSchema]:
    """The schema of every store of a flow with one step."""
    flow = ps.Flow("f")
    one = flow.source("one", ps.items([], left), event_time="ts")
    two = flow.source("two", ps.items([], right), event_time="at")
    make(one, two).sink("out", ps.console())
    return schemas_of(compile_graph(flow.graph, live=True).graph)


def misfits(kept: dict[str, StateSchema], wanted: dict[str, StateSchema]) -> list[str]:
    """The stores that a changed flow cannot go on with."""
    return [store for store in kept if store not in wanted or wanted[store].compatible_with(kept[store])]


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
    assert misfits(shapes(make), shapes(make)) == []
    assert schemas_from_json(json.loads(json.dumps(schemas_to_json(shapes(make))))) == shapes(make)


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


class Totals(ps.Process):
    n = ps.value(int, 0)

    def on_event(self, row: Any) -> Any:
        yield row.k, self.n


class More(Totals):
    seen = ps.list_of(str)


class Other(Totals):
    n = ps.value(str, "")


class Biggest(ps.Aggregator):
    schema = "bigint"

    def init(self) -> int:
        return 0

    def add(self, so_far: int, row: Any) -> int:
        return max(so_far, int(row.n))

    def merge(self, one: int, other: int) -> int:
        return max(one, other)


def aggregate(**aggregates: Any) -> Made:
    return lambda one, _: one.key_by("k").aggregate("s", **aggregates)


def process(logic: Any) -> Made:
    return lambda one, _: one.key_by("k").process("s", logic, "k string, n bigint")


def fold(schema: str) -> Made:
    return lambda one, _: one.key_by("k").fold("s", 0, first, schema)


def reduce(one: ps.Stream, _: ps.Stream) -> ps.Stream:
    return one.key_by("k").reduce("s", first)


def window(spec: Any, of: str = "sum(n)", **more: Any) -> Made:
    return lambda one, _: one.key_by("k").window(spec, **more).aggregate("s", total=of)


def match(condition: str = "n > 1", within: str = "10m", select: str = "a.n") -> Made:
    made = ps.pattern("p").begin("a", "n < 1").followed_by("b", condition).within(within)
    return lambda one, _: one.key_by("k").match("s", made, select={"x": select})


CHANGES: list[tuple[Made, Made, str, str]] = [
    (match(), match("n > 2"), LEFT, "condition of b was n > 1, and is now n > 2"),
    (match(), match(within="5m"), LEFT, "within was 10m, and is now 5m"),
    (match(), match(select="a.ts"), LEFT, "n int was kept, and is gone"),
    (aggregate(a="count(*)"), aggregate(a="sum(n)"), LEFT, "a=count"),
    (aggregate(a="count(*)", b="sum(n)"), aggregate(a="count(*)"), LEFT, "b=sum.* was kept, and is gone"),
    (aggregate(a="count(*)"), aggregate(a="count(*)", b=Biggest()), LEFT, "nothing was kept for it"),
    (aggregate(a="count(*)"), process(Totals), LEFT, "was of the kind aggregate, and is now process"),
    (
        aggregate(a="count(*)"),
        aggregate(a="count(*)"),
        "k int, n int, ts timestamp",
        "key was k string, and is now k int",
    ),
    (process(Totals), process(Other), LEFT, "n int was kept, and is now n str"),
    (fold("n bigint"), fold("n string"), LEFT, "n bigint was kept, and is now n string"),
    (reduce, reduce, "k string, n bigint, ts timestamp", "n int was kept, and is now n bigint"),
    (window(ps.tumbling("10s")), window(ps.tumbling("20s")), LEFT, "windows was"),
    (window(ps.tumbling("10s")), window(ps.session("10s")), LEFT, "windows was"),
    (window(ps.tumbling("10s")), window(ps.tumbling("10s"), "avg(n)"), LEFT, "total=sum"),
    (window(ps.tumbling("10s")), window(ps.tumbling("10s"), lateness="5s"), LEFT, "kept rows, and now keeps values"),
]


@pytest.mark.parametrize("before, now, left, reason", CHANGES)
def test_a_changed_step_says_why_it_cannot_go_on(before: Made, now: Made, left: str, reason: str) -> None:
    kept, wanted = shapes(before)["s"], shapes(now, left)["s"]
    assert re.search(reason, "; ".join(wanted.compatible_with(kept)))


@pytest.mark.parametrize(
    "before, now",
    [
        (aggregate(a="count(*)"), aggregate(a="count(*)", b="sum(n)")),
        (process(Totals), process(More)),
        (process(More), process(Totals)),
        (window(ps.tumbling("10s"), lateness="5s"), window(ps.tumbling("10s"), lateness="50s")),
    ],
)
def test_a_change_that_is_safe_goes_on(before: Made, now: Made) -> None:
    assert misfits(shapes(before), shapes(now)) == []


class Words(ps.Bolt):
    outputs = "k string"

    def process(self, tup: Any) -> Any:
        yield tup.k


def bolt(tasks: int, grouping: str = "fields", *fields: str) -> StateSchema:
    """The schema of a bolt with so many tasks."""
    top = ps.Topology("t")
    top.spout("in", ps.items([], LEFT))
    getattr(top.bolt("s", Words, parallelism=tasks), grouping)(
        "in", *(fields or ("k",) if grouping == "fields" else fields)
    )
    top.sink("out", ps.console(), from_="s")
    return schemas_of(compile_graph(top.graph, live=True).graph)["s"]


@pytest.mark.parametrize("before, now", [(2, 4), (3, 2), (1, 2), (4, 3)])
def test_keys_of_a_bolt_do_not_lose_their_state_when_it_has_other_tasks(before: int, now: int) -> None:
    """A fields grouping sends keys to other tasks then, and not their state with them."""
    reasons = bolt(now).compatible_with(bolt(before))
    assert len(reasons) == 1
    assert re.search(f"it had {before} tasks, and has now {now}: fields.k. sends keys to other tasks", reasons[0])


def test_other_tasks_of_a_bolt_are_fine_where_no_key_loses_its_state() -> None:
    assert bolt(2).compatible_with(bolt(2)) == bolt(2).compatible_with(bolt(4)) == []
    assert bolt(4, "shuffle").compatible_with(bolt(2, "shuffle")) == []


def test_another_grouping_of_a_bolt_is_refused() -> None:
    assert bolt(2, "fields", "k", "n").compatible_with(bolt(2)) == [
        "its grouping of in was fields(k), and is now fields(k, n)"
    ]
    assert bolt(2).compatible_with(bolt(2, "shuffle")) == ["its grouping of in was shuffle, and is now fields(k)"]


class Longest(trident.CombinerAggregator):
    def init(self, tup: Any) -> Any:
        return tup[0]

    def combine(self, one: Any, other: Any) -> Any:
        return max(one, other)

    def zero(self) -> Any:
        return None


def trident_state(aggregator: Any, fields: str = "n", made: str = "m bigint", *group: str) -> StateSchema:
    """The schema of a state of Trident that Penstock keeps."""
    top = ps.TridentTopology("t")
    rows = top.new_stream("in", ps.items([], "k string, n bigint, o bigint"))
    (rows.group_by(*group) if group else rows).persistent_aggregate(None, fields, aggregator, made, name="s")
    return schemas_of(compile_graph(top.graph, live=True).graph)["s"]


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (trident_state(trident.Count), "value=.*:Sum.n. bigint was kept, and is now value=.*:Count.n. bigint"),
        (trident_state(Longest), "is now value=.*:Longest.n. bigint"),
        (trident_state(trident.Sum, "o"), "is now value=.*:Sum.o. bigint"),
        (trident_state(trident.Sum, "n", "m int"), "is now value=.*:Sum.n. int"),
        (trident_state(trident.Sum, "n", "m bigint", "k"), "key was .*, and is now k string"),
    ],
)
def test_another_aggregator_of_a_trident_state_does_not_go_on_with_its_values(now: StateSchema, reason: str) -> None:
    kept = trident_state(trident.Sum)
    assert kept.compatible_with(trident_state(trident.Sum, "n", "other bigint")) == []
    assert re.search(reason, "; ".join(now.compatible_with(kept)))


SESSIONS: list[dict[str, Any]] = [
    {"spec": ps.session("10s")},
    {"spec": ps.session("10s"), "lateness": "5s"},
    {"spec": ps.session(ps.col("n"))},
]


@pytest.mark.parametrize(
    ("windows", "live"),
    [({"spec": ps.tumbling("10s")}, True), *((windows, live) for windows in SESSIONS for live in (True, False))],
    ids=repr,
)
def test_reading_late_records_does_not_change_what_a_window_keeps(windows: dict[str, Any], *, live: bool) -> None:
    """Nor does the compiler: the step as it was written keeps the same. Bounded, windows of a fixed size keep nothing."""
    made = []
    for is_read in (False, True):
        flow = ps.Flow("f")
        source = flow.source("one", ps.items([], LEFT), event_time="ts")
        counted = source.key_by("k").window(**windows).count("s")
        counted.sink("out", ps.console())
        if is_read:
            counted.side("late").sink("late", ps.console())
        plan = compile_graph(flow.graph, live=live)
        assert plan.graph.node("s").stores == flow.graph.node("s").stores
        made.append(schemas_of(plan.graph))
    assert made[0] == made[1]
