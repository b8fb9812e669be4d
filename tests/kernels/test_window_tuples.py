"""Windows of stateful bolts: pages in the state of the task, memory within its limit, and the same windows as without pages."""

from __future__ import annotations

import pickle
import random
from typing import Any

import pytest

import penstock as ps
from penstock.errors import StateError, StepError
from penstock.graph.logic.topology.bolts import KeyValueState
from penstock.kernels.topology.task_state import TaskState
from penstock.kernels.topology.window_tuples import PagedTuples, Pages, TupleList
from penstock.kernels.topology.windows import WindowEvents
from penstock.local.run import CommittedState, LocalRun
from penstock.state.memory import MemoryState
from penstock.testing import BARRIER, CRASH, run_local


class Sums(ps.WindowedBolt):
    outputs = "tuples array<int>, new array<int>, expired array<int>"

    def process_window(self, window: Any) -> Any:
        yield tuple([tup.n for tup in part] for part in (window.tuples, window.new, window.expired))


class StatefulSums(Sums, ps.StatefulWindowedBolt):
    in_memory = 8

    def init_state(self, state: Any) -> None:
        self._state = state

    def process_window(self, window: Any) -> Any:
        self._state["windows"] = self._state.get("windows", 0) + 1
        assert list(self._state) == ["windows"], "pages are not among the user's entries"
        return super().process_window(window)


def windows(base: type[Any], given: list[Any], **about: Any) -> list[Any]:
    bolt = type("Own", (base,), about)
    top = ps.Topology("windows")
    top.spout("numbers", ps.items([], "n int, at bigint"))
    top.bolt("own", bolt()).global_("numbers")
    top.sink("out", ps.console(), from_="own")
    return run_local(top, {"numbers": given})["out"]


SHAPES: list[dict[str, Any]] = [
    {"window": 50, "slide": 7},
    {"window": 30},
    {"window": 20, "slide": 3, "timestamp_field": "at", "lag": "5s"},
    {"window": "40s", "slide": "10s", "timestamp_field": "at", "lag": "5s"},
    {"window": "10s", "timestamp_field": "at"},
]


@pytest.mark.parametrize("about", SHAPES, ids=str)
def test_windows_past_the_limit_of_memory_are_those_of_a_plain_bolt(about: dict[str, Any]) -> None:
    """200 tuples, of which 8 may be in memory; over batches and crashes, and out of order by event time."""
    rolled = random.Random(7)
    given: list[Any] = [(n, 1000 * max(0, n + rolled.randint(-6, 6))) for n in range(200)]
    for at in (30, 61, 90, 150):
        given.insert(at, BARRIER)
    given.insert(100, CRASH)
    plain = windows(Sums, given, **about)
    assert len(plain) > 3
    assert windows(StatefulSums, given, **about) == plain


class Counting(MemoryState):
    """Knows the pages that are in memory as a store on disk would have them."""

    def __init__(self) -> None:
        super().__init__()
        self.near: set[Any] = set()
        self.most = 0

    def prefetch(self, keys: list[Any], hashes: list[int] | None) -> None:
        self.near |= set(keys)
        self.most = max(self.most, len(self.near))

    def release(self, keys: list[Any]) -> None:
        self.near -= set(keys)


def test_going_over_a_window_keeps_memory_within_the_limit() -> None:
    """10,000 tuples in pages of 250, of which 1,000 tuples may be in memory: never more than three pages are, beside the one that fills."""
    state = Counting()
    pages = Pages.of(1000)
    held = PagedTuples(pages, TaskState(state, 0, apart=True), 1000)
    for number in range(10_000):
        held.add(number, f"tuple {number}")
    state.near.clear()
    state.most = 0
    window = TupleList(held, range(10_000))
    assert [tup for tup in window if tup.endswith("9999")] == ["tuple 9999"]
    assert (pages.size, state.most) == (250, 3)
    assert window[-1] == "tuple 9999"
    assert window[3:5] == ["tuple 3", "tuple 4"]
    held.drop(range(9_999))
    assert len(state.kept) == 1, "pages without tuples are gone"


class Steps(ps.StatefulBolt):
    """Notes what it is told, in order."""

    outputs = "said string"
    said: list[str] = []

    def init_state(self, state: Any) -> None:
        self._state = state
        self.said.append(f"init {dict(state)}")

    def process(self, tup: Any) -> None:
        self._state.put(tup.word, self._state.get(tup.word, 0) + 1)
        if tup.word == "undo":
            self._state.rollback()
        if tup.word == "keep":
            self._state.commit()
        if tup.word == "bad":
            raise ValueError("bad word")

    def pre_prepare(self, txid: int) -> None:
        self.said.append(f"prepare {txid} {sorted(self._state)}")

    def pre_commit(self, txid: int) -> None:
        self.said.append(f"commit {txid}")

    def pre_rollback(self) -> None:
        self.said.append(f"rollback {sorted(self._state)}")


def steps(*given: Any) -> list[str]:
    top = ps.Topology("steps")
    top.spout("words", ps.items([], "word string"))
    top.bolt("steps", Steps()).global_("words")
    Steps.said = []
    run_local(top, {"words": list(given)})
    return Steps.said


def test_a_state_is_prepared_and_committed_with_each_batch() -> None:
    said = steps("a", "b", BARRIER, "c")
    assert said[0] == "init {}"
    assert said[1:5] == ["prepare 0 ['a', 'b']", "commit 0", "prepare 1 ['a', 'b', 'c']", "commit 1"]
    assert not any(each.startswith("rollback") for each in said)


def test_a_rollback_takes_back_what_was_not_committed() -> None:
    said = steps("a", "keep", "b", "undo")
    assert "prepare 0 ['a', 'keep']" in said


def test_a_crash_begins_again_with_the_committed_state() -> None:
    said = steps("a", BARRIER, "b", CRASH)
    assert "init {'a': 1}" in said
    assert "rollback ['a', 'b']" in said


def test_a_batch_that_fails_is_rolled_back() -> None:
    with pytest.raises(StepError, match="bad word"):
        steps("a", BARRIER, "b", "bad")
    assert "rollback ['a', 'b', 'bad']" in Steps.said
    assert not any(each.startswith("commit 1") for each in Steps.said)


def test_an_entry_may_be_deleted_and_put_again() -> None:
    kept: dict[Any, Any] = {"a": 1, "b": 2}
    state = KeyValueState(kept)
    assert state.delete("a") == 1
    assert state.delete("a") is None
    assert sorted(state) == ["b"]
    state.put("a", 5)
    state["c"] = 3
    assert (sorted(state), len(state)) == (["a", "b", "c"], 3)
    state.delete("b")
    state.commit()
    assert kept == {"a": 5, "c": 3}


@pytest.mark.parametrize("base", [Sums, StatefulSums])
def test_the_windows_of_a_task_that_is_no_more_go_on_in_another(base: type[Any]) -> None:
    """Four tasks have ten tuples each, in no window yet; one task goes on with all forty, by the order in which they came."""

    class Own(base):  # type: ignore[misc]  # one of two
        window = 50

    def run(tasks: int, numbers: range, states: dict[str, bytes] | None = None) -> LocalRun:
        top = ps.Topology("windows")
        top.spout("numbers", ps.items([], "n int, at bigint"))
        top.bolt("own", Own(), tasks).shuffle("numbers")
        top.sink("out", ps.console(), from_="own")
        committed = CommittedState(states) if states else None
        made = LocalRun(top.graph, lambda endpoint: [], committed=committed)
        for n in numbers:
            made.push("numbers", (n, 0))
        made.barrier()
        return made

    before = run(4, range(40))
    assert before.committed.results["out"] == []
    after = run(1, range(40, 60), before.committed.states)
    [(tuples, new, expired)] = after.committed.results["out"]
    assert (sorted(tuples), sorted(new), expired) == (list(range(50)), list(range(50)), [])


def test_windows_that_another_release_kept_in_another_form_are_refused() -> None:
    kept = WindowEvents(number=3)
    assert pickle.loads(pickle.dumps(kept)) == kept
    vars(kept)["tuples"] = vars(kept).pop("held")
    with pytest.raises(StateError, match="kept by another release of Penstock"):
        pickle.loads(pickle.dumps(kept))
