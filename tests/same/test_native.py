"""select, with_columns, where, explode, union, branch, repartition."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case

ORDERS = [("ada", 3, 2.5), ("bob", None, 1.0), (None, 7, None), ("ada", 10, 4.0)]
SCHEMA = "user string, n int, price double"


def orders(name: str) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("orders", ps.items([], SCHEMA))


def test_select_makes_new_records(same: Case) -> None:
    flow, stream = orders("select")
    stream.select(
        "pick", "upper(user) as who", total="n * price", kind="case when n > 5 then 'big' else 'small' end"
    ).sink("out", ps.console())
    expected = [("ADA", 7.5, "small"), ("BOB", None, "small"), (None, None, "big"), ("ADA", 40.0, "big")]
    same.check(flow, {"orders": ORDERS}, {"out": expected})


def test_with_columns_adds_and_replaces(same: Case) -> None:
    flow, stream = orders("with")
    stream.with_columns("more", n="coalesce(n, 0) + 1", twice=ps.col("price") * 2).sink("out", ps.console())
    expected = [("ada", 4, 2.5, 5.0), ("bob", 1, 1.0, 2.0), (None, 8, None, None), ("ada", 11, 4.0, 8.0)]
    same.check(flow, {"orders": ORDERS}, {"out": expected})


@pytest.mark.live
def test_conditions_that_are_never_true_before_and_after_steps_that_keep_state(same: Case) -> None:
    """Spark leaves out what no answer needs, and with it what it notes of times; what steps keep is complete all the same."""
    flow = ps.Flow("never")
    stream = flow.source("orders", ps.items([], "user string, at string"), event_time="at")
    stream.where("never", "1 = 0").key_by("user").count("n").sink("before", ps.console())
    made = stream.key_by("user").count("m").with_columns("same", user="'a'")
    made.as_records("each").where("neither", "upper(user) = user").sink("after", ps.console())
    given = [("ada", "2026-01-01 10:00:01"), ("bob", "2026-01-01 10:00:02"), ("ada", "2026-01-01 10:00:03")]
    same.check(flow, {"orders": given}, {"before": [], "after": []})


def test_where_drops_false_and_null(same: Case) -> None:
    flow, stream = orders("where")
    stream.where("some", "n > 2 and price is not null").sink("out", ps.console())
    same.check(flow, {"orders": ORDERS}, {"out": [ORDERS[0], ORDERS[3]]})


@pytest.mark.live
def test_native_steps_between_python_steps_mean_the_same(same: Case) -> None:
    flow, stream = orders("between")
    more = stream.map("before", lambda r: (r.user, r.n, r.price), schema=SCHEMA)
    kept = more.where("some", "n * 2 > 6 or user is null").with_columns("less", n="n - 1")
    kept.select("pick", "user", "price", "n").map(
        "after", lambda r: f"{r.user} {r.n} {r.price}", schema="text string"
    ).sink("out", ps.console())
    rows = [*ORDERS * 20, (None, None, 1.5)]
    same.check(flow, {"orders": rows}, {"out": [*["None 6 None", "ada 9 4.0"] * 20, "None None 1.5"]})


@pytest.mark.live
def test_explode_gives_a_record_per_item(same: Case) -> None:
    flow = ps.Flow("explode")
    lines = flow.source("lines", ps.items([], "value string, k int"))
    lines.explode("split", "word", "split(value, ' ')").sink("out", ps.console())
    expected = [("a b", 1, "a"), ("a b", 1, "b"), ("c", 2, "c")]
    same.check(flow, {"lines": [("a b", 1), ("c", 2), (None, 3)]}, {"out": expected})


@pytest.mark.live
def test_union_of_two_sources(same: Case) -> None:
    flow = ps.Flow("union")
    one, two = flow.source("one", ps.items([], "n bigint")), flow.source("two", ps.items([], "n bigint"))
    one.union("both", two.map("ten", lambda r: r.n * 10)).sink("out", ps.console())
    same.check(flow, {"one": [1, 2, 3], "two": [4, 5]}, {"out": [1, 2, 3, 40, 50]})


def test_branch_by_expressions(same: Case) -> None:
    flow, stream = orders("branch")
    parts = stream.branch("size", big="n > 5", mine="user = 'ada'")
    parts.big.sink("big", ps.console())
    parts["mine"].sink("mine", ps.console())
    parts.otherwise.sink("rest", ps.console())
    same.check(flow, {"orders": ORDERS}, {"big": [ORDERS[2], ORDERS[3]], "mine": [ORDERS[0]], "rest": [ORDERS[1]]})


def test_branch_by_functions(same: Case) -> None:
    flow, stream = orders("branch-py")
    parts = stream.branch("size", big=lambda r: (r.n or 0) > 5, mine="user = 'ada'")
    parts.big.map("n", lambda r: r.n, "n int").sink("big", ps.console())
    parts.mine.sink("mine", ps.console())
    same.check(flow, {"orders": ORDERS}, {"big": [7, 10], "mine": [ORDERS[0]]})


def test_repartition_changes_nothing_but_the_place(same: Case) -> None:
    flow, stream = orders("repartition")
    stream.repartition("spread", 4).map("id", lambda r: r).repartition("meet", 2, "user").sink("out", ps.console())
    same.check(flow, {"orders": ORDERS}, {"out": ORDERS})


@pytest.mark.live
def test_one_read_feeds_branches_and_sinks(same: Case) -> None:
    flow, stream = orders("fan")
    stream.sink("raw", ps.console())
    stream.where("known", "n is not null").sink("some", ps.console())
    names = stream.map("named", lambda r: r.user or "?", "name string")
    names.sink("names", ps.console())
    names.key_by("name").count("n").sink("counts", ps.console())
    expected: dict[str, list[Any]] = {
        "raw": ORDERS,
        "some": [o for o in ORDERS if o[1] is not None],
        "names": ["ada", "bob", "?", "ada"],
        "counts": [("ada", 2), ("bob", 1), ("?", 1)],
    }
    same.check(flow, {"orders": ORDERS}, expected)


def test_a_union_of_branches_in_one_python_pass(same: Case) -> None:
    flow, stream = orders("rejoin")
    parts = stream.branch("size", big=lambda r: (r.n or 0) > 5)
    big = parts.big.map("double", lambda r: (r.user, r.n * 2, r.price))
    big.union("again", parts.otherwise).map("name", lambda r: (r.user or "?", r.n), "user string, n int").sink(
        "out", ps.console()
    )
    same.check(flow, {"orders": ORDERS}, {"out": [("ada", 3), ("bob", None), ("?", 14), ("ada", 20)]})
