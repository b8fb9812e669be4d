"""A key may have so many runs; what is above that is dropped, put aside, or an error."""

from __future__ import annotations

import pytest

import penstock as ps
from penstock.errors import FlowError, RunError
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.graph.nodes import Port
from penstock.graph.times import Times
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory import MemoryState
from penstock.state.memory_timers import MemoryTimers
from penstock.testing import BARRIER, run_local

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
