"""Every kernel under a hostile host: how records are cut and when time moves changes nothing (`kernels/base.py` says the contract)."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute
import pytest

import penstock as ps
from penstock.graph.graph import Graph
from tests.kernels.hosts import SECOND, Host, hostile, in_one_batch, records_of

SCHEMA = "k string, ts timestamp, v int"
TWO = ps.pattern("two").begin("a", "v < 3").followed_by("b", "v > 6")
LOOP = ps.pattern("loop").begin("a", "v < 3", one_or_more=True).followed_by("b", "v > 6 and v > 2 * count(a)")
NOTHING = ps.pattern("nothing").begin("a", "v < 3").not_followed_by("b", "v > 6")
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


class Counting(ps.Bolt):
    """A bolt with state of its own: how often it has seen each key."""

    outputs = "k string, n bigint"

    def prepare(self, context: Any) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> Iterator[Any]:
        self.counts[tup.k] = self.counts.get(tup.k, 0) + 1
        yield tup.k, self.counts[tup.k]


class Split(ps.Bolt):
    """A bolt without state, with two streams."""

    outputs = {"low": "k string", "high": "k string, v int"}
    stateful = False

    def process(self, tup: Any) -> None:
        if tup.v < 5:
            self.emit((tup.k,), stream="low")
        else:
            self.emit((tup.k, tup.v), stream="high")


class Above(ps.BroadcastProcess):
    """Events above the newest limit of their key."""

    def on_rule(self, rule: Any) -> Any:
        return rule

    def on_event(self, row: Any, rules: Mapping[Any, Any]) -> Iterator[Any]:
        if row.k in rules and row.v > rules[row.k].v:
            yield row.k, row.v


def doubled_batch(batch: pa.RecordBatch) -> pa.RecordBatch:
    return batch.set_column(2, "v", pa.compute.multiply(batch.column(2), pa.scalar(2, pa.int32())))


NAMES = ps.items([("a", "Ada"), ("b", "Bo"), ("b", "Bob")], "k string, name string")


def branched(s: Any) -> Any:
    parts = s.branch("parts", low="v < 3", middle=lambda r: r.v < 6)
    low = parts.low.select("l", "k", "v", "'low' as part")
    rest = parts.otherwise.select("o", "k", "v", "'rest' as part")
    return low.union("x", rest, parts.middle.select("m", "k", "v", "'middle' as part"))


FALLS = ps.row_pattern(
    "^? A B+ C?",
    define={"B": "v < prev(v)", "C": "v > first(v) and next(v) is not null"},
    measures={"m": "match_number()", "low": "last(B.v)", "c": "classifier()", "after": "next(v)"},
    order_by="v",
)
SLOW_RISE = ps.row_pattern(
    "A (B | C)*",
    define={"B": "v > prev(v)", "C": "v = A.v"},
    measures={"c": "classifier()", "n": "final count(*)"},
    rows="all with unmatched",
    within="4s",
    order_by="v",
)

RULES = """
rule low if v < 3 do emit to found(k, v, part = 'low'), emit to steps(v)
rule range if v between 2 and 7 and k = 'a' do emit to found(k, v, part = 'range'), stop priority 1
rule late if v > 5 do emit to found(k, v, part = 'late') deferred
rule down on steps if v > 0 do emit to steps(v = v - 1), alert('low', '{v} steps')
"""
SWITCHES = """
rule on if v = 1 do activate next
rule next if v > 1 do emit to found(k, v), deactivate next inactive
"""
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
    "map_batches": lambda s: s.map_batches("x", doubled_batch),
    "branch and union": branched,
    "static join": lambda s: s.join("x", NAMES, on="k"),
    "static join, left": lambda s: s.join("x", NAMES, on="k", how="left"),
    "repartition": lambda s: s.repartition("x", 3, "k"),
    "update_state": lambda s: s.key_by("k").update_state(
        "x", lambda r, n: ((n or 0) + 1, [(n or 0) + 1]), schema="n bigint"
    ),
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
    "match": lambda s: s.key_by("k").match("x", TWO.within("8s"), select={"k": "k", "a": "a.v", "b": "b.v"}),
    "match in loops": lambda s: s.key_by("k").match(
        "x", LOOP.within("9s"), select={"k": "k", "n": "count(*)", "of": "sum(v)"}
    ),
    "match of nothing": lambda s: s.key_by("k").match("x", NOTHING.within("4s"), select={"k": "k", "a": "a.v"}),
    "match and skip": lambda s: s.match(
        "x", LOOP.within("9s").after_match("past_last"), select={"n": "count(*)", "of": "sum(v)"}
    ),
    "sort within": lambda s: s.sort("x", "v desc", within="10s"),
    "row pattern": lambda s: s.key_by("k").match_rows("x", FALLS),
    "row pattern, all rows, within": lambda s: s.key_by("k").match_rows("x", SLOW_RISE),
    "row pattern without a key": lambda s: s.match_rows("x", FALLS),
    "distinct in time": lambda s: s.key_by("k", "v").distinct("x", within="8s"),
    "distinct": lambda s: s.key_by("k", "v").distinct("once").select("x", "k", "v"),
    "window over a table": lambda s: updated(s).key_by("k").window(ps.tumbling("20s")).aggregate("x", t="sum(n)"),
    "sessions over a table": lambda s: updated(s).key_by("k").window(ps.session("4s")).aggregate("x", t="sum(n)"),
    "sort over a table": lambda s: updated(s).sort("x", "n"),
}
RECORDS |= {
    "rules": lambda s: s.rules("x", ps.rules(RULES)).found,
    "rules that follow from rules, and alerts": lambda s: s.rules("x", ps.rules(RULES)).alerts,
    "rules by key": lambda s: s.key_by("k").rules("x", ps.rules(SWITCHES)).found,
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
    "window with early results by records": lambda s: (
        s.key_by("k").window(ps.tumbling("10s"), early=ps.every_records(3)).aggregate("x", t="sum(v)")
    ),
    "window with early results by time": lambda s: (
        s.key_by("k").window(ps.tumbling("20s"), early=ps.every_interval("3s")).aggregate("x", t="sum(v)")
    ),
    "totals without a key": lambda s: s.aggregate("x", n="count(*)", t="sum(v)"),
    "window by the clock": lambda s: (
        s.key_by("k").window(ps.tumbling("1000s"), clock="processing").aggregate("x", n="count(*)")
    ),
}


CHANGES: dict[str, Make] = {
    "changes of totals": lambda s: s.key_by("k").aggregate("n", n="count(*)", t="sum(v)"),
    "where over totals": lambda s: s.key_by("k").sum("n", "v", into="t").where("x", "t % 200 > 100"),
    "select over totals": lambda s: s.key_by("k").count("n", into="n").select("x", "k", "n div 10 as tens"),
    "totals of totals": lambda s: (
        s.key_by("k", "v").count("n", into="n").key_by("n").aggregate("x", m="count(*)", top="max(v)", low="min(v)")
    ),
    "totals of totals without a key": lambda s: s.key_by("k").sum("n", "v", into="t").aggregate("x", all="sum(t)"),
    "top of totals": lambda s: s.key_by("k", "v").count("n", into="n").key_by("k").top("x", 2, "n desc, v"),
    "distinct of totals": lambda s: s.key_by("k", "v").count("n", into="n").key_by("n").distinct("x"),
    "union of totals": lambda s: (
        s.key_by("k").count("n", into="n").union("x", s.key_by("k").aggregate("m", n="sum(v)"))
    ),
    "explode over totals": lambda s: s.key_by("k").count("n", into="n").explode("x", "part", "array(n, n div 2)"),
    "map over totals": lambda s: (
        s.key_by("k").count("n", into="n").map("x", lambda r: {"k": r.k, "m": r.n % 7}, schema="k string, m bigint")
    ),
    "branch over totals": lambda s: s.key_by("k").count("n", into="n").branch("x", odd="n % 2 = 1").odd,
    "static join of totals": lambda s: s.key_by("k").count("n", into="n").join("x", NAMES, on="k", how="left"),
    "join of totals": lambda s: (
        s.key_by("k").count("n", into="n").join("x", s.key_by("k").aggregate("m", most="max(v)"), on="k", how="full")
    ),
    "join of totals with records": lambda s: (
        s.key_by("k").count("n", into="n").join("x", s.select("r", "k as other", "v"), on={"k": "other"})
    ),
    "a table of changes": lambda s: s.key_by("k").count("n", into="n").changelog("log").as_table("x", "k"),
    "totals of a table of changes": lambda s: (
        s.key_by("k", "v")
        .count("n", into="n")
        .changelog("log")
        .as_table("table", ("k", "v"))
        .key_by("k")
        .aggregate("x", t="sum(n)")
    ),
    "changes of a top": lambda s: s.key_by("k").top("x", 3, "v desc, ts"),
    "changes of sessions": lambda s: s.key_by("k").window(ps.session("2s"), mode="update").aggregate("x", n="count(*)"),
}
"""Tables whose rows change; what they come to is what their changelog comes to."""
LATE: dict[str, Make] = {
    "tumbling": lambda s: s.key_by("k").window(ps.tumbling("10s"), lateness="30s").aggregate("x", t="sum(v)"),
    "sliding": lambda s: s.key_by("k").window(ps.sliding("20s", "5s"), lateness="30s").aggregate("x", n="count(*)"),
    "tumbling with early results": lambda s: (
        s.key_by("k").window(ps.tumbling("10s"), lateness="30s", early=ps.every_records(2)).aggregate("x", n="count(*)")
    ),
    "of a reduce": lambda s: (
        s.select("y", "k", "ts", "v").key_by("k").window(ps.tumbling("10s"), lateness="30s").reduce("x", max)
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


def both(graph: Graph, sources: str, seed: int, late: int = 0) -> tuple[Host, Host]:
    records = records_of(random.Random(seed), sources, 150)
    return in_one_batch(graph, records, END, NOW), hostile(graph, records, END, NOW, seed, late)


SIGNS = {"insert": 1, "update_after": 1, "update_before": -1, "delete": -1}


def total(changes: Iterable[tuple[Any, ...]]) -> Counter[Any]:
    """What changes come to."""
    made: Counter[Any] = Counter()
    for op, *row in changes:
        made[tuple(row)] += SIGNS[op]
    return Counter({row: n for row, n in made.items() if n})


def last_rows(graph: Graph, host: Host) -> dict[tuple[Any, ...], Any]:
    """The last row of each key."""
    output = graph.output(graph.sinks[0].inputs[0])
    updates = output.schema.names if output.updates is None else output.updates
    keys = [output.schema.names.index(k) for k in updates]
    return {tuple(r[k] for k in keys): r for r in host.out["out"]}


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
    whole, pieces = (last_rows(graph, host) for host in both(graph, "a", seed))
    assert pieces == whole


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", CHANGES)
def test_changes_come_to_the_same_whatever_the_host_does(name: str, seed: int) -> None:
    graph = flow_of(lambda s: CHANGES[name](s).changelog("changes"))
    whole, pieces = (total(host.out["out"]) for host in both(graph, "a", seed))
    assert pieces == whole
    assert whole, "there is something to compare"
    assert min(whole.values()) > 0, "nothing is taken back that was not there"


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", LATE)
def test_late_records_correct_windows_that_are_kept(name: str, seed: int) -> None:
    """Time moves up to eight seconds past records that are still to come; windows are kept for thirty."""
    graph = flow_of(LATE[name])
    by = [graph.output(graph.sinks[0].inputs[0]).schema.names.index(n) for n in ("k", "window_start")]
    whole, pieces = ({tuple(r[i] for i in by): r for r in h.out["out"]} for h in both(graph, "a", seed, late=8))
    assert pieces == whole


@pytest.mark.parametrize("seed", range(3))
def test_early_results_of_sessions_end_with_the_sessions(seed: int) -> None:
    def sessions(early: Any) -> Make:
        return lambda s: s.key_by("k").window(ps.session("2s"), early=early).aggregate("x", n="count(*)")

    plain = both(flow_of(sessions(None)), "a", seed)[0].out["out"]
    for host in both(flow_of(sessions(ps.every_records(2))), "a", seed):
        assert Counter(plain) - Counter(row[: len(plain[0])] for row in host.out["out"]) == Counter()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("windows", [ps.tumbling("10s"), ps.session("1s")], ids=repr)
def test_a_record_is_in_a_window_or_late(windows: Any, seed: int) -> None:
    flow = ps.Flow("f")
    source = flow.source("a", ps.items([], SCHEMA), event_time="ts")
    counted = source.key_by("k").window(windows).aggregate("x", n="count(*)", t="sum(v)")
    counted.sink("out", ps.console())
    counted.side("late").sink("late", ps.console())
    host = both(flow.graph, "a", seed, late=8)[1]
    late = [row[2] for row in host.out["late"]]
    assert late
    records = [values[2] for _, values, _ in records_of(random.Random(seed), "a", 150)]
    assert sum(row[3] for row in host.out["out"]) + len(late) == len(records)
    assert sum(row[4] for row in host.out["out"]) + sum(late) == sum(records)


@pytest.mark.parametrize("seed", range(3))
def test_bolts_emit_the_same_whatever_the_host_does(seed: int) -> None:
    top = ps.Topology("t")
    top.spout("a", ps.items([], SCHEMA))
    top.bolt("split", Split, parallelism=2).shuffle("a")
    top.bolt("count", Counting, parallelism=3).fields("split", "k", stream="low")
    top.bolt("again", Counting, parallelism=2).fields("split", "k", stream="high")
    for name in ("count", "again"):
        top.sink(f"{name}-out", ps.console(), from_=name)
    whole, pieces = both(top.graph, "a", seed)
    for name in ("count-out", "again-out"):
        assert Counter(pieces.out[name]) == Counter(whole.out[name])
        assert whole.out[name]


@pytest.mark.parametrize("seed", range(3))
def test_broadcast_rules_hold_for_what_follows_them(seed: int) -> None:
    flow = ps.Flow("f")
    rules, events = (flow.source(n, ps.items([], SCHEMA)) for n in "ab")
    events.with_broadcast("x", rules, Above, "k string, v int", key="k").sink("out", ps.console())
    rolled = random.Random(seed)
    records = [*records_of(rolled, "a", 12), *records_of(rolled, "b", 120)]
    whole, pieces = in_one_batch(flow.graph, records, END, NOW), hostile(flow.graph, records, END, NOW, seed)
    assert Counter(pieces.out["out"]) == Counter(whole.out["out"])
    assert whole.out["out"]


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
