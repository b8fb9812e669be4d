"""What a bolt keeps: state across crashes, restarts and other numbers of tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.errors import CaptureError, StateError, StepError
from penstock.frontends.topology.topology import Topology
from penstock.graph.logic.topology.components import Bolt
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.local.run import CommittedState, LocalRun
from penstock.testing import BARRIER, CRASH, Driver, run_local


class Split(Bolt):
    outputs = "word string"
    stateful = False

    def process(self, tup: Any) -> None:
        for word in tup.line.split():
            self.emit((word,))


class Count(Bolt):
    outputs = "word string, n bigint"

    def prepare(self, context: TaskContext) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> None:
        self.counts[tup.word] = self.counts.get(tup.word, 0) + 1
        self.emit((tup.word, self.counts[tup.word]))


def words() -> Topology:
    top = Topology("words")
    top.spout("words", ps.items([], "word string"))
    return top


def counting() -> Topology:
    top = Topology("count")
    top.spout("words", ps.items([], "word string"))
    top.bolt("count", Count, parallelism=2).fields("words", "word")
    top.sink("out", ps.console(), from_="count")
    return top


def test_state_survives_a_crash_and_is_not_counted_twice() -> None:
    given = ["a", "b", BARRIER, "a", "c", CRASH, "a", BARRIER, CRASH, "b"]
    assert sorted(run_local(counting(), {"words": given})["out"]) == [
        ("a", 1), ("a", 2), ("a", 3), ("b", 1), ("b", 2), ("c", 1),
    ]  # fmt: skip


class Weighted(Bolt):
    """A setting that is not state, state that is, and something made anew."""

    outputs = "total bigint"

    def __init__(self, weight: int) -> None:
        self.weight = weight
        self.total = 0

    def prepare(self, context: TaskContext) -> None:
        self._double: Callable[[int], int] = lambda n: 2 * n

    def process(self, tup: Any) -> Any:
        self.total += self._double(self.weight)
        yield self.total


def weighted(weight: int) -> LocalRun:
    top = words()
    top.bolt("weigh", Weighted(weight)).shuffle("words")
    top.sink("out", ps.console(), from_="weigh")
    return LocalRun(top.graph, lambda endpoint: [])


def test_a_setting_that_never_changed_is_not_state() -> None:
    first = weighted(1)
    first.push("words", "a")
    first.barrier()
    second = weighted(10)
    second.committed = CommittedState(states=first.committed.states)
    second.crash()
    second.push("words", "a")
    second.barrier()
    assert second.committed.results["out"] == [(22,)]


class Merging(Count):
    def merge(self, other: dict[str, Any]) -> None:
        for word, n in other["counts"].items():
            self.counts[word] = self.counts.get(word, 0) + n


def parallel(bolt: type, tasks: int, states: dict[str, bytes] | None = None) -> LocalRun:
    top = words()
    top.bolt("count", bolt, parallelism=tasks).custom("words", lambda v: ord(v.word) % tasks)
    top.sink("out", ps.console(), from_="count")
    run = LocalRun(top.graph, lambda endpoint: [], committed=CommittedState(states) if states else None)
    for word in "abcd":
        run.push("words", word)
    run.barrier()
    return run


def test_more_tasks_keep_what_was_there() -> None:
    first = parallel(Count, 2)
    assert ("d", 2) in parallel(Count, 4, first.committed.states).committed.results["out"]


def test_fewer_tasks_need_a_merge() -> None:
    first = parallel(Count, 4)
    with pytest.raises(StateError, match=r"bolt 'count' has 2 tasks and had more.*define merge"):
        parallel(Count, 2, first.committed.states)
    merged = parallel(Merging, 2, parallel(Merging, 4).committed.states)
    assert sorted(merged.committed.results["out"]) == [("a", 2), ("b", 2), ("c", 2), ("d", 2)]


class Unsaved(Bolt):
    def process(self, tup: Any) -> None:
        self.file = (x for x in "abc")


def test_what_cannot_be_saved_is_named() -> None:
    top = words()
    top.bolt("keeps", Unsaved).shuffle("words")
    with pytest.raises(StateError, match=r"bolt 'keeps' keeps something in 'file'.*name it _file"):
        run_local(top, {"words": ["a"]})


class Uncopied(Bolt):
    def __init__(self) -> None:
        self.file = (x for x in "abc")

    def process(self, tup: Any) -> None: ...


def test_what_cannot_be_copied_for_tasks_is_refused() -> None:
    top = words()
    top.bolt("holds", Uncopied).shuffle("words")
    with pytest.raises(CaptureError, match=r"bolt 'holds'.*Make such things in prepare"):
        run_local(top, {"words": ["a"]})


class Unprepared(Split):
    def prepare(self, context: TaskContext) -> None:
        raise RuntimeError("not ready")


def test_an_error_in_prepare_is_the_users_own() -> None:
    top = Topology("prepare")
    top.spout("lines", ps.items([], "line string"))
    top.bolt("split", Unprepared).shuffle("lines")
    with pytest.raises(StepError, match="not ready"):
        run_local(top)


def test_the_driver_steps_through_a_topology() -> None:
    driver = Driver(counting())
    driver.push("words", "a", "b")
    assert len(driver.barrier()["out"]) == 2
    driver.close()


class Ending(Bolt):
    """Emits at the end of each batch what it has seen in it."""

    outputs = {"default": "batch bigint, n bigint", "words": "word string"}

    def prepare(self, context: TaskContext) -> None:
        self._seen: list[str] = []
        self.batches = 0

    def process(self, tup: Any) -> None:
        self._seen.append(tup.word)

    def end_batch(self, batch: int) -> Any:
        self.batches += 1
        seen, self._seen = self._seen, []
        self.emit((batch, len(seen)))
        return [ps.to("words", word) for word in seen]


def test_a_bolt_hears_of_the_end_of_each_batch_with_its_id() -> None:
    top = ps.Topology("ends")
    top.spout("words", ps.items([], "word string"))
    top.bolt("end", Ending).shuffle("words")
    top.sink("counts", ps.console(), from_="end")
    top.sink("out", ps.console(), from_="end", stream="words")
    driver = Driver(top)
    driver.push("words", "a", "b")
    driver.crash()
    driver.barrier()
    driver.push("words", "c")
    results = driver.barrier()
    assert results["counts"] == [(0, 2), (1, 1)]
    assert results["out"] == [("a",), ("b",), ("c",)]


def test_an_error_at_the_end_of_a_batch_names_the_bolt() -> None:
    class Broken(Ending):
        def end_batch(self, batch: int) -> Any:
            raise ValueError("no end")

    top = ps.Topology("ends")
    top.spout("words", ps.items([], "word string"))
    top.bolt("end", Broken).shuffle("words")
    driver = Driver(top)
    with pytest.raises(StepError, match="end of batch 0 in task 0"):
        driver.barrier()
