"""What a row pattern keeps: the same answers from files as from memory, matches that stay open over many batches, and nothing for keys without any."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.graph.graph import Graph
from penstock.graph.patterns.row_pattern import MatchClause
from penstock.graph.times import FOREVER, NEVER, Times, to_moment
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory import MemoryState, MemoryTable
from penstock.state.memory_timers import MemoryTimers
from penstock.state.store import StateStore
from penstock.state.tables import FileTable
from penstock.state.values import FileState
from penstock.storage.local import LocalStorage

SECOND = 1_000_000
PATTERNS = {
    "plain": ps.row_pattern("A B+ C", define={"A": "n < 3", "B": "n > 1", "C": "n = 4"}, measures={"n": "count(*)"}),
    "within": ps.row_pattern(
        "A B* C",
        define={"B": "n > prev(n)", "C": "n > A.n"},
        measures={"m": "match_number()", "p": "prev(first(n))"},
        within="9s",
    ),
    "ends": ps.row_pattern(
        "^ A+? B | B C $", define={"B": "n = 2", "C": "next(n) is null"}, measures={"v": "classifier()"}
    ),
    "unmatched": ps.row_pattern("A{3}", define={"A": "n >= 2"}, rows="all with unmatched", after_match="to next row"),
}


class Memory:
    """State in memory, which lasts."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] = {}

    def context(self, version: int, times: Times) -> Context:
        return Context(
            state=lambda name: self.kept.setdefault(name, MemoryState()),
            table=lambda name: self.kept.setdefault(name, MemoryTable()),
            timers=lambda name: self.kept.setdefault(f"{name} timers", MemoryTimers()),
        )

    def end(self, version: int) -> None:
        """Nothing is written."""


class Files:
    """State in files, opened anew for each batch."""

    def __init__(self, folder: Path) -> None:
        self.store = StateStore(LocalStorage(folder), run="r")

    def context(self, version: int, times: Times) -> Context:
        files = self.store.begin(version, {"x": 1, "x@waiting": 1}, version - 1)
        self.state, self.table = FileState(files["x"], 0), FileTable(files["x@waiting"], 0)
        return Context(
            state=lambda name: self.state,
            table=lambda name: self.table,
            timers=lambda name: self.state.timers(times) if name == "x" else MemoryTimers(),
        )

    def end(self, version: int) -> None:
        self.state.save({})
        self.table.save({})
        self.store.publish(version)


def graph_of(pattern: MatchClause, schema: str, *, keyed: bool = True) -> Graph:
    source = ps.Flow("rows").source("rows", ps.items([], schema), event_time="ts")
    found = source.key_by("k").match_rows("x", pattern) if keyed else source.match_rows("x", pattern)
    found.sink("out", ps.console())
    return source.flow.graph


def batch(graph: Graph, host: Memory | Files, version: int, rows: list[Any], times: Times) -> list[tuple[Any, ...]]:
    node = graph.node("x")
    kernel = kernel_of(node, graph)
    kernel.open(host.context(version, times))
    kernel.begin(times)
    made = list(kernel.take(Chunk.of(graph.output(node.inputs[0]).schema, rows))) if rows else []
    made += list(kernel.advance(times))
    made += list(kernel.barrier())
    kernel.close()
    host.end(version)
    return [(port, *row) for port, chunk in made for row in chunk.plain_rows()]


@pytest.mark.parametrize("keyed", [True, False])
@pytest.mark.parametrize("name", PATTERNS)
def test_files_and_memory_give_the_same(tmp_path: Path, name: str, keyed: bool) -> None:
    rolled = random.Random(name)
    graph = graph_of(PATTERNS[name], "k string, n int, ts timestamp", keyed=keyed)
    memory, files, previous = Memory(), Files(tmp_path), NEVER
    for version in range(12):
        begin = max(previous, 0)
        watermark = FOREVER if version == 11 else begin + rolled.randint(0, 8) * SECOND
        rows = [
            (rolled.choice("abcd"), rolled.randint(0, 4), to_moment(begin + rolled.randint(0, 12) * SECOND))
            for _ in range(rolled.randint(0, 30))
        ]
        times = Times(previous, watermark)
        found = batch(graph, files, version, rows, times)
        assert sorted(found, key=repr) == sorted(batch(graph, memory, version, rows, times), key=repr)
        previous = watermark
    assert memory.kept["x"].kept == {}


def test_a_match_may_stay_open_over_many_batches_and_a_large_state(tmp_path: Path) -> None:
    """Four keys with 600 rows of a kilobyte each, in twelve batches: more than two megabytes are kept, and all of it goes with the matches."""
    pattern = ps.row_pattern(
        "A B+ C",
        define={"A": "n = 0", "B": "n > 0", "C": "n < 0"},
        measures={"n": "count(*)", "sum": "sum(n)", "text": "last(B.text)"},
    )
    graph, host = graph_of(pattern, "k int, n int, text string, ts timestamp"), Files(tmp_path)
    at, found = 0, []
    for version in range(13):
        numbers = [-1] if version == 12 else range(version * 50, version * 50 + 50)
        rows = [
            (k, n, f"{n:>1000}", to_moment((at + place) * SECOND)) for place, n in enumerate(numbers) for k in range(4)
        ]
        at += len(numbers)
        found += batch(
            graph, host, version, rows, Times(NEVER if not version else (at - len(numbers)) * SECOND, at * SECOND)
        )
        if version == 11:
            assert host.state.chain[-1].rows == 4
            assert sum(len(value[0]) for _, value in host.state.items()) == 2_400
    assert sorted(found) == [("out", k, 601, sum(range(600)) - 1, f"{599:>1000}") for k in range(4)]
    assert list(host.state.items()) == []


def test_a_key_that_keeps_nothing_is_not_written(tmp_path: Path) -> None:
    graph, host = graph_of(PATTERNS["plain"], "k int, n int, ts timestamp"), Files(tmp_path)
    batch(graph, host, 0, [(k, 9, to_moment(0)) for k in range(100)], Times(NEVER, SECOND))
    assert host.state.touched == {}
    assert list(host.state.items()) == []
