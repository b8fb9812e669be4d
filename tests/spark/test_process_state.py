"""A process step over state files against the same over a dict: timers, state that is forgotten, cells that are gained. No JVM."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import penstock as ps
from penstock.graph.graph import Graph
from penstock.graph.nodes import Port
from penstock.graph.state.layout import Column, Layout
from penstock.graph.state.timers import CLOCKS
from penstock.graph.times import FOREVER, NEVER, Times
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.chunk import Chunk
from penstock.state import file as statefile
from penstock.state.memory import MemoryState
from penstock.state.memory_timers import MemoryTimers
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage

SECOND = 1_000_000


def flow_of(logic: Any, keys: tuple[str, ...] = ("k",)) -> Graph:
    flow = ps.Flow("f")
    rows = flow.source("rows", ps.items([], "k string, n int, at timestamp"), event_time="at")
    rows.key_by(*keys).process("step", logic, "text string").sink("out", ps.console())
    return flow.graph


def hash_of(key: Any) -> int:
    return hash(key) & ~127


def batch(
    graph: Graph, state: Any, rows: list[Any], times: Times, timers: Any = None, wakes: dict[str, int] | None = None
) -> list[str]:
    """One batch over a state; what came out. `wakes` gets when the step next has work."""
    node = graph.node("step")
    pipeline = Pipeline([kernel_of(node, graph)], [Port("step")])
    kept = state.timers(times) if isinstance(state, FileState) else timers or MemoryTimers()
    pipeline.open(Context(state=lambda name: state, timers=lambda name: kept))
    pipeline.begin(lambda step: times)
    port = node.inputs[0]
    names = graph.output(port).schema.names
    made: list[str] = []
    for at in range(0, len(rows), 7):
        part = rows[at : at + 7]
        columns = [list(c) for c in zip(*part, strict=True)]
        hashes = [hash_of(tuple(r[names.index(k)] for k in node.keys)) for r in part]  # type: ignore[attr-defined]
        chunk = Chunk(graph.output(port).schema, columns=columns, key_hashes=hashes)
        made += [r.text for _, c in pipeline.take(port, chunk) for r in c.rows()]
    made += [r.text for _, c in pipeline.barrier() for r in c.rows()]
    pipeline.close()
    if wakes is not None:
        wakes |= {clock: pipeline.wake(clock) for clock in CLOCKS}
    return made


class Everything(ps.Process):
    """Cells of all kinds, timers of both clocks, things that are forgotten."""

    n = ps.value(int, default=0)
    brief = ps.value(int, default=0, ttl="20s")
    words = ps.list_of(str, ttl="1m")
    seen = ps.map_of(int, int)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.n += 1
        if row.n % 3 == 0:
            self.brief += 1
            self.words.append(str(row.n))
        if row.n % 4 == 0:
            self.seen[row.n] = self.n
            self.set_timer(row.at + timedelta(seconds=row.n), str(row.n % 5))
        if row.n % 5 == 0:
            self.set_timer(timedelta(seconds=row.n), clock="processing")
        if row.n % 17 == 0:
            self.clear()
        yield f"{self.key} {self.n} {self.brief} {len(self.words)} {self.event_time}"

    def on_timer(self, timer: Any) -> Iterator[Any]:
        yield f"{self.key} {timer} {self.n} {self.brief} {sorted(self.seen.items())}"
        if timer.clock == "event" and self.n % 2:
            self.set_timer(timer.at + timedelta(seconds=3), "again")
            self.n += 1
        if self.n % 7 == 0:
            self.clear()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("keys", [("k",), ("k", "n")])
def test_files_and_a_dict_give_the_same(tmp_path: Path, seed: int, keys: tuple[str, ...]) -> None:
    rolled = random.Random(seed)
    graph, store, memory, timers = (
        flow_of(Everything, keys),
        StateStore(LocalStorage(tmp_path), run="r"),
        MemoryState(),
        MemoryTimers(),
    )
    late, clock = NEVER, 0
    for version in range(12):
        ahead = max(late, 0) + rolled.randint(0, 20) * SECOND
        watermark, now = (FOREVER if version == 11 else ahead), clock + rolled.randint(0, 30) * SECOND
        times = Times(late, watermark, clock, now)
        rows = [_row(rolled, max(late, 0)) for _ in range(rolled.randint(0, 25))]
        files = FileState(store.begin(version, {"step": 1}, version - 1)["step"], 0)
        noted, asked = dict[str, int](), dict[str, int]()
        made = batch(graph, files, rows, times, wakes=noted)
        assert sorted(made) == sorted(batch(graph, memory, rows, times, timers, asked))
        files.save(noted)
        wakes = store.publish(version)
        assert noted == asked, "a step is woken when it must be, and not sooner"
        assert wakes.event.get("step", FOREVER) == asked["event"]
        assert wakes.clock.get("step", FOREVER) == asked["processing"]
        late, clock = watermark, now


def _soon(time: int) -> int | None:
    return time if time < FOREVER else None


def _row(rolled: random.Random, late: int) -> Any:
    from penstock.graph.times import to_moment

    return rolled.choice("abcde"), rolled.randint(1, 20), to_moment(late + rolled.randint(0, 40) * SECOND)


class Before(ps.Process):
    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.n += row.n
        yield str(self.n)


class After(ps.Process):
    n = ps.value(int, default=0)
    more = ps.value(str, default="new")
    items = ps.list_of(int)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.n += row.n
        self.items.append(row.n)
        yield f"{self.n} {self.more} {self.items}"
        self.more = "kept"


def test_cells_may_be_gained(tmp_path: Path) -> None:
    store = StateStore(LocalStorage(tmp_path), run="r")
    given = []
    for version, logic in enumerate((Before, After, After)):
        state = FileState(store.begin(version, {"step": 1}, version - 1)["step"], 0)
        rows = [(k, 1, None) for k in "ab"[: 2 - version % 2]]
        given.append(batch(flow_of(logic), state, rows, Times()))
        state.save()
        store.publish(version)
    assert given == [["1", "1"], ["2 new [1]"], ["3 kept [1, 1]", "2 new [1]"]]


class Reader(ps.Process):
    n = ps.value(int, default=0)
    words = ps.list_of(str)

    def on_event(self, row: Any) -> Iterator[Any]:
        if row.n:
            self.n = row.n
            self.words.append("x")
        yield f"{self.n}"


def test_a_key_that_is_only_read_is_not_written(tmp_path: Path) -> None:
    store, graph = StateStore(LocalStorage(tmp_path), run="r"), flow_of(Reader)
    for version, n in enumerate((5, 0)):
        state = FileState(store.begin(version, {"step": 1}, version - 1)["step"], 0)
        assert batch(graph, state, [("a", n, None), ("b", n, None)], Times()) == ["5", "5"]
        assert len(state.touched) == (2 if n else 0)
        state.save()
        store.publish(version)
    assert len(list(tmp_path.rglob("*.state"))) == 1


def test_few_keys_of_a_large_file_touch_few_regions(tmp_path: Path) -> None:
    layout = Layout((Column("k", pa.int64()),), (Column("t", pa.string(), str),), single=True, bare=True)
    store, many = StateStore(LocalStorage(tmp_path), run="r"), 100_000
    hashes = (np.random.default_rng(7).permutation(many).astype(np.int64) << 40).tolist()
    state = FileState(store.begin(0, {"step": 1}, -1)["step"], 0)
    state.describe(layout)
    state.prefetch(list(range(many)), hashes)
    for key in range(many):
        state.put(key, f"text {key}")
    state.save()
    store.publish(0)
    again = FileState(store.begin(1, {"step": 1}, 0)["step"], 0)
    again.describe(layout)
    again.prefetch([7, 99_999, -1], [hashes[7], hashes[99_999], 128])
    assert [again.get(7), again.get(99_999), again.get(-1)] == ["text 7", "text 99999", None]
    opened = statefile.open_file(store.storage, store.read(0)["step"][0])
    assert 0 < opened.checked.sum() < len(opened.checked) / 2
    everything = FileState(store.begin(1, {"step": 1}, 0)["step"], 0)
    everything.describe(layout)
    everything.prefetch(list(range(many)), hashes)
    assert all(everything.get(key) == f"text {key}" for key in range(many))
