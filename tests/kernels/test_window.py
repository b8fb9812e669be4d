"""Windows from parts, in columns, against windows from records, a key at a time: equal, whatever the batches."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.graph.graph import Graph
from penstock.graph.nodes import LATE, Port, Window
from penstock.graph.times import FOREVER, NEVER, Times, to_micros, to_moment
from penstock.graph.windows import SessionWindow, TimeWindow
from penstock.kernels.base import Context, Kernel
from penstock.kernels.build import kernel_of
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.windows.window import WindowFold, gap_getter
from penstock.state.memory import MemoryState, MemoryTable
from penstock.state.memory_timers import MemoryTimers

SECOND = 1_000_000
BASE = to_micros(to_moment(1_700_000_000 * SECOND))
AGGREGATES: dict[str, Any] = {
    "n": "count(*)",
    "known": "count(v)",
    "total": "sum(v)",
    "low": "min(v)",
    "high": "max(v)",
    "mean": "avg(v)",
    "first": "first(v)",
    "last": "last(v)",
    "all": "collect_list(v)",
    "kinds": "count(distinct v)",
    "best": "top(2, v)",
    "middle": "median(v)",
}


def graph_of(spec: Any) -> Graph:
    flow = ps.Flow("w")
    source = flow.source("s", ps.items([], "k string, ts timestamp, v int, gap int"), event_time="ts")
    source.key_by("k").window(spec).aggregate("w", **AGGREGATES).sink("out", ps.console())
    return flow.graph


class Host:
    """Runs a kernel, batch after batch."""

    def __init__(self, graph: Graph) -> None:
        self.graph, self.table, self.state = graph, MemoryTable(), MemoryState()
        self.timers = MemoryTimers()
        self.out: list[Any] = []
        self.late = 0

    def kernel(self, times: Times) -> Kernel:
        made = kernel_of(self.graph.node("w"), self.graph)
        made.open(Context(state=lambda _: self.state, table=lambda _: self.table, timers=lambda _: self.timers))
        made.begin(times)
        return made

    def batch(self, chunks: list[Chunk], times: Times) -> None:
        kernel = self.kernel(times)
        for port, chunk in [*(given for each in chunks for given in kernel.take(each)), *kernel.advance(kernel.times)]:
            self.late += len(chunk) if port == LATE else 0
            self.out += chunk.values() if port == "out" else ()
        self.late += kernel.counters.late
        self.table.settle()


def parts(graph: Graph, records: list[Any]) -> Chunk:
    """What Spark makes of records before the shuffle."""
    of: Window = graph.node("w@parts").of  # type: ignore[attr-defined]  # the half that the compiler made
    schema = graph.output(graph.node("w@parts").inputs[0]).schema
    folding = WindowFold(replace(of, parts=False), schema)
    groups: dict[Any, list[Any]] = {}
    for values in records:
        groups.setdefault((values[0], *_pane(of, values, schema)), []).append(values)
    rows = [_row(of, key, mine, folding) for key, mine in groups.items()]
    return Chunk.of(graph.node("w@parts").output().schema, rows)


def _pane(of: Window, values: Any, schema: Any) -> tuple[int, ...]:
    time = to_micros(values[1])
    if isinstance(of.spec, TimeWindow):
        return (of.spec.pane_of(time),)
    assert isinstance(of.spec, SessionWindow)
    gap = gap_getter(of.spec, schema)(values, None)
    return (time - time % gap, gap)


def _row(of: Window, key: Any, mine: list[Any], folding: WindowFold) -> Any:
    merged = None
    for values in mine:
        merged = folding.merge(merged, folding.begin(values, None))
    assert merged is not None
    if isinstance(of.spec, TimeWindow):
        return (*key, *merged, len(mine))
    times = [to_micros(v[1]) for v in mine]
    return (key[0], min(times), max(times) + key[2], *merged, len(mine))


SPECS = [
    ps.tumbling("10s"),
    ps.tumbling("10s", offset="3s"),
    ps.sliding("60s", every="10s"),
    ps.sliding("25s", every="10s"),
    ps.tumbling("1h", timezone="Asia/Kolkata"),
    ps.session("15s"),
    ps.session(ps.col("gap")),
]


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("spec", SPECS, ids=str)
def test_parts_in_columns_give_what_records_give_one_by_one(spec: Any, seed: int) -> None:
    assert compared(spec, seed, behind=11) == 0


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("spec", SPECS[:4], ids=str)
def test_the_same_records_are_late(spec: Any, seed: int) -> None:
    assert compared(spec, seed, behind=-300) > 0


def compared(spec: Any, seed: int, behind: int) -> int:
    """Runs both, with a watermark so many seconds behind the latest record; gives how many records were late."""
    rolled = random.Random(seed)
    plain = graph_of(spec)
    split = compile_graph(plain).graph
    one, two = Host(plain), Host(split)
    late, clock = NEVER, 0
    records = [
        (rolled.choice(["a", "b", None]), time, rolled.choice([None, *range(9)]), rolled.choice([5, 20]))
        for time in _clock(rolled)
    ]
    while records:
        many = rolled.randint(0, 40)
        mine, records = records[:many], records[many:]
        mark = max(late, clock - behind * SECOND if clock else NEVER)
        clock = max([clock, *(m[1] for m in mine)])
        batch = [(k, to_moment(t), v, g) for k, t, v, g in mine]
        times = Times(previous=late, watermark=mark)
        one.batch([Chunk.of(plain.output(Port("s@time")).schema, batch)], times)
        two.batch([parts(split, batch)] if batch else [], times)
        assert _plain(one.out) == _plain(two.out)
        late = mark
    end = Times(previous=late, watermark=FOREVER)
    one.batch([], end)
    two.batch([], end)
    assert _plain(one.out) == _plain(two.out)
    assert len(one.out) == len(set(_plain(one.out)))
    assert not one.state.kept
    assert two.table.rows is None
    assert one.late == two.late
    return one.late


def _clock(rolled: random.Random) -> list[int]:
    """Times that go up, each up to ten seconds behind the latest, with gaps; the watermark stays eleven seconds behind."""
    time, made = BASE, []
    for _ in range(rolled.randint(50, 250)):
        time += rolled.choice([0, 0, 1, 3, 7, 40]) * SECOND
        made.append(time - rolled.randint(0, 10) * SECOND)
    return made


def _plain(rows: list[Any]) -> Counter[str]:
    return Counter(repr([v.isoformat() if hasattr(v, "isoformat") else v for v in row]) for row in rows)


def test_a_late_record_that_only_touches_an_open_session_is_late_however_it_comes() -> None:
    plain = graph_of(ps.session("10s"))
    split = compile_graph(plain).graph
    one, two = Host(plain), Host(split)
    open_one, touching = ("a", to_moment(BASE + 20 * SECOND), 1, 0), ("a", to_moment(BASE + 10 * SECOND), 2, 0)
    late = BASE + 20 * SECOND
    for rows, times in (([open_one], Times(NEVER, late)), ([touching], Times(late, late)), ([], Times(late, FOREVER))):
        one.batch([Chunk.of(plain.output(Port("s@time")).schema, rows)] if rows else [], times)
        two.batch([parts(split, rows)] if rows else [], times)
    assert (one.late, two.late) == (1, 1)
    assert [row[3] for row in one.out] == [row[3] for row in two.out] == [1]
