"""Every kernel under a hostile host: how records are cut and when time moves changes nothing (`kernels/base.py` says the contract)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

import penstock as ps
from penstock.graph.graph import Graph
from tests.kernels.hosts import SECOND, Host, hostile, in_one_batch, records_of

SCHEMA = "k string, ts timestamp, v int"
END, NOW = 60 * SECOND, 100 * SECOND


class Alarms(ps.Process):
    """State of all kinds, and timers in event time that set themselves again."""

    n = ps.value(int, default=0)
    total = ps.value(int, default=0)
    seen = ps.list_of(int)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.n += 1
        self.total += row.v
        self.seen.append(row.v)
        self.set_timer(row.ts + timedelta(seconds=row.v), f"{self.n}")
        yield f"{self.key} {self.n} {self.total}"

    def on_timer(self, timer: ps.Timer) -> Iterator[Any]:
        yield f"{self.key} {timer.name} {timer.at}"
        if not timer.name.endswith("again"):
            self.set_timer(timer.at + timedelta(seconds=3), f"{timer.name} again")


class Totals(ps.Process):
    """Plain cells alone."""

    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.n += row.v
        yield f"{self.key} {self.n}"


class Span(ps.Aggregator):
    """An aggregate of the user's own."""

    schema = "int"

    def init(self) -> Any:
        return (10, -1)

    def add(self, acc: Any, row: Any) -> Any:
        return (min(acc[0], row.v), max(acc[1], row.v))

    def merge(self, one: Any, other: Any) -> Any:
        return (min(one[0], other[0]), max(one[1], other[1]))

    def result(self, acc: Any) -> Any:
        return acc[1] - acc[0]


async def doubled(row: Any) -> Any:
    await asyncio.sleep(0.0001 * (row.v % 3))
    return {"k": row.k, "v": row.v * 2}


async def same_record(row: Any) -> Any:
    await asyncio.sleep(0.0001 * (row.v % 3))
    return row


Make = Callable[[Any], Any]
"""A step behind a stream with event time."""


def updated(stream: Any) -> Any:
    """A table with event time, whose rows change."""
    return stream.key_by("k").window(ps.tumbling("5s"), mode="update").aggregate("first", n="count(*)")


RECORDS: dict[str, Make] = {
    "map": lambda s: s.map("x", lambda r: {"k": r.k, "v": r.v + 1}, schema="k string, v int"),
    "map_async": lambda s: s.map_async("x", doubled, schema="k string, v int", concurrency=3),
    "map_async, as calls finish": lambda s: s.map_async("x", doubled, "k string, v int", concurrency=3, ordered=False),
    "map_async before a window": lambda s: (
        s.map_async("call", same_record, concurrency=4)
        .key_by("k")
        .window(ps.tumbling("10s"))
        .aggregate("x", n="count(*)")
    ),
    "flat_map": lambda s: s.flat_map("x", lambda r: [{"v": r.v}] * (r.v % 3), schema="v int"),
    "filter": lambda s: s.filter("x", lambda r: r.v > 3),
    "select": lambda s: s.select("x", "k", "v * 2 as w"),
    "where": lambda s: s.where("x", "v > 3"),
    "explode": lambda s: s.explode("x", "n", "array(v, v + 1)"),
    "process": lambda s: s.key_by("k").process("x", Totals, schema="text string"),
    "process with timers": lambda s: s.key_by("k").process("x", Alarms, schema="text string"),
    "tumbling": lambda s: s.key_by("k").window(ps.tumbling("10s")).aggregate("x", n="count(*)", t="sum(v)"),
    "sliding": lambda s: s.key_by("k").window(ps.sliding("20s", "5s")).aggregate("x", n="count(*)", m="max(v)"),
    "session": lambda s: s.key_by("k").window(ps.session("2s")).aggregate("x", n="count(*)", t="sum(v)"),
    "count window": lambda s: s.key_by("k").window(ps.count_window(3)).aggregate("x", t="sum(v)"),
    "global window": lambda s: (
        s.key_by("k").window(ps.global_window(), early=ps.every_records(1000)).aggregate("x", n="count(*)")
    ),
    "window of a reduce": lambda s: s.key_by("k").window(ps.tumbling("10s")).reduce("x", max),
    "window and window": lambda s: (
        s.key_by("k")
        .window(ps.tumbling("5s"))
        .aggregate("first", n="count(*)")
        .key_by("k")
        .window(ps.tumbling("20s"))
        .aggregate("x", t="sum(n)")
    ),
    "sort": lambda s: s.sort("x", "v"),
    "sort within": lambda s: s.sort("x", "v desc", within="10s"),
    "distinct in time": lambda s: s.key_by("k", "v").distinct("x", within="8s"),
    "distinct": lambda s: s.key_by("k", "v").distinct("once").select("x", "k", "v"),
    "window over a table": lambda s: updated(s).key_by("k").window(ps.tumbling("20s")).aggregate("x", t="sum(n)"),
    "sessions over a table": lambda s: updated(s).key_by("k").window(ps.session("4s")).aggregate("x", t="sum(n)"),
    "sort over a table": lambda s: updated(s).sort("x", "n"),
}
TABLES: dict[str, Make] = {
    "count": lambda s: s.key_by("k").count("x"),
    "aggregate": lambda s: s.key_by("k").aggregate("x", n="count(*)", t="sum(v)", m="max(v)"),
    "aggregate of one's own": lambda s: s.key_by("k").aggregate("x", width=Span()),
    "reduce": lambda s: s.select("y", "k", "v").key_by("k").reduce("x", lambda a, b: {"k": a.k, "v": a.v + b.v}),
    "fold": lambda s: s.key_by("k").fold("x", 0, lambda so_far, r: so_far + r.v, schema="t bigint"),
    "top": lambda s: s.key_by("k").top("x", 2, "v desc"),
    "window with updates": lambda s: s.key_by("k").window(ps.tumbling("10s"), mode="update").aggregate("x", t="sum(v)"),
    "reduce over a table": lambda s: (
        updated(s).key_by("k").reduce("x", lambda a, b: max(a, b, key=lambda r: r.window_end))
    ),
    "updates over a table": lambda s: (
        updated(s).key_by("k").window(ps.sliding("20s", "5s"), mode="update").aggregate("x", t="sum(n)")
    ),
    "window by the clock": lambda s: (
        s.key_by("k").window(ps.tumbling("1000s"), clock="processing").aggregate("x", n="count(*)")
    ),
}


def interval(how: str) -> Callable[[Any, Any], Any]:
    return lambda a, b: a.join("x", b, "k", within=("-3s", "4s"), how=how, prefix="o_")


JOINS: dict[str, Callable[[Any, Any], Any]] = {
    "interval": interval("inner"),
    "interval, left": interval("left"),
    "interval, full": interval("full"),
    "interval, with a condition": lambda a, b: a.join(
        "x", b, "k", within=("-3s", "4s"), how="full", prefix="o_", condition="v < o_v"
    ),
    "without a bound": lambda a, b: a.join("x", b, "k", prefix="o_", condition="v < o_v"),
    "as of": lambda a, b: a.asof_join("x", b, "k", prefix="o_"),
    "as of, over a table": lambda a, b: updated(a).asof_join("x", b, "k", prefix="o_"),
    "as of, nearest": lambda a, b: a.asof_join("x", b, "k", direction="nearest", tolerance="3s", prefix="o_"),
    "window": lambda a, b: a.window_join("x", b, "k", ps.tumbling("5s"), how="full", prefix="o_"),
}


def flow_of(make: Make) -> Graph:
    flow = ps.Flow("f")
    make(flow.source("a", ps.items([], SCHEMA), event_time="ts")).sink("out", ps.console())
    return flow.graph


def both(graph: Graph, sources: str, seed: int) -> tuple[Host, Host]:
    records = records_of(random.Random(seed), sources, 150)
    return in_one_batch(graph, records, END, NOW), hostile(graph, records, END, NOW, seed)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", RECORDS)
def test_records_come_out_whatever_the_host_does(name: str, seed: int) -> None:
    whole, pieces = both(flow_of(RECORDS[name]), "a", seed)
    assert Counter(pieces.out["out"]) == Counter(whole.out["out"])
    assert pieces.wakes == whole.wakes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", TABLES)
def test_tables_end_the_same_whatever_the_host_does(name: str, seed: int) -> None:
    graph = flow_of(TABLES[name])
    output = graph.output(graph.sinks[0].inputs[0])
    keys = [output.schema.names.index(k) for k in output.updates or output.schema.names]
    whole, pieces = ({tuple(r[k] for k in keys): r for r in h.out["out"]} for h in both(graph, "a", seed))
    assert pieces == whole


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", JOINS)
def test_pairs_come_out_whatever_the_host_does(name: str, seed: int) -> None:
    flow = ps.Flow("f")
    a, b = (flow.source(n, ps.items([], SCHEMA), event_time="ts") for n in "ab")
    JOINS[name](a, b).sink("out", ps.console())
    whole, pieces = both(flow.graph, "ab", seed)
    assert Counter(pieces.out["out"]) == Counter(whole.out["out"])
    assert pieces.wakes == whole.wakes


def test_a_sorted_stream_is_in_order_however_time_moves() -> None:
    records = records_of(random.Random(5), "a", 200)
    host = hostile(flow_of(lambda s: s.sort("x", "v")), records, END, NOW, 5)
    times = [row[1] for row in host.out["out"]]
    assert times == sorted(times)
    assert len(times) == 200


def test_results_come_out_when_time_moves_and_not_only_when_a_batch_ends() -> None:
    """A resident host never ends a batch to see a result."""
    host = Host(flow_of(RECORDS["tumbling"]))
    for record in records_of(random.Random(1), "a", 60):
        host.take([record])
        host.advance((record[2] - 10) * SECOND, 0)
        host.begin()
    assert host.out["out"]
    host = Host(flow_of(TABLES["count"]))
    host.take(records_of(random.Random(1), "a", 1))
    host.advance(0, 0)
    assert len(host.out["out"]) == 1
