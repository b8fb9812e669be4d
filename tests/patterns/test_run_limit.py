"""A key may have so many runs; what is above that is dropped, put aside, or an error."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import penstock as ps
from penstock.errors import FlowError, RunError, StepError
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.graph.nodes import Port
from penstock.graph.state.layout import Column, Layout
from penstock.graph.times import FOREVER, Times
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory import MemoryState
from penstock.state.memory_timers import MemoryTimers
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage
from penstock.testing import BARRIER, Driver, run_local

SCHEMA = "k string, kind string, n int"
EVENTS = [("x", "a", 1), ("x", "a", 2), ("y", "a", 3), ("x", "a", 4), ("x", "b", 5), ("y", "b", 6)]


def ab() -> PatternBuilder:
    return ps.pattern("ab").begin("a", "kind = 'a'").followed_by("b", "kind = 'b'")


def flow_of(pattern: PatternBuilder, *, side: bool = False) -> ps.Flow:
    flow = ps.Flow("limit")
    events = flow.source("events", ps.items([], SCHEMA))
    found = events.key_by("k").match("m", pattern, select={"k": "k", "a": "a.n", "b": "b.n"})
    found.sink("out", ps.console())
    if side:
        found.side("dropped").sink("dropped", ps.console())
    return flow


def test_the_oldest_runs_of_a_key_are_dropped() -> None:
    rows = run_local(flow_of(ab().limit(2)), {"events": EVENTS})["out"]
    assert sorted(rows) == [("x", 2, 5), ("x", 4, 5), ("y", 3, 6)]


def test_it_does_not_matter_where_a_batch_ends() -> None:
    cut = [each for event in EVENTS for each in (event, BARRIER)]
    rows = run_local(flow_of(ab().limit(2)), {"events": cut})["out"]
    assert sorted(rows) == [("x", 2, 5), ("x", 4, 5), ("y", 3, 6)]


def test_runs_that_are_dropped_can_be_read() -> None:
    made = run_local(flow_of(ab().limit(1, "aside"), side=True), {"events": EVENTS})
    assert sorted(made["out"]) == [("x", 4, 5), ("y", 3, 6)]
    assert sorted(made["dropped"]) == [("x", 1, None), ("x", 2, None)]


def test_too_many_runs_can_be_an_error() -> None:
    with pytest.raises(RunError, match="a key has 3 runs, and may have 2"):
        run_local(flow_of(ab().limit(2, "fail")), {"events": EVENTS})


def test_a_limit_that_is_not_reached_changes_nothing() -> None:
    given = {"events": EVENTS}
    assert sorted(run_local(flow_of(ab().limit(3)), given)["out"]) == sorted(run_local(flow_of(ab()), given)["out"])


def test_what_is_no_limit_is_refused() -> None:
    with pytest.raises(FlowError, match="one run or more"):
        ab().limit(0)
    with pytest.raises(FlowError, match="no policy 'forget'"):
        ab().limit(5, "forget")


def test_a_group_has_no_limit_of_its_own() -> None:
    with pytest.raises(FlowError, match="belong to the whole pattern"):
        ps.pattern("p").begin(ab().limit(5))


@pytest.mark.parametrize(
    ("pattern", "counts"),
    [
        (ab(), {"matches": 4}),
        (ab().limit(1), {"matches": 2, "dropped": 2}),
        (ab().after_match("past_last"), {"matches": 2, "pruned": 2}),
    ],
)
def test_runs_that_end_are_counted_by_how(pattern: PatternBuilder, counts: dict[str, int]) -> None:
    graph = flow_of(pattern).graph
    kernel = kernel_of(graph.node("m"), graph)
    state, timers = MemoryState(), MemoryTimers()
    kernel.open(Context(state=lambda step: state, timers=lambda step: timers))
    kernel.begin(Times(0, 0, 1, 0))
    port: Port = graph.node("m").inputs[0]
    columns = [list(column) for column in zip(*EVENTS, strict=True)]
    hashes = [ord(key) for key in columns[0]]
    list(kernel.take(Chunk(graph.output(port).schema, columns=columns, key_hashes=hashes)))
    list(kernel.advance(Times(0, 0, 1, 0)))
    assert kernel.counters.runs == counts


SHARED = [("x", "a", 1), ("y", "a", 2), ("z", "a", 3), ("x", "a", 4)]
DONE = [(key, "b", 9) for key in "xyz"]


def by_batch(pattern: PatternBuilder, *, side: bool = False) -> dict[str, list[tuple[object, ...]]]:
    """What comes out where each event is a batch; processing time moves, so that runs have an age."""
    driver = Driver(flow_of(pattern, side=side))
    for event in (*SHARED, *DONE):
        driver.push("events", event)
        driver.clock.advance(1)
        made = driver.barrier()
    return {sink: sorted(map(tuple, rows)) for sink, rows in made.items()}


def test_the_oldest_runs_of_all_keys_are_dropped() -> None:
    assert by_batch(ab().limit(2, per="pattern"))["out"] == [("x", 4, 9), ("z", 3, 9)]
    assert len(by_batch(ab().limit(4, per="pattern"))["out"]) == 4


def test_runs_above_the_limit_of_a_pattern_can_be_read() -> None:
    made = by_batch(ab().limit(2, "aside", per="pattern"), side=True)
    assert made["out"] == [("x", 4, 9), ("z", 3, 9)]
    assert made["dropped"] == [("x", 1, None), ("y", 2, None)]


def test_too_many_runs_of_a_pattern_can_be_an_error() -> None:
    with pytest.raises((RunError, StepError), match="the pattern has 3 runs in a task, and may have 2"):
        by_batch(ab().limit(2, "fail", per="pattern"))


def test_a_limit_of_a_pattern_is_that_of_the_batch_as_a_whole() -> None:
    """Runs that end in the batch in which they began take no room."""
    flow = flow_of(ab().limit(1, per="pattern"))
    assert len(run_local(flow, {"events": [*SHARED, *DONE]})["out"]) == 4


@pytest.mark.parametrize("seed", range(3))
def test_sizes_of_lists_are_those_of_all_keys(tmp_path: Path, seed: int) -> None:
    """In files, however often keys were changed and deleted, and in memory."""
    rolled = random.Random(seed)
    layout = Layout((Column("k", pa.int64()),), (Column("runs", pa.list_(pa.int64())), Column("n", pa.int64())))
    memory, store = MemoryState(), StateStore(LocalStorage(tmp_path / "state"))
    memory.describe(layout)
    for batch in range(12):
        state = FileState(store.begin(batch, {"m": 1}, batch - 1)["m"], 0)
        state.describe(layout)
        for _ in range(rolled.choice((1, 5, 40))):
            key = (rolled.randint(0, 60),)
            state.prefetch([key], [key[0] << 40])
            is_gone, value = rolled.random() < 0.3, ([1] * rolled.randint(0, 4), 7)
            for each in (state, memory):
                each.delete(key) if is_gone else each.put(key, value)
        assert state.sizes("runs") == memory.sizes("runs")
        state.save({"event": FOREVER, "processing": FOREVER})
        store.publish(batch)


def test_what_is_no_limit_of_a_pattern_is_refused() -> None:
    with pytest.raises(FlowError, match="per 'key' or per 'pattern', got 'task'"):
        ab().limit(3, per="task")
    events = ps.Flow("f").source("events", ps.items([], SCHEMA)).key_by("k")
    with pytest.raises(FlowError, match="expected a limit that drops or fails"):
        events.patterns("p", {"ab": ab().limit(3, "aside", per="pattern")})


def among_others(pattern: PatternBuilder) -> list[tuple[str, str, list[int]]]:
    """The matches of a pattern beside another without a limit, where each event is a batch."""
    flow = ps.Flow("limit")
    events = flow.source("events", ps.items([], SCHEMA))
    hits = events.key_by("k").patterns("p", {"few": pattern, "all": ab()})
    fields = "pattern string, k string, numbers array<int>"
    hits.map("short", lambda row: (row.pattern, row.k, [e["n"] for e in row.events]), fields).sink("out", ps.console())
    driver = Driver(flow)
    for event in (*SHARED, *DONE):
        driver.push("events", event)
        driver.clock.advance(1)
        made = driver.barrier()
    return sorted((row.pattern, row.k, row.numbers) for row in made["out"])


def test_one_of_several_patterns_has_a_limit() -> None:
    every = [("all", "x", [1, 9]), ("all", "x", [4, 9]), ("all", "y", [2, 9]), ("all", "z", [3, 9])]
    few = [("few", "x", [4, 9]), ("few", "z", [3, 9])]
    assert among_others(ab().limit(2, per="pattern")) == [*every, *few]
    with pytest.raises((RunError, StepError), match="the pattern has 3 runs in a task, and may have 2"):
        among_others(ab().limit(2, "fail", per="pattern"))
