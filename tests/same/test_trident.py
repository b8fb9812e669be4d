"""Trident: every operation gives the same answers on every runtime. Batches matter to it, so each case says where they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock import trident
from tests.same.conftest import Case

LINES = ["a b a", "c a", "b d"]
WORDS = " ".join(LINES).split()
WHOLE: dict[str, list[int]] = {"lines": []}


class Pairs(trident.Aggregator):
    """Emits on its way, and at the end."""

    def init(self, batch: int, collector: trident.Collector) -> Any:
        collector.emit(("begin", batch))
        return {"n": 0}

    def aggregate(self, state: Any, tup: Any, collector: trident.Collector) -> None:
        state["n"] += 1

    def complete(self, state: Any, collector: trident.Collector) -> None:
        collector.emit(("end", state["n"]))


class Joined(trident.ReducerAggregator):
    def init(self) -> str:
        return ""

    def reduce(self, current: str, tup: Any) -> str:
        return "".join(sorted(current + tup.word))


class Upper(trident.Function):
    def prepare(self, conf: dict[str, Any], context: trident.OperationContext) -> None:
        self.upper = str.upper

    def execute(self, tup: Any, collector: trident.Collector) -> None:
        collector.emit(self.upper(tup.word))


def words(top: ps.TridentTopology) -> trident.TridentStream:
    lines = top.new_stream("lines", ps.items([], "line string"))
    return lines.each("line", trident.Split, "word string", name="split").project("word", name="words")


@pytest.mark.live
def test_operations_and_aggregates_of_a_batch(same: Case) -> None:
    top = ps.TridentTopology("trident")
    stream = words(top)
    upper = stream.each("word", Upper, "up string").filter(lambda tup: tup.word != "d").peek(len)
    upper.sink("upper", ps.console())
    upper.map(lambda tup: tup.up * 2, "twice string").flat_map(lambda tup: list(tup.twice), "letter string").sink(
        "letters", ps.console()
    )
    stream.aggregate((), trident.Count, "n bigint").sink("total", ps.console())
    stream.group_by("word").aggregate((), trident.Count, "n bigint").sink("groups", ps.console())
    chain = stream.group_by("word").chained_agg().aggregate((), trident.Count, "n bigint")
    chain.aggregate("word", Joined, "all string").chain_end().sink("chain", ps.console())
    stream.aggregate((), Pairs, "what string, n bigint").sink("pairs", ps.console())
    stream.max_by("word").sink("most", ps.console())
    stream.min_by("word").sink("least", ps.console())
    counts = {w: WORDS.count(w) for w in set(WORDS)}
    expected: dict[str, Any] = {
        "upper": [(w, w.upper()) for w in WORDS if w != "d"],
        "letters": [(w.upper(),) for w in WORDS if w != "d" for _ in range(2)],
        "total": [(7,)],
        "groups": list(counts.items()),
        "chain": [(w, n, w * n) for w, n in counts.items()],
        "pairs": [("begin", 0), ("end", 7)],
        "most": [("d",)],
        "least": [("a",)],
    }
    same.check(top, {"lines": LINES}, expected, cuts=WHOLE)


class ByLetter:
    def choose(self, values: Any) -> int:
        return ord(values[0]) % 2


class Where(trident.Aggregator):
    """Which partition has how many tuples."""

    def prepare(self, conf: dict[str, Any], context: trident.OperationContext) -> None:
        self.where = context.partition

    def init(self, batch: int, collector: trident.Collector) -> Any:
        return []

    def aggregate(self, state: Any, tup: Any, collector: trident.Collector) -> None:
        state.append(tup.word)

    def complete(self, state: Any, collector: trident.Collector) -> None:
        collector.emit((self.where, "".join(sorted(state))))


def test_partitions(same: Case) -> None:
    top = ps.TridentTopology("partitions")
    stream = words(top)
    made = "task int, words string"
    same_map = lambda tup: tup  # noqa: E731 - a step between two others
    stream.broadcast(parallelism=3).partition_aggregate((), Where, made).sink("all", ps.console())
    stream.partition_by("word").map(same_map).parallelism_hint(2).partition_aggregate(
        (), trident.Count, "n bigint"
    ).aggregate("n", trident.Sum, "n bigint").sink("sum", ps.console())
    stream.global_().project("word").partition_aggregate((), Where, made).sink("one", ps.console())
    stream.batch_global(parallelism=2).partition_aggregate((), Where, made).sink("batch", ps.console())
    stream.partition(ByLetter).map(same_map).parallelism_hint(2).partition_aggregate((), Where, made).sink(
        "own", ps.console()
    )
    stream.shuffle(parallelism=2).partition_aggregate((), trident.Count, "n bigint").aggregate(
        "n", trident.Sum, "n bigint"
    ).sink("shuffled", ps.console())
    every = "".join(sorted(WORDS))
    expected: dict[str, Any] = {
        "all": [(task, every) for task in range(3)],
        "sum": [(7,)],
        "one": [(0, every)],
        "batch": [(0, every)],
        "own": [(0, "bbd"), (1, "aaac")],
        "shuffled": [(7,)],
    }
    same.check(top, {"lines": LINES}, expected, cuts=WHOLE)


@pytest.mark.live
def test_states_that_penstock_keeps_count_every_batch_once_and_answer(same: Case) -> None:
    top = ps.TridentTopology("states")
    stream = words(top)
    counts = stream.group_by("word").persistent_aggregate(None, (), trident.Count, "n bigint", name="counts")
    total = stream.persistent_aggregate(None, "word", Joined, "all string", name="total")
    counts.new_values_stream().sink("counts-out", ps.console())
    asked = top.new_stream("asked", ps.items([], "name string"))
    found = asked.group_by("name").state_query(counts, "name", trident.MapGet, "n bigint")
    found.sink("found", ps.console())
    asked.state_query(total, (), trident.SnapshotGet, "all string").sink("totals", ps.console())
    assert counts.exactly_once
    inputs = {"lines": ["a b", "a", "b c"], "asked": ["a", "z", "b"]}
    cuts = {"lines": [1], "asked": [1]}
    if same.runtime in ("oracle", "bounded"):
        expected: dict[str, Any] = {
            "counts-out": [("a", 2), ("b", 2), ("c", 1)],
            "found": [("a", 2), ("z", None), ("b", 2)],
            "totals": [(name, "aabbc") for name in ("a", "z", "b")],
        }
    else:
        expected = {
            "counts-out": [("a", 1), ("b", 1), ("a", 2), ("b", 2), ("c", 1)],
            "found": [("a", 1), ("z", None), ("b", 2)],
            "totals": [("a", "ab"), ("z", "aabbc"), ("b", "aabbc")],
        }
    same.check(top, inputs, expected, cuts=cuts)


def test_joins_of_a_batch(same: Case) -> None:
    top = ps.TridentTopology("joins")
    left = top.new_stream("left", ps.items([], "id int, name string"))
    right = top.new_stream("right", ps.items([], "key int, city string"))
    top.join([left, right], ["id", "key"]).sink("inner", ps.console())
    top.join([left, right], ["id", "key"], ["id", "who", "where"], outer=[False, True]).sink("outer", ps.console())
    top.merge(left.project("id"), right.project("key")).sink("merged", ps.console())
    inputs = {"left": [(1, "ada"), (2, "bob")], "right": [(1, "paris"), (1, "rome"), (3, "oslo")]}
    inner = [(1, "ada", "paris"), (1, "ada", "rome")]
    expected: dict[str, Any] = {
        "inner": inner,
        "outer": [*inner, (2, "bob", None)],
        "merged": [(1,), (2,), (1,), (1,), (3,)],
    }
    same.check(top, inputs, expected, cuts={"left": [], "right": []})


def test_windows_go_on_over_batches(same: Case) -> None:
    top = ps.TridentTopology("windows")
    stream = words(top)
    stream.tumbling_window(2, "word", Joined, "all string").sink("pairs", ps.console())
    stream.sliding_window(4, 2, (), trident.Count, "n bigint").sink("sliding", ps.console())
    same.check(
        top, {"lines": ["a b", "c d e"]}, {"pairs": [("ab",), ("cd",)], "sliding": [(2,), (4,)]}, cuts={"lines": [1]}
    )


class Files:
    """A store in files, which all workers see."""

    def __init__(self, folder: str, partition: int) -> None:
        self.path = Path(folder) / f"{partition}.json"

    def read(self) -> dict[str, Any]:
        return json.loads(self.path.read_text()) if self.path.exists() else {}

    def multi_get(self, keys: list[Any]) -> list[Any]:
        found = self.read()
        return [trident.OpaqueValue(*found[json.dumps(key)]) if json.dumps(key) in found else None for key in keys]

    def multi_put(self, keys: list[Any], values: list[Any]) -> None:
        new = {json.dumps(k): [v.txid, v.value, v.previous] for k, v in zip(keys, values, strict=True)}
        self.path.write_text(json.dumps(self.read() | new))


def test_a_state_in_a_store_of_the_users(same: Case, tmp_path: Path) -> None:
    folder = str(tmp_path)
    factory = trident.StateFactory(lambda conf, partition, partitions: Files(folder, partition), "opaque")
    top = ps.TridentTopology("own")
    stream = words(top)
    counts = stream.group_by("word").persistent_aggregate(
        factory, (), trident.Count, "n bigint", name="counts", parallelism=2
    )
    counts.new_values_stream().sink("counts-out", ps.console())
    asked = top.new_stream("asked", ps.items([], "name string"))
    asked.state_query(counts, "name", trident.MapGet, "n bigint").sink("found", ps.console())
    expected: dict[str, Any] = {
        "counts-out": [("a", 3), ("b", 2), ("c", 1), ("d", 1)],
        "found": [("a", 3), ("q", None)],
    }
    same.check(top, {"lines": LINES, "asked": ["a", "q"]}, expected, cuts={"lines": [], "asked": []})
    stored = {k: v for path in tmp_path.glob("*.json") for k, v in json.loads(path.read_text()).items()}
    assert stored['["a"]'] == [0, 3, None]
