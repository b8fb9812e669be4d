"""Acks, replays, windows and key-value state of bolts give the same answers on every runtime."""

from __future__ import annotations

from typing import Any

import pytest

import penstock as ps
from penstock.graph.logic.task_context import TaskContext
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
