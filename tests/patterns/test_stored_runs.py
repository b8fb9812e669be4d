"""Runs in state on disk: what was kept in typed columns goes on as if it had never left memory."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.graph.graph import Graph
from penstock.graph.nodes import Match, Port
from penstock.graph.state.timers import EVENT
from penstock.graph.times import FOREVER, NEVER, Times, to_moment
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory import MemoryState, MemoryTable
from penstock.state.memory_timers import MemoryTimers
from penstock.state.store import StateStore
from penstock.state.tables import FileTable
from penstock.state.values import FileState
from penstock.storage.local import LocalStorage

SECOND = 1_000_000
A, B, C = ("n % 4 = 0", "n % 4 = 1", "n % 4 = 2")
PATTERNS = {
    "chain": ps.pattern("p").begin("a", A).followed_by("b", B).followed_by("c", C).within("40s"),
    "loop": ps.pattern("p").begin("a", A).followed_by("b", B, one_or_more=True).followed_by("c", C).within("30s"),
    "absence": ps.pattern("p").begin("a", A).not_followed_by("b", B).within("15s"),
    "skip": ps.pattern("p")
    .begin("a", A, one_or_more=True)
    .followed_by("c", "n % 4 = 2 and n > first(a).n")
    .within("30s")
    .after_match("next"),
}


def graph_of(pattern: Any) -> Graph:
    flow = ps.Flow("f")
    events = flow.source("events", ps.items([], "k string, n int, text string, at timestamp"), event_time="at")
    hits = events.key_by("k").match("m", pattern, select={"k": "k", "ns": "collect_list(n)", "text": "first(a).text"})
    hits.sink("out", ps.console())
    hits.side("timed_out").sink("over", ps.console())
    return compile_graph(flow.graph).graph


def context_of(state: Any, table: Any, timers: Any) -> Context:
    return Context(state=lambda _: state, table=lambda _: table, timers=lambda _: timers)


def batch(graph: Graph, context: Context, rows: list[Any], times: Times) -> tuple[list[str], int]:
    """What one batch emits, and when event time next has work."""
    node = graph.node("m")
    assert isinstance(node, Match)
    steps = [n for n in graph.nodes if n.name.startswith("m@") or n is node]
    pipeline = Pipeline([kernel_of(n, graph) for n in steps], [Port("m"), Port("m", "timed_out")])
    pipeline.open(context)
    pipeline.begin(lambda _: times)
    first = steps[0].inputs[0]
    made: list[str] = []
    if rows:
        chunk = Chunk(graph.output(first).schema, columns=[list(c) for c in zip(*rows, strict=True)])
        made += [f"{port} {row}" for port, c in pipeline.take(first, chunk) for row in c.rows()]
    made += [f"{port} {row}" for port, c in pipeline.barrier() for row in c.rows()]
    wake = pipeline.wake(EVENT)
    pipeline.close()
    return sorted(made), wake


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("many, size", [(20, 3), (2_000, 400)])
def test_state_on_disk_goes_on_as_state_in_memory(name: str, many: int, size: int, tmp_path: Path) -> None:
    """The larger case has files of more than 256 KiB."""
    rolled, graph = random.Random(f"{name}-{many}"), graph_of(PATTERNS[name])
    store = StateStore(LocalStorage(tmp_path), run="r")
    memory = (MemoryState(), MemoryTable(), MemoryTimers())
    late, emitted = NEVER, 0
    for version in range(6):
        watermark = FOREVER if version == 5 else max(late, 0) + rolled.randint(5, 25) * SECOND
        times = Times(late, watermark)
        rows = [row(rolled, max(late, 0), many, size) for _ in range(many)]
        files = store.begin(version, {"m": 1, "m@waiting": 1}, version - 1)
        state, table = FileState(files["m"], 0), FileTable(files["m@waiting"], 0)
        disk = context_of(state, table, state.timers(times))
        found, wake = batch(graph, disk, rows, times)
        assert (found, wake) == batch(graph, context_of(*memory), rows, times)
        emitted += len(found)
        state.save({EVENT: wake})
        table.save({EVENT: wake})
        store.publish(version)
        late = watermark
    assert emitted > 10
    assert not memory[0].kept, "time has ended every run"


def row(rolled: random.Random, late: int, many: int, size: int) -> Any:
    text = rolled.choice("abc") * size
    return (
        f"k{rolled.randint(1, max(5, many // 4))}",
        rolled.randint(0, 40),
        text,
        to_moment(late + rolled.randint(0, 50) * SECOND),
    )
