"""Tables that change, and every step over them: on all runtimes, and live at random cuts, the answer is that of the whole input."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case

BIDS = [
    ("a", 10, 1.5), ("b", 5, 0.5), ("a", 30, 2.5), ("c", 7, None), ("b", 30, 0.25), ("a", 2, 1.0), ("d", 1, 9.0), ("c", 1, 3.0),
    ("e", 4, 1.0), ("e", 5, 2.0), ("a", 1, 0.0), ("b", 3, 4.0),
]  # fmt: skip
"""By auction: a 4 bids of 43, b 3 of 38, c 2 of 8, d 1 of 1, e 2 of 9."""
TOTALS = {"a": (4, 43), "b": (3, 38), "c": (2, 8), "d": (1, 1), "e": (2, 9)}


def bids(name: str) -> tuple[ps.Flow, ps.Stream, ps.Stream]:
    """A flow, its bids, and the running totals by auction."""
    flow = ps.Flow(name)
    stream = flow.source("bids", ps.items([], "auction string, price int, weight double"))
    return flow, stream, stream.key_by("auction").aggregate("totals", n="count(*)", total="sum(price)")


@pytest.mark.live
def test_where_a_second_aggregate_and_a_sink(same: Case) -> None:
    flow, _, totals = bids("vertical")
    some = totals.where("some", "n >= 2")
    some.sink("some-out", ps.console())
    some.key_by("n").aggregate("by-n", many="count(*)", total="sum(total)", top="max(total)", least="min(total)").sink(
        "out", ps.console()
    )
    same.check(
        flow,
        {"bids": BIDS},
        {
            "some-out": [("a", 4, 43), ("b", 3, 38), ("c", 2, 8), ("e", 2, 9)],
            "out": [(4, 1, 43, 43, 43), (3, 1, 38, 38, 38), (2, 2, 17, 9, 8)],
        },
    )


def test_every_aggregate_over_running_totals(same: Case) -> None:
    flow, _, totals = bids("aggregates")
    made = totals.key_by(few="n <= 2").aggregate(
        "all",
        many="count(total)",
        large="count_if(total > 8)",
        mean="avg(total)",
        names="collect_set(auction)",
        totals="collect_list(total)",
        best="max_by(auction, total)",
        two="top(2, total)",
        middle="percentile(total, 0.5)",
        kinds="count(distinct n)",
        spread="var_pop(n)",
        each="bool_and(total > 5)",
    )
    made.sink("out", ps.console())
    same.check(
        flow,
        {"bids": BIDS},
        {
            "out": [
                (False, 2, 2, 40.5, ["a", "b"], [38, 43], "a", [43, 38], 40.5, 2, 0.25, True),
                (True, 3, 1, 6.0, ["c", "d", "e"], [1, 8, 9], "e", [9, 8], 8.0, 2, 0.2222222222222222, False),
            ]
        },
    )


def test_an_aggregate_of_the_users_own_over_running_totals(same: Case) -> None:
    flow, _, totals = bids("own")
    totals.key_by(few="n <= 2").aggregate("longest", names=Names).sink("out", ps.console())
    same.check(flow, {"bids": BIDS}, {"out": [(False, "a4 b3"), (True, "c2 d1 e2")]})


class Names(ps.Aggregator):
    """The names in order, each with its count."""

    schema = "string"

    def init(self) -> str:
        return ""

    def add(self, so_far: str, row: Any) -> str:
        return " ".join(sorted([*so_far.split(), f"{row.auction}{row.n}"]))

    def merge(self, one: str, other: str) -> str:
        return " ".join(sorted([*one.split(), *other.split()]))


def test_steps_that_look_at_one_row(same: Case) -> None:
    flow, _, totals = bids("rows")
    totals.rename("renamed", total="sum").sink("renamed-out", ps.console())
    totals.select("fewer", "n").sink("fewer-out", ps.console())
    totals.with_columns("more", half="total / 2").where("even", "n % 2 = 0").sink("even-out", ps.console())
    totals.map("doubled", double).filter("large", is_large).sink("large-out", ps.console())
    totals.flat_map("copies", copies, schema="auction string, copy bigint").sink("copies-out", ps.console())
    parts = totals.branch("parts", small="total < 9", odd=is_odd)
    parts.small.sink("small-out", ps.console())
    parts.odd.sink("odd-out", ps.console())
    parts.otherwise.sink("rest-out", ps.console())
    same.check(
        flow,
        {"bids": BIDS},
        {
            "renamed-out": [(k, *v) for k, v in TOTALS.items()],
            "fewer-out": [(4,), (3,), (2,), (1,), (2,)],
            "even-out": [("a", 4, 43, 21.5), ("c", 2, 8, 4.0), ("e", 2, 9, 4.5)],
            "large-out": [("a", 4, 86), ("b", 3, 76)],
            "copies-out": [("b", 0), ("b", 1), ("b", 2), ("d", 0)],
            "small-out": [("c", 2, 8), ("d", 1, 1)],
            "odd-out": [("a", 4, 43), ("e", 2, 9)],
            "rest-out": [("b", 3, 38)],
        },
    )


def double(row: Any) -> Any:
    return row.auction, row.n, row.total * 2


def is_large(row: Any) -> bool:
    return bool(row.total > 20)


def is_odd(row: Any) -> bool:
    return bool(row.total % 2)


def copies(row: Any) -> Any:
    return [(row.auction, at) for at in range(row.n)] if row.n % 2 else []


def test_union_explode_and_a_static_table(same: Case) -> None:
    flow, stream, totals = bids("linear")
    plain = stream.select("plain", "auction", total="cast(price as bigint)")
    totals.select("both", "auction", "total").union("all", plain).key_by("auction").aggregate(
        "sums", n="count(*)", top="max(total)"
    ).sink("union-out", ps.console())
    totals.explode("items", "item", "array(n, total)").aggregate("many", n="count(*)", s="sum(item)").sink(
        "explode-out", ps.console()
    )
    names = ps.items([("a", "Ada"), ("b", "Bob")], "auction string, name string")
    totals.join("named", names, on="auction", how="left").where("known", "name is not null or n > 1").sink(
        "named-out", ps.console()
    )
    same.check(
        flow,
        {"bids": BIDS},
        {
            "union-out": [("a", 5, 43), ("b", 4, 38), ("c", 3, 8), ("d", 2, 1), ("e", 3, 9)],
            "explode-out": [(10, 111)],
            "named-out": [("a", 4, 43, "Ada"), ("b", 3, 38, "Bob"), ("c", 2, 8, None), ("e", 2, 9, None)],
        },
    )


@pytest.mark.live
def test_top_and_distinct_over_running_totals(same: Case) -> None:
    flow, _, totals = bids("best")
    totals.key_by(few="n <= 2").top("best", 2, by="total desc").sink("out", ps.console())
    totals.key_by("n").distinct("once").select("ns", "n").sink("once-out", ps.console())
    same.check(
        flow,
        {"bids": BIDS},
        {
            "out": [("a", 4, 43, False, 1), ("b", 3, 38, False, 2), ("e", 2, 9, True, 1), ("c", 2, 8, True, 2)],
            "once-out": [(4,), (3,), (2,), (1,)],
        },
    )


def test_totals_without_a_key(same: Case) -> None:
    flow, stream, totals = bids("all")
    stream.aggregate("every", n="count(*)", top="max(price)").sink("out", ps.console())
    totals.where("few", "n < 3").aggregate("few-total", n="count(*)", top="max(total)", mean="avg(n)").sink(
        "few-out", ps.console()
    )
    same.check(flow, {"bids": BIDS}, {"out": [(12, 30)], "few-out": [(3, 9, 5 / 3)]})


NAMES = [("b", "Bo"), ("a", "Al"), ("x", "Xi"), (None, "No"), ("b", "Bea")]
PAIRS = [("a", 4, 43, "Al"), ("b", 3, 38, "Bo"), ("b", 3, 38, "Bea")]
ALONE = [("c", 2, 8, None), ("d", 1, 1, None), ("e", 2, 9, None)]
RIGHT = [("x", None, None, "Xi"), (None, None, None, "No")]


@pytest.mark.live
def test_joins_of_running_totals_with_a_stream_without_a_time_bound(same: Case) -> None:
    flow, _, totals = bids("joins")
    names = flow.source("names", ps.items([], "auction string, name string"))
    for how in ("inner", "left", "right", "full", "semi", "anti"):
        totals.join(f"join-{how}", names, on="auction", how=how).sink(how, ps.console())
    same.check(
        flow,
        {"bids": BIDS, "names": NAMES},
        {
            "inner": PAIRS,
            "left": [*PAIRS, *ALONE],
            "right": [*PAIRS, *RIGHT],
            "full": [*PAIRS, *ALONE, *RIGHT],
            "semi": [("a", 4, 43), ("b", 3, 38)],
            "anti": [row[:3] for row in ALONE],
        },
    )


def test_a_join_of_two_tables_by_their_keys_and_of_a_table_with_itself(same: Case) -> None:
    flow, stream, totals = bids("two-tables")
    tops = stream.key_by("auction").aggregate("tops", top="max(price)")
    both = totals.join("both", tops, on="auction")
    assert both.updates == ("auction",)
    both.where("far", "total > top + 5").sink("out", ps.console())
    totals.join("twice", totals, on={"n": "n"}, prefix="other_").where("less", "auction < other_auction").sink(
        "self-out", ps.console()
    )
    same.check(
        flow,
        {"bids": BIDS},
        {"out": [("a", 4, 43, 30), ("b", 3, 38, 30)], "self-out": [("c", 2, 8, "e", 9)]},
    )


def test_an_inner_join_of_records_is_a_stream_of_records(same: Case) -> None:
    flow = ps.Flow("records")
    orders = flow.source("orders", ps.items([], "id int, city string"))
    cities = flow.source("cities", ps.items([], "name string, land string"))
    both = orders.join("both", cities, on={"city": "name"})
    assert both.changes is None
    both.sink("out", ps.console())
    given: dict[str, Any] = {
        "orders": [(1, "Rome"), (2, "Oslo"), (3, None), (4, "Rome"), (1, "Rome")],
        "cities": [("Oslo", "no"), ("Rome", "it")],
    }
    wanted = [(1, "Rome", "it"), (1, "Rome", "it"), (2, "Oslo", "no"), (4, "Rome", "it")]
    same.check(flow, given, {"out": [(i, c, c, land) for i, c, land in wanted]})


CHANGES = [
    ("insert", 1, "Rome", Decimal("10.50")), ("insert", 2, "Rome", Decimal("2.25")), ("insert", 3, "Oslo", None),
    ("update_before", 1, "Rome", Decimal("10.50")), ("update_after", 1, "Oslo", Decimal("10.50")), ("insert", 5, "Rome", Decimal("3.00")),
    ("delete", 2, "Rome", Decimal("2.25")), ("insert", 4, None, Decimal("1.00")), ("delete", 4, None, Decimal("1.00")),
    ("update_after", 5, "Bonn", Decimal("3.00")), ("update_after", 5, "Bonn", Decimal("4.00")),
]  # fmt: skip
"""What is there at the end: 1 in Oslo with 10.50, 3 in Oslo with nothing, 5 in Bonn with 4.00."""


@pytest.mark.live
def test_every_step_over_a_source_of_changes_with_updates_and_deletes(same: Case) -> None:
    flow = ps.Flow("cdc")
    people = flow.source("changes", ps.items([], "op string, id int, city string, money decimal(10,2)")).as_table(
        "people", "id"
    )
    people.sink("out", ps.console())
    people.where("rich", "money > 5").sink("rich-out", ps.console())
    people.key_by("city").aggregate("cities", n="count(*)", money="sum(money)", top="max(id)").sink(
        "cities-out", ps.console()
    )
    people.aggregate("whole", n="count(*)", least="min(money)").sink("whole-out", ps.console())
    people.key_by("city").top("first", 1, by="id desc").sink("top-out", ps.console())
    lands = ps.items([("Oslo", "no"), ("Rome", "it")], "city string, land string")
    people.join("lands", lands, on="city").select("short", "id", "land").sink("lands-out", ps.console())
    people.join("mates", people.select("others", other="id", city="city"), on="city").where("two", "id < other").sink(
        "mates-out", ps.console()
    )
    ten, four = Decimal("10.50"), Decimal("4.00")
    same.check(
        flow,
        {"changes": CHANGES},
        {
            "out": [(1, "Oslo", ten), (3, "Oslo", None), (5, "Bonn", four)],
            "rich-out": [(1, "Oslo", ten)],
            "cities-out": [("Oslo", 2, ten, 3), ("Bonn", 1, four, 5)],
            "whole-out": [(3, four)],
            "top-out": [(3, "Oslo", None, 1), (5, "Bonn", four, 1)],
            "lands-out": [(1, "no"), (3, "no")],
            "mates-out": [(1, "Oslo", ten, 3)],
        },
    )


def test_rows_without_a_key_may_hold_structs_lists_and_not_a_number(same: Case) -> None:
    """As a table, as its changes, and where there is no field that rows could meet by."""
    flow = ps.Flow("nested")
    fields = "id int, s struct<a:int,b:string>, l array<int>, x double"
    one = flow.source("one", ps.items([], fields))
    other = flow.source("other", ps.items([], "id int, y double"))
    both = one.join("both", other, on="id", how="left")
    both.sink("out", ps.console())
    both.select("loose", "s", "x").sink("loose-out", ps.console())
    signed = both.select("bare", "l").changelog("log")
    signed.select("size", n="size(l)", by="case when op = 'insert' then 1 else -1 end").key_by("n").sum(
        "sizes", "by"
    ).sink("sizes-out", ps.console())
    nan = float("nan")
    rows: list[Any] = [
        (1, (1, "a"), [1, 2], nan),
        (2, None, [None], -0.5),
        (3, (None, ""), [], None),
        (1, (1, "a"), [1, 2], nan),
    ]
    pairs: dict[int, list[Any]] = {1: [0.5, nan], 3: [None]}
    wanted = [(*row, y) for row in rows for y in pairs.get(row[0], [None])]
    same.check(
        flow,
        {"one": rows, "other": [(9, 1.5), (3, None), (1, 0.5), (1, nan)]},
        {
            "out": [(i, _struct(s), items, x, y) for i, s, items, x, y in wanted],
            "loose-out": [(_struct(s), x) for _, s, _, x, _ in wanted],
            "sizes-out": [(2, 4), (1, 1), (0, 1)],
        },
    )


def _struct(values: Any) -> Any:
    return None if values is None else {"a": values[0], "b": values[1]}


def test_one_field_of_the_left_may_have_to_equal_several_of_the_right(same: Case) -> None:
    flow = ps.Flow("several")
    left = flow.source("left", ps.items([], "id int, k int"))
    right = flow.source("right", ps.items([], "x int, y int, z int"))
    left.join("pairs", right, on=[("k", "x"), ("k", "y"), ("k", "z")], how="left").sink("out", ps.console())
    given: dict[str, list[Any]] = {
        "left": [(1, 2), (2, 3), (3, 2), (4, None)],
        "right": [(2, 2, 2), (2, 3, 2), (3, 3, 2), (2, 2, 2), (4, 4, 4)],
    }
    wanted = [(1, 2, 2, 2, 2), (1, 2, 2, 2, 2), (3, 2, 2, 2, 2), (3, 2, 2, 2, 2)]
    same.check(flow, given, {"out": [*wanted, (2, 3, None, None, None), (4, None, None, None, None)]})
