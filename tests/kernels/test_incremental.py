"""Every step over a table that changes: what its changes add up to is what the step answers for the rows that are there at the end.

The answer is that of the same step over records: other kernels, one batch, no row that ever goes.
"""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.testing import Driver
from tests.breadth import some_now

BEGIN = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
LATENESS = 12
SCHEMA = "id int, k string, v int, x double, ts timestamp"
Made = dict[str, ps.Stream]


class R(NamedTuple):
    """A row of a table by id; `t` is its event time in seconds."""

    id: int
    k: str | None
    v: int | None
    x: float | None
    t: int

    def values(self) -> tuple[Any, ...]:
        return (*self[:4], BEGIN + datetime.timedelta(seconds=self.t))


@dataclass
class History:
    """Batches of changes of two tables, and the rows that are there at the end."""

    batches: list[tuple[list[Any], list[Any]]]
    left: list[R]
    right: list[R]


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Inserts, updates and deletes, none of which is late: a row changes only while event time has not passed it."""
    tables: tuple[dict[int, R], dict[int, R]] = ({}, {})
    batches: list[tuple[list[Any], list[Any]]] = []
    clock = 0
    for _ in range(draw(st.integers(1, 4))):
        batch: tuple[list[Any], list[Any]] = ([], [])
        for _ in range(draw(st.integers(0, 7))):
            clock = min(60, clock + draw(st.sampled_from([0, 0, 1, 3, 8])))
            side = draw(st.integers(0, 1))
            batch[side].append(draw_change(draw, tables[side], clock))
        batches.append(batch)
    kept = [sorted(table.values(), key=lambda r: tuple((v is not None, v) for v in r)) for table in tables]
    return History(batches, *kept)


def draw_change(draw: st.DrawFn, table: dict[int, R], clock: int) -> Any:
    open_ids = [i for i in range(4) if i not in table or table[i].t > clock - LATENESS]
    fresh = max([*table, 3]) + 1
    number: int = draw(st.sampled_from([*open_ids, fresh]))
    before = table.get(number)
    if before is not None and draw(st.booleans()):
        del table[number]
        return ("delete", *before.values())
    row = R(
        number,
        draw(st.sampled_from(["a", "b", None])),
        draw(st.sampled_from([0, 1, 2, 5, None])),
        draw(st.sampled_from([0.5, 1.0, float("nan"), None])),
        draw(st.integers(max(0, clock - LATENESS + 1), clock)),
    )
    table[number] = row
    return ("insert" if before is None else "update_after", *row.values())


def linear(a: ps.Stream, b: ps.Stream) -> Made:
    parts = a.branch("branch", low="v < 2", odd=lambda row: row.id % 2 == 1)
    names = ps.items([("a", "Ada"), ("a", "Al"), ("b", "Bo")], "k string, name string")
    return {
        "where": a.where("where-step", "v > 1"),
        "select": a.select("select-step", "k", w="v * 2"),
        "columns": a.with_columns("columns-step", w="v + 1", k="upper(k)"),
        "map": a.map("map-step", lambda row: row.replace(v=(row.v or 0) + 1)),
        "filter": a.filter("filter-step", lambda row: row.v == 1),
        "flat_map": a.flat_map("flat-step", lambda row: [row] * (row.v or 0), SCHEMA),
        "map_batches": a.map_batches("batches-step", lambda batch: batch),
        "explode": a.explode("explode-step", "item", "array(v, id)"),
        "low": parts.low,
        "odd": parts.odd,
        "otherwise": parts.otherwise,
        "union": a.union("union-step", b),
        "repartition": a.repartition("spread", 2, "k"),
        "static": a.join("static-step", names, on="k", how="left"),
    }


def total(one: Any, other: Any) -> Any:
    return one.replace(id=max(one.id, other.id), v=(one.v or 0) + (other.v or 0), x=0.0, ts=max(one.ts, other.ts))


def keyed(a: ps.Stream, b: ps.Stream) -> Made:
    calls = {
        "n": "count(*)",
        "s": "sum(v)",
        "m": "avg(v)",
        "low": "min(x)",
        "best": "max_by(id, v)",
        "all": "collect_list(v)",
    }
    zero = a.map("zero", lambda row: row.replace(x=0.0, v=row.v or 0))
    return {
        "aggregate": a.key_by("k").aggregate("by-k", **calls, f="first(v, id)", d="count(distinct v)"),
        "computed": a.key_by("k").aggregate("ratio", r="sum(v) / count(*)", some="count(*) filter (where v > 1)"),
        "totals": a.aggregate("every", n="count(*)", top="max(v)"),
        "twice": a.key_by("k").count("n").key_by("n").aggregate("again", many="count(*)", most="max(k)"),
        "reduce": zero.key_by("k").reduce("reduce-step", total),
        "fold": a.key_by("k").fold("fold-step", "", lambda so_far, row: f"{so_far} {row.id}", "ids string"),
        "top": a.key_by("k").top("top-step", 2, by="v desc"),
        "distinct": a.key_by("k", "v").distinct("distinct-step").select("picked", "k", "v"),
    }


def joins(a: ps.Stream, b: ps.Stream) -> Made:
    made: Made = {}
    for how in ("inner", "left", "right", "full", "semi", "anti"):
        made[how] = a.join(f"join-{how}", b, on="k", how=how, prefix="b_")
        condition = "v < b_v or b_id = 2"
        made[f"{how}-if"] = a.join(f"if-{how}", b, on="k", how=how, prefix="b_", condition=condition)
    made["computed"] = a.join(
        "computed-step", b, on=[("v + 1", "v"), ("upper(k)", "upper(k)")], how="full", prefix="b_"
    )
    made["twice"] = made["left-if"].key_by("b_v").aggregate("over-join", n="count(*)", s="sum(v)")
    return made


def windows(a: ps.Stream, b: ps.Stream) -> Made:
    made: Made = {}
    kinds: dict[str, Any] = {
        "tumbling": ps.tumbling("10s"),
        "sliding": ps.sliding("10s", every="4s"),
        "sessions": ps.session("3s"),
    }
    options: dict[str, dict[str, Any]] = {"once": {}, "update": {"mode": "update"}, "late": {"lateness": "5s"}}
    for kind, spec in kinds.items():
        for name, option in options.items():
            window = a.key_by("k").window(spec, **option)
            made[f"{kind}-{name}"] = window.aggregate(f"{kind}-{name}-step", n="count(*)", s="sum(v)", m="max(v)")
    made["global"] = a.key_by("k").window(ps.global_window(), mode="update").aggregate("global-step", s="sum(v)")
    zero = a.map("zero", lambda row: row.replace(x=0.0, v=row.v or 0))
    made["reduce"] = zero.key_by("k").window(ps.tumbling("10s")).reduce("reduce-step", total)
    made["ranked"] = a.key_by("k").window(ps.tumbling("10s")).top("ranked-step", 2, by="v desc")
    made["ranked-update"] = a.window(ps.tumbling("10s"), mode="update").top("ranked-update-step", 2, by="v desc, id")
    made["computed"] = a.window(ps.session("3s"), mode="update").aggregate("computed-step", m="sum(v) / count(*)")
    made["twice"] = made["sessions-update"].key_by("n").aggregate("over-sessions", many="count(*)", s="sum(s)")
    made["windows"] = made["tumbling-update"].key_by("n").window(ps.tumbling("20s")).aggregate("over", s="sum(s)")
    return made


def in_time(a: ps.Stream, b: ps.Stream) -> Made:
    made: Made = {
        "sort": a.key_by("k").sort("sort-step", by="v desc"),
        "sort-all": a.sort("sort-all-step", by="v", within="7s"),
        "earliest": a.key_by("k").distinct("earliest-step", eager=False),
        "asof": a.asof_join("asof-step", b, on="k", prefix="b_"),
        "nearest": a.asof_join("nearest-step", b, on="k", direction="nearest", tolerance="3s", prefix="b_"),
    }
    made["within"] = a.key_by("k").distinct("within-step", within="4s", eager=False)
    for how in ("inner", "left", "right", "full"):
        made[how] = a.join(f"join-{how}", b, on="k", within=("-2s", "4s"), how=how, prefix="b_")
        made[f"{how}-if"] = a.join(
            f"if-{how}", b, on="k", within=("-2s", "4s"), how=how, prefix="b_", condition="v < b_v or b_id = 2"
        )
        made[f"{how}-window"] = a.window_join(
            f"window-{how}", b, on="k", window=ps.tumbling("5s"), how=how, prefix="b_"
        )
    return made


FAMILIES: dict[str, Callable[[ps.Stream, ps.Stream], Made]] = {
    "linear": linear,
    "keyed": keyed,
    "joins": joins,
    "windows": windows,
    "in_time": in_time,
}


@cache
def flow_of(family: str, *, tables: bool) -> ps.Flow:
    """The steps over two tables of changes, or over two streams of records."""
    flow = ps.Flow(family)
    sides = []
    for name in ("one", "two"):
        schema = f"op string, {SCHEMA}" if tables else SCHEMA
        stream = flow.source(name, ps.items([], schema), event_time="ts", lateness=f"{LATENESS}s", idle=None)
        sides.append(stream.as_table(f"{name}-table", "id") if tables else stream)
    for name, made in FAMILIES[family](*sides).items():
        made.sink(name, ps.console())
    return flow


def answers(
    flow: ps.Flow, batches: list[tuple[list[Any], list[Any]]], *, crash: bool = False
) -> dict[str, Counter[str]]:
    """The rows of each sink at the end."""
    driver = Driver(flow)
    for batch in batches:
        for name, records in zip(("one", "two"), batch, strict=True):
            driver.push(name, *records)
        if crash:
            driver.crash()
        driver.barrier()
    results = driver.barrier(end=True)
    driver.close()
    return {sink: Counter(map(plain, rows_of(flow, results, sink))) for sink in results}


def plain(row: Any) -> str:
    return repr([v.timestamp() if isinstance(v, datetime.datetime) else v for v in row])


def rows_of(flow: ps.Flow, results: Any, sink: str) -> Any:
    keyed_by = flow.graph.output(flow.graph.node(sink).inputs[0]).updates
    return results[sink] if keyed_by is None else results.table(sink).values()


@pytest.mark.parametrize("many", some_now((12, 100), 1))
@pytest.mark.parametrize("family", FAMILIES)
def test_the_changes_of_a_step_add_up_to_its_answer_over_all_that_is_there(family: str, many: int) -> None:
    @given(history=histories(), crash=st.booleans())
    @settings(max_examples=many, deadline=None, suppress_health_check=[HealthCheck.too_slow])
    def check(history: History, crash: bool) -> None:
        check_family(family, history, crash)

    check()


def check_family(family: str, history: History, crash: bool) -> None:
    got = answers(flow_of(family, tables=True), history.batches, crash=crash)
    final = [([r.values() for r in history.left], [r.values() for r in history.right])]
    wanted = answers(flow_of(family, tables=False), final)
    assert {sink: rows for sink, rows in got.items() if rows != wanted[sink]} == {
        sink: rows for sink, rows in wanted.items() if rows != got[sink]
    }
