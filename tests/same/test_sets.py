"""Rows as sets: distinct, intersect, except, each also ALL; NOT IN; scalar subqueries; grouping sets; look-ups in a changing table."""

from __future__ import annotations

import datetime
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, SchemaError
from penstock.graph.aggregates.calls import calls_of
from penstock.graph.compose import add_total
from penstock.graph.relational.sets import GroupingSets, add_grouping_sets, add_not_in, add_scalar
from tests.same.conftest import Case, run_cut

ONE = [("a", 1.5), ("b", 2.0), ("a", 1.5), (None, None), ("c", float("nan")), ("a", 1.5), ("d", 4.0), ("b", 2.0)]
OTHER = [("a", 1.5), ("a", 1.5), ("c", float("nan")), (None, None), ("e", 1.0), ("b", 2.5), ("a", 0.5)]


def at(seconds: float) -> datetime.datetime:
    return datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC) + datetime.timedelta(seconds=seconds)


FIELDS = "k string, x double"
OPERATIONS: dict[tuple[str, bool], Callable[[Counter[Any], Counter[Any]], Counter[Any]]] = {
    ("intersect", False): lambda a, b: Counter({r: 1 for r in a if r in b}),
    ("intersect", True): lambda a, b: a & b,
    ("subtract", False): lambda a, b: Counter({r: 1 for r in a if r not in b}),
    ("subtract", True): lambda a, b: a - b,
}


def sides(name: str) -> tuple[ps.Flow, ps.Stream, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("one", ps.items([], FIELDS)), flow.source("other", ps.items([], FIELDS))


def bag(rows: list[Any]) -> Counter[Any]:
    return Counter(map(repr, rows))


@pytest.mark.live("subtract-True")
@pytest.mark.parametrize(("operation", "every"), OPERATIONS, ids=str)
def test_set_operations_of_records(same: Case, operation: str, every: bool) -> None:
    flow, one, other = sides("sets")
    made = getattr(one, operation)("compared", other, every=every)
    assert (made.changes is None) == (operation == "intersect")
    made.sink("out", ps.console())
    wanted = OPERATIONS[operation, every](bag(ONE), bag(OTHER))
    known = {repr(r): r for r in ONE}
    same.check(flow, {"one": ONE, "other": OTHER}, {"out": [known[r] for r, n in wanted.items() for _ in range(n)]})


def changes_of(rng: random.Random, rows: list[tuple[str, int]], steps: int) -> tuple[list[Any], Counter[Any]]:
    """Random changes of a table by id, and what it holds at the end: (op, id, k, n)."""
    table: dict[int, tuple[str, int]] = {}
    made: list[Any] = []
    for _ in range(steps):
        at = rng.randrange(6)
        if at in table and rng.random() < 0.4:
            made.append(("delete", at, *table.pop(at)))
        else:
            op = "update_after" if at in table else "insert"
            table[at] = rng.choice(rows)
            made.append((op, at, *table[at]))
    return made, Counter(table.values())


@pytest.mark.bounded("0", "7")
@pytest.mark.live("7")
@pytest.mark.parametrize("seed", range(8))
def test_set_operations_of_tables_that_change(same: Case, seed: int) -> None:
    rng = random.Random(seed)
    rows = [(k, n) for k in "ab" for n in (1, 2)]
    flow = ps.Flow("tables")
    sources = [flow.source(n, ps.items([], "op string, id int, k string, n int")) for n in ("one", "other")]
    one, other = (s.as_table(f"{s.port.step}-table", "id").select(f"{s.port.step}-rows", "k", "n") for s in sources)
    for operation, every in OPERATIONS:
        getattr(one, operation)(f"{operation}{every}", other, every=every).sink(f"{operation}-{every}", ps.console())
    one.distinct_rows("different").sink("once", ps.console())
    (given, left), (others, right) = (changes_of(rng, rows, 20) for _ in range(2))
    wanted = {f"{op}-{every}": list(made(left, right).elements()) for (op, every), made in OPERATIONS.items()}
    same.check(flow, {"one": given, "other": others}, wanted | {"once": list(left)})


@pytest.mark.live
def test_distinct_rows_with_fields_that_are_no_keys(same: Case) -> None:
    flow, one, _ = sides("distinct")
    one.distinct_rows("once").sink("out", ps.console())
    same.check(flow, {"one": ONE, "other": []}, {"out": list({repr(r): r for r in ONE}.values())})


def test_a_stream_with_itself(same: Case) -> None:
    flow, one, _ = sides("itself")
    one.subtract("none", one).sink("out", ps.console())
    one.intersect("whole", one, every=True).sink("all", ps.console())
    same.check(flow, {"one": ONE, "other": []}, {"out": [], "all": ONE})


MEMBERS: dict[str, list[Any]] = {"some": [(1,), (3,)], "null": [(1,), (None,)], "none": []}


@pytest.mark.live("null")
@pytest.mark.parametrize("members", MEMBERS)
def test_not_in_as_sql_means_it(same: Case, members: str) -> None:
    flow = ps.Flow("not-in")
    rows = flow.source("rows", ps.items([], "id int, n int"))
    others = flow.source("others", ps.items([], "m int"))
    rows._at(add_not_in(flow.builder, "outside", rows.port, "n", others.port, "m")).sink("out", ps.console())
    given = [(1, 1), (2, 2), (3, None), (4, 3)]
    wanted: dict[str, list[Any]] = {"some": [(2, 2)], "null": [], "none": given}
    same.check(flow, {"rows": given, "others": MEMBERS[members]}, {"out": wanted[members]})


def test_not_in_changes_when_a_null_comes_and_goes() -> None:
    flow = ps.Flow("null-goes")
    rows = flow.source("rows", ps.items([], "n int"))
    changes = flow.source("others", ps.items([], "op string, id int, m int")).as_table("table", "id")
    rows._at(add_not_in(flow.builder, "outside", rows.port, "n", changes.port, "m")).changelog("log").sink(
        "out", ps.console()
    )
    others = [("insert", 1, 1), ("insert", 2, None), ("delete", 2, None), ("delete", 1, 1)]
    got = run_cut(flow, {"rows": [(1,), (2,), (None,)], "others": others}, {"rows": [3, 3, 3], "others": [1, 2, 3]})[
        "out"
    ]
    assert [tuple(r) for r in got[:3]] == [("insert", 2), ("delete", 2), ("insert", 2)]
    assert sorted(map(repr, map(tuple, got[3:]))) == ["('insert', 1)", "('insert', None)"]


@pytest.mark.live
def test_a_scalar_subquery_is_beside_every_row(same: Case) -> None:
    flow = ps.Flow("scalar")
    rows = flow.source("rows", ps.items([], "k string, n int"))
    total = add_total(flow.builder, "all", rows.port, calls_of({"mean": "avg(n)"}))
    beside = rows._at(add_scalar(flow.builder, "beside", rows.port, total, ("mean",)))
    beside.where("above", "n > mean").select("short", "k", "n").sink("out", ps.console())
    given = [("a", 1), ("b", 5), ("c", 9), ("d", 5), ("e", 30)]
    same.check(flow, {"rows": given}, {"out": [("e", 30)]})


@pytest.mark.live
def test_grouping_sets(same: Case) -> None:
    flow = ps.Flow("cube")
    rows = flow.source("rows", ps.items([], "a string, b int, n int"))
    sets = GroupingSets(("a", "b"), (("a", "b"), ("a",), ()))
    port = add_grouping_sets(
        flow.builder, "rollup", rows.port, sets, calls_of({"total": "sum(n)", "least": "min(b)"}), "gid"
    )
    rows._at(port).sink("out", ps.console())
    given = [("x", 1, 10), ("x", 2, 20), ("y", 1, 5), (None, 1, 7), ("x", 1, 1)]
    wanted = [
        ("x", 1, 0, 11, 1), ("x", 2, 0, 20, 2), ("y", 1, 0, 5, 1), (None, 1, 0, 7, 1), ("x", None, 1, 31, 1), ("y", None, 1, 5, 1),
        (None, None, 1, 7, 1), (None, None, 3, 43, 1),
    ]  # fmt: skip
    same.check(flow, {"rows": given}, {"out": wanted})


RATES = [("insert", "EUR", 1.5), ("insert", "USD", 1.0), ("update_after", "EUR", 2.0), ("delete", "USD", 1.0)]


@pytest.mark.live("left")
@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_look_up_sees_the_table_as_it_is(same: Case, how: str) -> None:
    flow = ps.Flow("look-up")
    orders = flow.source("orders", ps.items([], "id int, currency string"))
    rates = flow.source("rates", ps.items([], "op string, currency string, rate double")).as_table("now", "currency")
    made = orders.lookup_join("priced", rates, "currency", how=how)
    assert made.changes is None
    made.sink("out", ps.console())
    given = [(1, "EUR"), (2, "USD"), (3, "EUR"), (4, "USD"), (5, None)]
    cuts = {"orders": [2, 4], "rates": [2, 4]}
    if same.runtime in ("oracle", "bounded"):
        found = [(1, "EUR", 2.0), (3, "EUR", 2.0)]
        lone = [(2, "USD", None), (4, "USD", None), (5, None, None)]
    else:
        found = [(1, "EUR", 1.5), (2, "USD", 1.0), (3, "EUR", 2.0)]
        lone = [(4, "USD", None), (5, None, None)]
    same.check(flow, {"orders": given, "rates": RATES}, {"out": [*found, *(lone if how == "left" else ())]}, cuts=cuts)


def test_a_row_that_goes_takes_back_what_it_found_when_it_came() -> None:
    flow = ps.Flow("remembers")
    orders = flow.source("orders", ps.items([], "op string, id int, currency string")).as_table("orders-now", "id")
    rates = flow.source("rates", ps.items([], "op string, currency string, rate double")).as_table("now", "currency")
    priced = orders.lookup_join("priced", rates, "currency", how="left")
    assert priced.updates == ("id",)
    priced.changelog("log").sink("out", ps.console())
    given = [("insert", 1, "EUR"), ("insert", 2, "USD"), ("delete", 1, "EUR"), ("update_after", 2, "EUR")]
    changes = [("insert", "EUR", 1.5), ("update_after", "EUR", 2.0)]
    got = run_cut(flow, {"orders": given, "rates": changes}, {"orders": [2, 2], "rates": [1, 2]})["out"]
    wanted: list[Any] = [("insert", 1, "EUR", 1.5), ("insert", 2, "USD", None), ("delete", 1, "EUR", 1.5)]
    wanted += [("update_before", 2, "USD", None), ("update_after", 2, "EUR", 2.0)]
    assert bag([tuple(r) for r in got]) == bag(wanted)


def test_refusals() -> None:
    flow, one, _ = sides("refused")
    third = flow.source("third", ps.items([], "k string"))
    with pytest.raises(SchemaError, match="expects the same fields"):
        one.intersect("no", third)
    with pytest.raises(FlowError, match="how is one of inner, left"):
        one.lookup_join("full", third, "k", how="full")
    with pytest.raises(FlowError, match="expected grouping sets"):
        GroupingSets(("a",), (("b",),))


@pytest.mark.live("left")
@pytest.mark.parametrize("how", ["inner", "left"])
def test_the_version_that_was_valid_at_the_time_of_a_row(same: Case, how: str) -> None:
    """A version ends with the next one of its key, or with a delete."""
    flow = ps.Flow("versions")
    orders = flow.source(
        "orders", ps.items([], "id int, currency string, ts timestamp"), event_time="ts", lateness="10s"
    )
    rates = flow.source(
        "rates",
        ps.items([], "op string, currency string, rate double, since timestamp"),
        event_time="since",
        lateness="10s",
    )
    made = orders.asof_join("priced", rates, "currency", how=how, op="op")
    assert made.schema.names == ("id", "currency", "ts", "rate", "since")
    made.drop("short", "since").sink("out", ps.console())
    versions = [
        ("insert", "EUR", 1.0, at(10)), ("update_before", "EUR", 1.0, at(20)), ("update_after", "EUR", 2.0, at(20)),
        ("delete", "EUR", 2.0, at(30)), ("insert", "EUR", 3.0, at(40)), ("insert", "USD", 9.0, at(15)),
    ]  # fmt: skip
    given = [
        (1, "EUR", 25),
        (2, "EUR", 19),
        (3, "EUR", 20),
        (4, "EUR", 30),
        (5, "EUR", 35),
        (6, "EUR", 40),
        (7, "USD", 14),
        (8, "USD", 50),
    ]
    valid = {1: 2.0, 2: 1.0, 3: 2.0, 6: 3.0, 8: 9.0}
    wanted = [(i, c, at(s), valid.get(i)) for i, c, s in given if how == "left" or i in valid]
    same.check(flow, {"orders": [(i, c, at(s)) for i, c, s in given], "rates": versions}, {"out": wanted})


def test_versions_of_a_table_are_gone() -> None:
    flow = ps.Flow("gone")
    orders = flow.source("orders", ps.items([], "id int, currency string, ts timestamp"), event_time="ts")
    rates = flow.source(
        "rates", ps.items([], "op string, op2 string, currency string, since timestamp"), event_time="since"
    )
    with pytest.raises(FlowError, match="which has the newest alone"):
        orders.asof_join("priced", rates.as_table("now", "currency"), "currency", op="op2")
