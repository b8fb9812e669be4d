"""Acks, replays, windows and key-value state of bolts give the same answers on every runtime."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest

import penstock as ps
from penstock.graph.logic.topology.task_context import TaskContext
from tests.same.conftest import Case

WORDS = ["a", "b", "a", "c", "a", "b", "d", "a", "c", "b", "e", "a"]


class Numbers(ps.Spout):
    outputs = "n bigint"
    reliable = True

    def __init__(self) -> None:
        self.todo = list(range(9))
        self.acked = 0

    def next_tuple(self) -> Any:
        if not self.todo:
            return ps.END
        n = self.todo.pop(0)
        self.emit(n, id=n)
        return None

    def fail(self, id: Any) -> None:
        self.todo.append(id + 100)


class Refuse(ps.BasicBolt):
    """Fails some; they come back as other numbers."""

    outputs = "n bigint"

    def process(self, tup: Any) -> Any:
        if tup.n < 100 and tup.n % 4 == 0:
            raise ps.FailedException("four")
        yield tup.n


class Threes(ps.Bolt):
    outputs = "n bigint"
    auto_ack = False

    def prepare(self, context: TaskContext) -> None:
        self.held: list[Any] = []

    def process(self, tup: Any) -> None:
        self.held.append(tup)
        if len(self.held) == 3:
            for each in self.held:
                self.emit(each.n, anchors=each)
                self.ack(each)
            self.held = []


def test_failed_messages_are_replayed_and_held_ones_are_acked_later(same: Case) -> None:
    if same.runtime == "live":
        pytest.skip("a live spout has no end; tests/e2e/test_kill_acks.py runs one")
    top = ps.Topology("acks", config={"topology.max.spout.pending": 4})
    top.spout("numbers", Numbers())
    top.bolt("refuse", Refuse(), parallelism=2).shuffle("numbers")
    top.bolt("threes", Threes()).global_("refuse")
    top.sink("out", ps.console(), from_="threes")
    expected = [n if n % 4 else n + 100 for n in range(9)]
    same.check(top, {}, {"out": [(n,) for n in expected]})


class Parts(ps.PartitionedSpout):
    """Two partitions of numbers, of which the records are read in tasks, a few at a time."""

    outputs = "part string, n bigint"
    most = 3

    def ends(self) -> dict[str, int]:
        return {"a": 7, "b": 2}

    def read(self, partition: str, first: int, end: int) -> Any:
        return [(partition, n) for n in range(first, end)]


class Once(ps.BasicBolt):
    """Fails a number when it is first seen; what it has seen is kept."""

    outputs = "part string, n bigint, component string"

    def prepare(self, context: TaskContext) -> None:
        self.seen: list[Any] = []

    def process(self, tup: Any) -> Any:
        if tup.n == 4 and tup.n not in self.seen:
            self.seen.append(tup.n)
            raise ps.FailedException("first seen")
        yield tup.part, tup.n, tup.component


def test_a_partitioned_spout_reads_in_tasks_and_reads_a_failed_range_again(same: Case) -> None:
    if same.runtime == "live":
        pytest.skip("a live spout has no end; tests/e2e/test_kill_acks.py runs one")
    top = ps.Topology("parts", config={"topology.max.spout.pending": 2})
    top.spout("parts", Parts(), parallelism=2)
    top.bolt("once", Once()).global_("parts")
    top.sink("out", ps.console(), from_="once")
    again = [3, 5]
    rows = [*(("a", n) for n in [*range(7), *again]), *(("b", n) for n in range(2))]
    same.check(top, {}, {"out": [(*row, "parts") for row in rows]})


class Entries(ps.StatefulBolt):
    outputs = "word string, n bigint"

    def init_state(self, state: Any) -> None:
        self._state = state

    def process(self, tup: Any) -> Any:
        self._state[tup.word] = self._state.get(tup.word, 0) + 1
        yield tup.word, self._state[tup.word]


class Pairs(ps.WindowedBolt):
    outputs = "words array<string>"
    window = 4

    def process_window(self, window: Any) -> Any:
        yield sorted(t.word for t in window)


@pytest.mark.live
def test_key_value_state_and_windows_by_count(same: Case) -> None:
    top = ps.Topology("state")
    top.spout("words", ps.items([], "word string"))
    top.bolt("entries", Entries(), parallelism=2).fields("words", "word")
    top.bolt("pairs", Pairs()).global_("words")
    top.sink("counts", ps.console(), from_="entries")
    top.sink("windows", ps.console(), from_="pairs")
    counted = [(w, i + 1) for w in set(WORDS) for i in range(WORDS.count(w))]
    windows = [(sorted(WORDS[at : at + 4]),) for at in range(0, len(WORDS), 4)]
    same.check(top, {"words": WORDS}, {"counts": counted, "windows": windows})


class Hour(ps.WindowedBolt):
    """Windows by the clock of the worker; what is new in each shows which tuples they got."""

    outputs = "many bigint, new bigint, expired bigint"
    window: ClassVar[int | str] = "1h"

    def process_window(self, window: Any) -> Any:
        yield len(window), len(window.new), len(window.expired)


class HourEvery20Minutes(Hour):
    slide = "20m"


class LastThreeEveryHour(Hour):
    window, slide = 3, "1h"


class HourEveryThree(Hour):
    window, slide = "1h", 3


class StatefulHour(Hour, ps.StatefulWindowedBolt):
    in_memory = 4

    def init_state(self, state: Any) -> None:
        self._state = state


@pytest.mark.live
def test_windows_by_the_clock(same: Case) -> None:
    """All tuples come within minutes of the first, so the clock completes the windows of the hours after it, at the end of the run."""
    bolts = (Hour, HourEvery20Minutes, LastThreeEveryHour, HourEveryThree, StatefulHour)
    top = ps.Topology("clock")
    top.spout("words", ps.items([], "word string"))
    for bolt in bolts:
        top.bolt(bolt.__name__, bolt()).global_("words")
        top.sink(f"{bolt.__name__}.out", ps.console(), from_=bolt.__name__)
    windows = {
        "Hour": [(10, 10, 0)],
        "StatefulHour": [(10, 10, 0)],
        "HourEvery20Minutes": [(10, 10, 0), (10, 0, 0), (10, 0, 0)],
        "LastThreeEveryHour": [(3, 3, 7)],
        "HourEveryThree": [(3, 3, 0), (6, 3, 0), (9, 3, 0)],
    }
    same.check(top, {"words": WORDS[:10]}, {f"{name}.out": rows for name, rows in windows.items()})
