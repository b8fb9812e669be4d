"""Task ids: what `emit` says is where the tuple arrives, a tuple knows the task it comes from, and a direct tuple reaches one task."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import penstock as ps
from penstock.graph.logic.topology.task_context import TaskContext
from tests.same.conftest import Case

WORDS = [f"w{i}" for i in range(40)]
GROUPINGS = ("shuffle", "fields", "all", "global", "none", "local", "partial_key", "custom")


class Named(ps.Bolt):
    """Notes the id of its task."""

    stateful = False

    def prepare(self, context: TaskContext) -> None:
        self._id = context.task_id


class Pass(Named):
    outputs = "word string"

    def process(self, tup: Any) -> Any:
        yield tup.word


class Ask(Named):
    """Says which tasks get its words; a word that it yields counts in the turns of those that it emits."""

    outputs = {"words": "word string", "said": "word string, ids array<int>, source int"}

    def process(self, tup: Any) -> Any:
        if tup.word.endswith("5"):
            yield ps.to("words", tup.word)
            return
        ids = self.emit((tup.word,), stream="words")
        self.emit((tup.word, list(ids), self._id), stream="said")


class Heard(Named):
    outputs = "word string, id int, source int"

    def process(self, tup: Any) -> Any:
        yield tup.word, self._id, tup.task


class ByTurns:
    """A chooser whose choice depends on what it has chosen before."""

    def prepare(self, context: TaskContext, stream: str, tasks: list[int]) -> None:
        self.tasks, self.turn = tasks, 0

    def choose(self, values: Any) -> int | list[int]:
        self.turn += 1
        return self.tasks if self.turn % 5 == 0 else self.tasks[self.turn % len(self.tasks)]


def subscribed(top: ps.Topology, kind: str, origin: str, tasks: int) -> None:
    bolt = top.bolt(kind, Heard, parallelism=tasks)
    about: dict[str, Any] = {"stream": "words"}
    if kind in ("fields", "partial_key"):
        getattr(bolt, kind)(origin, "word", **about)
    elif kind == "custom":
        bolt.custom(origin, ByTurns(), **about)
    else:
        getattr(bolt, {"global": "global_", "local": "local_or_shuffle"}.get(kind, kind))(origin, **about)
    top.sink(f"{kind}-out", ps.console(), from_=kind)


def heard(results: Any, kinds: tuple[str, ...]) -> list[tuple[str, int, int]]:
    return [tuple(row) for kind in kinds for row in results[f"{kind}-out"]]


@pytest.mark.live
def test_emit_says_which_tasks_get_a_tuple(same: Case) -> None:
    """Under every grouping, from each of two tasks, over batches; and every tuple knows the task it comes from."""
    top = ps.Topology("asked")
    top.spout("lines", ps.items([], "word string"))
    top.bolt("ask", Ask, parallelism=2).shuffle("lines")
    for kind in GROUPINGS:
        subscribed(top, kind, "ask", 2 if kind == "local" else 3)
    top.sink("said", ps.console(), from_="ask", stream="said")
    results = same.run(top, {"lines": WORDS})
    got = heard(results, GROUPINGS)
    asked = {word: (sorted(ids), source) for word, ids, source in results["said"]}
    assert len(asked) == 36
    assert len({source for _, source in asked.values()}) == 2
    for word, (ids, source) in asked.items():
        assert sorted(task for w, task, _ in got if w == word) == ids, word
        assert {s for w, _, s in got if w == word} == {source}


class Spoken(ps.Spout):
    """Two streams, one of which says where the tuples of the other go."""

    outputs = {"words": "word string", "said": "word string, ids array<int>, source int"}
    at = 0

    def open(self, context: TaskContext) -> None:
        self._id = context.task_id

    def next_tuple(self) -> Any:
        self.at += 1
        word = f"{self._id}-{self.at}"
        ids = self.emit((word,), stream="words")
        self.emit((word, list(ids), self._id), stream="said")
        return ps.END if self.at == 30 else None


SPOKEN = ("shuffle", "fields", "all", "global", "none", "local")


def test_a_spout_is_told_too(same: Case) -> None:
    """Of two tasks with two streams each: a stream is dealt out evenly, whatever else the spout emits."""
    if same.runtime == "live":
        pytest.skip("a spout has no end in a live run of this suite")
    top = ps.Topology("spoken")
    top.spout("spoken", Spoken, parallelism=2)
    for kind in SPOKEN:
        subscribed(top, kind, "spoken", 3)
    top.sink("said", ps.console(), from_="spoken", stream="said")
    results = same.run(top, {})
    got = heard(results, SPOKEN)
    assert len(results["said"]) == 60
    for word, ids, source in results["said"]:
        assert sorted(task for w, task, _ in got if w == word) == sorted(ids)
        assert {s for w, _, s in got if w == word} == {source}
    assert sorted(Counter(task for _, task, _ in results["shuffle-out"]).values()) == [20, 20, 20]


class Caller(Named):
    """Calls the tasks of both readers in turn, by their ids."""

    outputs = {"calls": "word string, id int"}
    direct = ("calls",)

    def prepare(self, context: TaskContext) -> None:
        super().prepare(context)
        self._ids = [*context.task_ids("left"), *context.task_ids("right")]

    def process(self, tup: Any) -> None:
        task = self._ids[int(tup.word[1:]) % len(self._ids)]
        self.emit_direct(task, (tup.word, task), stream="calls")


class Called(Named):
    outputs = "word string, expected int, id int"

    def process(self, tup: Any) -> Any:
        yield tup.word, tup.id, self._id


def test_a_direct_tuple_reaches_the_task_of_its_id_alone(same: Case) -> None:
    """Of two bolts that read the stream, one of them with a single task, one gets it."""
    top = ps.Topology("calls")
    top.spout("lines", ps.items([], "word string"))
    top.bolt("call", Caller, parallelism=2).shuffle("lines")
    top.bolt("left", Called, parallelism=3).direct("call", stream="calls")
    top.bolt("right", Called).direct("call", stream="calls")
    top.sink("left-out", ps.console(), from_="left")
    top.sink("right-out", ps.console(), from_="right")
    results = same.run(top, {"lines": WORDS})
    rows = [*results["left-out"], *results["right-out"]]
    assert sorted(word for word, _, _ in rows) == sorted(WORDS)
    assert all(expected == task for _, expected, task in rows)
    assert len(results["right-out"]) == 10


class Again(Named):
    """Sends a word round the loop once."""

    outputs = {"default": "word string, source int, id int", "again": "word string, first int"}

    def process(self, tup: Any) -> None:
        if tup.stream == "again":
            self.emit((tup.word, tup.first, tup.task))
        else:
            self.emit((tup.word, self._id), stream="again")


def test_a_tuple_that_went_round_a_loop_knows_its_task(same: Case) -> None:
    top = ps.Topology("round")
    top.spout("lines", ps.items([], "word string"))
    bolt = top.bolt("again", Again, parallelism=3).shuffle("lines")
    bolt.fields("again", "word", stream="again", feedback=True)
    top.sink("out", ps.console(), from_="again")
    rows = same.run(top, {"lines": WORDS})["out"]
    assert sorted(row.word for row in rows) == sorted(WORDS)
    assert all(row.source == row.id for row in rows)
    assert len({row.id for row in rows}) > 1
