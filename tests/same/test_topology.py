"""Topologies: every grouping, state, named streams, loops and spouts give the same answers on every runtime."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import StateError, StepError
from penstock.frontends.topology.declare import BoltDeclaration
from penstock.frontends.topology.topology import Topology
from penstock.graph.logic.topology.components import END, Bolt, Spout
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.types import STRING
from penstock.kernels.hashing.murmur import spark_hash
from penstock.testing import run_spark
from tests.same.conftest import Case

LINES = ["a b a", "c a", "", "b d", "e f g a", "a", "c c b"]
WORDS = " ".join(LINES).split()


class Split(Bolt):
    outputs = "word string"
    stateful = False

    def process(self, tup: Any) -> None:
        for word in tup.line.split():
            self.emit((word,))


class Count(Bolt):
    """A running count for each word, in the task's own attributes."""

    outputs = "word string, n bigint"

    def prepare(self, context: TaskContext) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> Any:
        n = self.counts[tup.word] = self.counts.get(tup.word, 0) + 1
        yield tup.word, n


class Where(Bolt):
    outputs = "word string, task int"
    stateful = False

    def prepare(self, context: TaskContext) -> None:
        self._task = context.task

    def process(self, tup: Any) -> Any:
        return [(tup.word, self._task)]


def counted(words: list[str]) -> list[tuple[str, int]]:
    """What Count gives, order aside."""
    return [(w, i + 1) for w in set(words) for i in range(words.count(w))]


def home(word: str, tasks: int) -> int:
    """The task of a word under a fields grouping."""
    return spark_hash([word], [STRING]) % tasks


def word_topology() -> Topology:
    top = Topology("words")
    top.spout("lines", ps.items([], "line string"))
    top.bolt("split", Split, parallelism=2).shuffle("lines")
    return top


class ByLetter:
    """A chooser as an object."""

    def prepare(self, context: TaskContext, stream: str, tasks: list[int]) -> None:
        self.tasks = tasks

    def choose(self, values: Any) -> int | list[int]:
        return self.tasks if values.word == "d" else self.tasks[ord(values.word) % len(self.tasks)]


def dealt(same: Case) -> dict[str, list[tuple[str, int]]]:
    """Where the words go under each grouping, in one run."""
    top = word_topology()
    bolts = {
        kind: top.bolt(kind, Where, parallelism=8 if kind == "partial_key" else 3)
        for kind in ("fields", "global", "all", "shuffle", "none", "local", "partial_key", "custom")
    }
    bolts["fields"].fields("split", "word")
    bolts["global"].global_("split")
    bolts["all"].all("split")
    bolts["shuffle"].shuffle("split")
    bolts["none"].none("split")
    bolts["local"].local_or_shuffle("split")
    bolts["partial_key"].partial_key("split", "word")
    bolts["custom"].custom("split", ByLetter())
    for kind in bolts:
        top.sink(f"{kind}-out", ps.console(), from_=kind)
    results = same.run(top, {"lines": LINES})
    return {kind: sorted(map(tuple, results[f"{kind}-out"])) for kind in bolts}


@pytest.mark.live
def test_every_grouping(same: Case) -> None:
    """Fields finds the same task on every runtime; those that spread lose and double nothing."""
    seen = dealt(same)
    assert seen["fields"] == sorted((w, home(w, 3)) for w in WORDS)
    assert seen["global"] == sorted((w, 0) for w in WORDS)
    assert seen["all"] == sorted((w, t) for w in WORDS for t in range(3))
    assert seen["custom"] == sorted((w, t) for w in WORDS for t in (range(3) if w == "d" else (ord(w) % 3,)))
    for kind in ("shuffle", "none", "local", "partial_key"):
        assert [w for w, _ in seen[kind]] == sorted(WORDS)
        assert len({t for _, t in seen[kind]}) > 1
    assert all(len({t for w, t in seen["partial_key"] if w == word}) <= 2 for word in WORDS)


class Dealer(Bolt):
    outputs = {"cards": "word string"}
    direct = ("cards",)
    stateful = False

    def __init__(self, beyond: int = 0) -> None:
        self.beyond = beyond

    def prepare(self, context: TaskContext) -> None:
        self._tasks = context.tasks_of("where") + self.beyond

    def process(self, tup: Any) -> None:
        for word in tup.line.split():
            self.emit((word,), stream="cards", task=ord(word) % self._tasks)


def dealing(beyond: int = 0) -> Topology:
    top = Topology("dealing")
    top.spout("lines", ps.items([], "line string"))
    top.bolt("deal", Dealer(beyond), parallelism=2).shuffle("lines")
    top.bolt("where", Where, parallelism=3).direct("deal", stream="cards")
    top.sink("out", ps.console(), from_="where")
    top.sink("cards", ps.console(), from_="deal", stream="cards")
    return top


def test_direct_goes_where_the_producer_says(same: Case) -> None:
    expected: dict[str, list[Any]] = {"out": [(w, ord(w) % 3) for w in WORDS], "cards": [(w,) for w in WORDS]}
    same.check(dealing(), {"lines": LINES}, expected)


def test_a_task_that_does_not_exist_stops_the_run(same: Case) -> None:
    if same.runtime == "live":
        pytest.skip("the same code as bounded, and a failing run is slow")
    with pytest.raises(StepError, match=r"task [3-9] of 'where' was named; its tasks are 0 to 2"):
        same.run(dealing(beyond=7), {"lines": LINES})


class Sorter(Bolt):
    outputs = {"default": "word string", "often": "word string, n bigint", "first": "word string"}

    def prepare(self, context: TaskContext) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> Any:
        n = self.counts[tup.word] = self.counts.get(tup.word, 0) + 1
        if n == 1:
            self.emit(tup.word, stream="first")
        if n > 2:
            yield ps.to("often", (tup.word, n))
        yield tup.word


class Tenfold(Bolt):
    """State behind a stream that does not move: it runs in the pass of its producer."""

    outputs = "word string, n bigint"

    def prepare(self, context: TaskContext) -> None:
        self.most: dict[str, int] = {}

    def process(self, tup: Any) -> Any:
        self.most[tup.word] = max(self.most.get(tup.word, 0), tup.n)
        yield tup.word, self.most[tup.word] * 10


@pytest.mark.live
def test_state_and_named_streams_each_with_readers_of_its_own(same: Case) -> None:
    top = word_topology()
    top.bolt("sort", Sorter, parallelism=3).fields("split", "word")
    top.bolt("count", Count).global_("sort", stream="first")
    top.bolt("tenfold", Tenfold, parallelism=3).local_or_shuffle("sort", stream="often")
    top.sink("all", ps.console(), from_="sort")
    top.sink("tens", ps.console(), from_="tenfold")
    top.sink("often", ps.console(), from_="sort", stream="often")
    top.sink("firsts", ps.console(), from_="count")
    expected: dict[str, list[Any]] = {
        "all": [(w,) for w in WORDS],
        "often": [(w, n) for w, n in counted(WORDS) if n > 2],
        "firsts": [(w, 1) for w in set(WORDS)],
        "tens": [(w, 10 * n) for w, n in counted(WORDS) if n > 2],
    }
    same.check(top, {"lines": LINES}, expected)


class Origin(Bolt):
    """Two inputs of different shape."""

    outputs = "shown string, task int"
    stateful = False

    def prepare(self, context: TaskContext) -> None:
        self._task = context.task

    def process(self, tup: Any) -> Any:
        shown = tup.word if tup.component == "split" else str(tup.limit)
        yield f"{tup.component}.{tup.stream} {shown}", self._task


def test_a_bolt_with_several_inputs(same: Case) -> None:
    top = word_topology()
    top.spout("limits", ps.items([], "limit bigint, why string"))
    top.bolt("origin", Origin, parallelism=2).fields("split", "word").all("limits")
    top.sink("out", ps.console(), from_="origin")
    expected = [(f"split.default {w}", home(w, 2)) for w in WORDS]
    expected += [(f"limits.default {n}", task) for n in (5, 7) for task in (0, 1)]
    same.check(top, {"lines": LINES, "limits": [(5, "x"), (7, None)]}, {"out": expected})


class Order(Bolt):
    """Gives the numbers of each emitter in the order they came."""

    outputs = "key string, before bigint, n bigint"

    def prepare(self, context: TaskContext) -> None:
        self.last: dict[str, int] = {}

    def process(self, tup: Any) -> Any:
        before, self.last[tup.key] = self.last.get(tup.key, 0), tup.n
        yield tup.key, before, tup.n


class Pass(Bolt):
    outputs = "key string, n bigint"

    def process(self, tup: Any) -> Any:
        yield tup.values


def test_tuples_of_one_emitter_keep_their_order(same: Case) -> None:
    top = Topology("order")
    top.spout("events", ps.items([], "key string, n bigint"))
    top.bolt("pass", Pass, parallelism=2).fields("events", "key")
    top.bolt("order", Order, parallelism=3).fields("pass", "key")
    top.sink("out", ps.console(), from_="order")
    events = [(k, n) for n in range(1, 300) for k in "abcd"]
    same.check(top, {"events": events}, {"out": [(k, n - 1, n) for k, n in events]})


class Halve(Bolt):
    outputs = {"default": "start bigint, n bigint", "done": "start bigint, rounds bigint"}

    def prepare(self, context: TaskContext) -> None:
        self.rounds: dict[int, int] = {}

    def process(self, tup: Any) -> None:
        self.rounds[tup.start] = self.rounds.get(tup.start, 0) + 1
        if tup.n <= 1:
            self.emit((tup.start, self.rounds.pop(tup.start)), stream="done")
        else:
            self.emit((tup.start, tup.n // 2))


class Twice(Bolt):
    outputs = "start bigint, n bigint"

    def prepare(self, context: TaskContext) -> None:
        self.seen = 0

    def process(self, tup: Any) -> Any:
        self.seen += 1
        yield tup.n, tup.n


@pytest.mark.live
def test_a_loop_behind_a_bolt_with_state(same: Case) -> None:
    top = Topology("halving")
    top.spout("numbers", ps.items([], "n bigint"))
    top.bolt("twice", Twice, parallelism=2).shuffle("numbers")
    top.bolt("halve", Halve, parallelism=2).fields("twice", "start").fields("halve", "start", feedback=True)
    top.sink("out", ps.console(), from_="halve", stream="done")
    same.check(top, {"numbers": [5, 64, 1]}, {"out": [(5, 3), (64, 7), (1, 1)]})


class Sentences(Spout):
    """Ends, and remembers how far it came."""

    outputs = "line string"

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0

    def next_tuple(self) -> Any:
        if self.at >= len(self.lines):
            return END
        self.at += 1
        self.emit((self.lines[self.at - 1],))
        return None


def spouted(spout: Spout, parallelism: int = 1) -> Topology:
    top = Topology("spouted")
    top.spout("lines", spout, parallelism)
    top.bolt("split", Split, parallelism=2).shuffle("lines")
    top.bolt("count", Count, parallelism=2).fields("split", "word")
    top.sink("out", ps.console(), from_="count")
    return top


@pytest.mark.live
def test_a_spout_with_several_tasks(same: Case) -> None:
    same.check(spouted(Sentences(LINES), parallelism=3), {}, {"out": counted(WORDS * 3)})


class Mixed(Spout):
    """Named streams, one of them direct, with ids."""

    outputs = {"default": "line string", "cards": "word string"}
    direct = ("cards",)
    reliable = True

    def next_tuple(self) -> Any:
        for number, line in enumerate(LINES):
            self.emit((line,), id=number)
        for word in "xyz":
            self.emit((word,), stream="cards", task=ord(word) % 2)
        return END


class RootCount(Bolt):
    outputs = "line string, roots int"

    def process(self, tup: Any) -> Any:
        yield tup.line, len(tup.roots)


def test_a_spout_with_named_streams_direct_tuples_and_roots(same: Case) -> None:
    top = Topology("mixed")
    top.spout("mixed", Mixed)
    top.bolt("forward", Forward, parallelism=2).shuffle("mixed")
    top.bolt("roots", RootCount).shuffle("forward")
    top.bolt("where", Where, parallelism=2).direct("mixed", stream="cards")
    top.sink("lines", ps.console(), from_="roots")
    top.sink("cards", ps.console(), from_="where")
    same.check(top, {}, {"lines": [(line, 1) for line in LINES], "cards": [("x", 0), ("y", 1), ("z", 0)]})


class Forward(Bolt):
    outputs = "line string"
    stateful = False

    def process(self, tup: Any) -> None:
        self.emit(tup.values)


class Writes(Bolt):
    """Gives nothing; leaves a mark for each word."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def process(self, tup: Any) -> None:
        (Path(self.folder) / tup.word).touch()


def test_a_bolt_that_nobody_reads_runs_all_the_same(same: Case, tmp_path: Path) -> None:
    top = word_topology()
    top.bolt("writes", Writes(str(tmp_path)), parallelism=2).shuffle("split")
    same.run(top, {"lines": LINES})
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(set(WORDS))


class Breaks(Bolt):
    outputs = "word string"

    def process(self, tup: Any) -> None:
        if tup.word == "d":
            raise ValueError("no d, please")


@pytest.mark.live
def test_an_error_names_the_bolt_and_the_tuple(same: Case) -> None:
    if same.runtime == "bounded":
        pytest.skip("the same code as live, and a failing run is slow")
    top = word_topology()
    top.bolt("breaks", Breaks, parallelism=2).shuffle("split")
    with pytest.raises(StepError, match=r"step 'breaks' .*no d, please") as caught:
        same.run(top, {"lines": LINES})
    assert "word='d'" in caught.value.failure.record


def counting(tasks: int, bolt: type[Bolt] = Count) -> Topology:
    top = Topology("parallel")
    top.spout("words", ps.items([], "word string"))
    counts: BoltDeclaration = top.bolt("count", bolt, parallelism=tasks)
    counts.custom("words", lambda values: ord(values.word) % tasks)
    top.sink("out", ps.console(), from_="count")
    return top


class Merging(Count):
    def merge(self, other: dict[str, Any]) -> None:
        for word, n in other["counts"].items():
            self.counts[word] = self.counts.get(word, 0) + n


@pytest.mark.spark
def test_state_survives_a_restart_with_other_tasks(penstock_spark: Any, tmp_path: Path) -> None:
    """More tasks go on with what was there; fewer need a merge."""

    def run(tasks: int, bolt: type[Bolt], *batches: str) -> list[Any]:
        return sorted(more_words(counting(tasks, bolt), penstock_spark, tmp_path, *batches)["out"])

    assert run(2, Count, "a") == [("a", 1)]
    assert run(3, Merging, "a", "ab") == [("a", 2), ("b", 1)]
    assert run(2, Merging, "a", "ab", "abb") == [("a", 3), ("b", 2), ("b", 3)]


def more_words(top: Topology, spark: Any, folder: Path, *batches: str) -> Any:
    """Runs a topology over words that come in these batches; a checkpoint goes on behind those it has seen."""
    cuts = [len("".join(batches[:n])) for n in range(1, len(batches))]
    return run_spark(top, spark, {"words": list("".join(batches))}, cuts={"words": cuts}, folder=folder)


@pytest.mark.spark
def test_fewer_tasks_without_a_merge_are_refused(penstock_spark: Any, tmp_path: Path) -> None:
    more_words(counting(4), penstock_spark, tmp_path, "abcd")
    with pytest.raises(StateError, match="bolt 'count' has 2 tasks and had more"):
        more_words(counting(2), penstock_spark, tmp_path, "abcd", "abcdabcd")


@pytest.mark.spark
def test_more_tasks_of_a_fields_grouped_bolt_are_refused(penstock_spark: Any, tmp_path: Path) -> None:
    """Keys would go to other tasks, and what was kept for them would not."""

    def grouped(tasks: int) -> Topology:
        top = Topology("parallel")
        top.spout("words", ps.items([], "word string"))
        top.bolt("count", Count, parallelism=tasks).fields("words", "word")
        top.sink("out", ps.console(), from_="count")
        return top

    more_words(grouped(2), penstock_spark, tmp_path, "abcd")
    with pytest.raises(StateError, match=r"(?s)it had 2 tasks, and has now 4.*--drop-state count"):
        more_words(grouped(4), penstock_spark, tmp_path, "abcd", "abcdabcd")
    assert sorted(more_words(grouped(2), penstock_spark, tmp_path, "abcd", "ab")["out"]) == [("a", 2), ("b", 2)]


class Flaky(Sentences):
    """Breaks at the third line, the first time."""

    def next_tuple(self) -> Any:
        if self.at == 2 and not Path(self.lines[-1]).exists():
            raise ValueError("not yet")
        return END if self.at == len(self.lines) - 1 else super().next_tuple()


@pytest.mark.spark
def test_a_spout_goes_on_where_it_stood(penstock_spark: Any, tmp_path: Path) -> None:
    """What it gave before a stop is not given again, and nothing is left out."""
    first = run_spark(spouted(Sentences(LINES[:3])), penstock_spark, cuts=1, folder=tmp_path)["out"]
    second = run_spark(spouted(Sentences(LINES)), penstock_spark, cuts=1, folder=tmp_path)["out"]
    assert sorted([*first, *second]) == sorted(counted(WORDS))


@pytest.mark.spark
def test_a_spout_that_breaks_stops_the_run(penstock_spark: Any, tmp_path: Path) -> None:
    flag = tmp_path / "flag"
    with pytest.raises(StepError, match="not yet"):
        run_spark(spouted(Flaky([*LINES, str(flag)])), penstock_spark, cuts=1, folder=tmp_path / "run")
    flag.touch()
    rows = run_spark(spouted(Flaky([*LINES, str(flag)])), penstock_spark, cuts=1, folder=tmp_path / "run")["out"]
    assert sorted(rows) == sorted(counted(WORDS))
