"""The figures of the runs under way: what a version of the state says of them is what is in it."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import penstock as ps
from penstock.compiler.compile import compile_graph
from penstock.compiler.state_schemas import schemas_of
from penstock.graph.graph import Graph
from penstock.graph.nodes import Port
from penstock.graph.schema import schema_of
from penstock.graph.state.active_runs import MOST_SPANS, ActiveRuns, RunChanges
from penstock.graph.state.timers import EVENT
from penstock.graph.times import NEVER, Times, to_moment
from penstock.kernels.base import Context
from penstock.kernels.build import kernel_of
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.pipeline import Pipeline
from penstock.kernels.records.arrow import to_batch
from penstock.kernels.records.chunk import Chunk
from penstock.state.reader import OpenState
from penstock.state.store import StateStore
from penstock.state.tables import FileTable
from penstock.state.values import FileState
from penstock.storage.local import LocalStorage

SECOND = 1_000_000
KEY = schema_of("k string")
SCHEMA = "k string, n int, at timestamp"
A, B, C = ("n % 4 = 0", "n % 4 = 1", "n % 4 = 2")


def patterns() -> dict[str, Any]:
    loop = ps.pattern("loop").begin("a", A).followed_by("b", B, one_or_more=True).followed_by("c", C)
    return {
        "chain": ps.pattern("chain").begin("a", A).followed_by("b", B).followed_by("c", C).within("40s"),
        "loop": loop.within("30s"),
        "open": ps.pattern("open").begin("a", A).followed_by("b", B).followed_by("c", C),
        "absence": ps.pattern("absence").begin("a", A).not_followed_by("b", B).within("15s"),
        "skip": ps.pattern("skip").begin("a", A, one_or_more=True).followed_by("c", C).within("30s").after_match("past_last"),
        "few": loop.within("60s").limit(20, per="pattern"),
        "text": ps.pattern_text("every a=x -> b=y -> c=z where timer:within(20 sec)", types={"x": A, "y": B, "z": C}),
    }  # fmt: skip


def graph_of(name: str) -> Graph:
    flow = ps.Flow("f")
    events = flow.source("events", ps.items([], SCHEMA), event_time="at").key_by("k")
    if name == "many":
        several = {each: patterns()[each] for each in ("chain", "open", "absence", "few")}
        text = ps.pattern_text("every a=x -> (b=y or timer:interval(20 sec))", types={"x": A, "y": B})
        events.patterns("m", {**several, "text": text}).sink("out", ps.console())
    else:
        events.match("m", patterns()[name], select={"k": "k", "n": "count(*)"}).sink("out", ps.console())
    return compile_graph(flow.graph).graph


class Run:
    """A flow over state on disk: batch by batch, by a number of tasks that may change."""

    def __init__(self, graph: Graph, folder: Path) -> None:
        self.graph, self.folder = graph, folder
        self.store = self.opened()
        self.late = NEVER

    def opened(self) -> StateStore:
        return StateStore(LocalStorage(self.folder / "state"), run="r", schemas=schemas_of(self.graph))

    def batch(self, version: int, rows: list[Any], watermark: int, tasks: int) -> None:
        times = Times(self.late, watermark)
        files = self.store.begin(version, {"m": tasks, "m@waiting": tasks}, version - 1)
        columns = [list(column) for column in zip(*rows, strict=True)]
        hashes = key_hashes([to_batch([columns[0]], KEY).column(0)], len(rows))
        for task in range(tasks):
            state, table = FileState(files["m"], task), FileTable(files["m@waiting"], task)
            mine = np.flatnonzero(state.ranges.mask(hashes)).tolist()
            kernel = self._passed(state, table, [rows[at] for at in mine], times, tasks)
            state.save({EVENT: kernel.wake(EVENT)}, kernel.run_changes)
            table.save({EVENT: kernel.wake(EVENT)})
        self.store.publish(version)
        self.late = watermark

    def _passed(self, state: FileState, table: FileTable, rows: list[Any], times: Times, tasks: int) -> Any:
        node = self.graph.node("m")
        steps = [n for n in self.graph.nodes if n.name.startswith("m@") or n is node]
        pipeline = Pipeline([kernel_of(n, self.graph) for n in steps], [Port("m")])
        timers = state.timers(times)
        pipeline.open(Context(0, tasks, state=lambda _: state, table=lambda _: table, timers=lambda _: timers))
        pipeline.begin(lambda _: times)
        first = steps[0].inputs[0]
        if rows:
            schema = self.graph.output(first).schema
            list(pipeline.take(first, Chunk(schema, columns=[list(c) for c in zip(*rows, strict=True)])))
        list(pipeline.barrier())
        return pipeline.kernels[-1]

    def check(self, version: int) -> int:
        """Compares what the version says with what is in it; how many runs there are."""
        (exact,) = OpenState(self.folder).runs(version) or (None,)
        active = (self.store.active or {}).get("m", {})
        if exact is None:
            assert not active
            return 0
        assert sum(each.runs for each in active.values()) == exact.runs
        waiting: Counter[str] = Counter()
        for name, each in active.items():
            before = f"{name}: " if self.is_many else ""
            waiting.update({f"{before}{label}": many for label, many in each.waiting.items()})
        assert waiting == exact.waiting
        if not self.is_many:
            assert sum(each.keys for each in active.values()) == exact.keys
        assert sum(each["bytes"] for each in self.store.figures().get("m", {}).values()) <= exact.bytes
        oldest = min((each.oldest for each in active.values() if each.oldest is not None), default=None)
        if exact.oldest is None:
            assert oldest is None
        else:
            assert oldest is not None
            assert to_moment(oldest) <= exact.oldest
        return exact.runs

    @property
    def is_many(self) -> bool:
        return self.graph.node("m").kind == "match_patterns"


def rows(rolled: random.Random, late: int, many: int) -> list[Any]:
    return [
        (f"k{rolled.randint(1, 12)}", rolled.randint(0, 40), to_moment(max(late, 0) + rolled.randint(0, 50) * SECOND))
        for _ in range(many)
    ]


@pytest.mark.parametrize("name", [*patterns(), "many"])
def test_a_version_says_what_runs_are_in_it(name: str, tmp_path: Path) -> None:
    """The number of tasks changes, a driver goes on where another was, and some batches run twice."""
    rolled, run = random.Random(name), Run(graph_of(name), tmp_path)
    seen = 0
    for version in range(12):
        given = rows(rolled, run.late, 30)
        late, watermark = run.late, max(run.late, 0) + rolled.randint(3, 15) * SECOND
        if version % 3 == 1:
            run.store = run.opened()
        run.batch(version, given, watermark, rolled.choice((1, 2, 3)))
        if version % 4 == 2:
            run.late = late
            run.batch(version, given, watermark, rolled.choice((1, 2, 3)))
        seen += run.check(version)
    assert seen > 20


def test_the_oldest_run_is_known_to_a_span_of_time() -> None:
    """Runs that begin and end at random, in many batches: as many spans as may be, and the oldest is never later than it was."""
    rolled, active, under_way = random.Random(3), ActiveRuns(), list[int]()
    for batch in range(500):
        gone = [start for start in under_way if rolled.random() < 0.1]
        began = [batch * 10 + each for each in rolled.sample(range(10), rolled.randint(0, 3))]
        under_way = [*(start for start in under_way if start not in gone), *began]
        changes = RunChanges(Counter({"x": len(began) - len(gone)}), 0, 0, began, gone)
        active = active.after([changes.note(active.starts)])
        assert active.runs == len(under_way) == sum(many for _, many in active.spans)
        assert len(active.spans) <= MOST_SPANS
        assert (active.oldest is None) == (not under_way)
        if under_way and active.oldest is not None:
            assert active.oldest <= min(under_way)
            assert min(under_way) - active.oldest <= (max(under_way) - active.oldest) / 4 + 10


def test_a_version_that_could_not_be_written_counts_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch that runs again counts from the version before it."""
    rolled, run = random.Random(4), Run(graph_of("open"), tmp_path)
    run.batch(0, rows(rolled, 0, 30), 15 * SECOND, 2)
    given, late = rows(rolled, run.late, 30), run.late
    with monkeypatch.context() as full:
        full.setattr("penstock.state.store.put_note", _disk_is_full)
        with pytest.raises(OSError, match="no space"):
            run.batch(1, given, 30 * SECOND, 2)
    run.late = late
    run.batch(1, given, 30 * SECOND, 2)
    assert run.check(1) > 3


def _disk_is_full(*_: Any) -> None:
    raise OSError("no space left")
