"""Topologies that every user of Storm knows, written anew: the same answers on every runtime."""

from __future__ import annotations

import datetime
from collections import Counter, defaultdict
from typing import Any

import pytest

import penstock as ps
from penstock import trident
from penstock.testing import LocalDRPC, TrackedTopology
from tests.same.conftest import Case

WORDS = ["nathan", "mike", "jackson", "golda", "bertels"]


class Exclaim(ps.Bolt):
    outputs = "word string"
    auto_ack = False

    def process(self, tup: Any) -> None:
        self.emit((tup.word + "!!!",), anchors=tup)
        self.ack(tup)


def test_exclamation(same: Case) -> None:
    """Two bolts in a row, and one that reads both the spout and a bolt."""
    top = ps.Topology("exclamation")
    top.spout("word", ps.items([], "word string"), 10)
    top.bolt("exclaim1", Exclaim(), 3).shuffle("word")
    top.bolt("exclaim2", Exclaim(), 2).shuffle("exclaim1").shuffle("word")
    top.sink("out", ps.console(), from_="exclaim2")
    expected = [(w + "!!!!!!",) for w in WORDS] + [(w + "!!!",) for w in WORDS]
    same.check(top, {"word": WORDS}, {"out": expected})


class SingleJoin(ps.Bolt):
    """Joins tuples of several streams by their id when each has sent one; those that stay alone go out as they are, by a tick."""

    outputs = "gender string, age int"

    def prepare(self, context: Any) -> None:
        self._sources = len(context.sources())
        self.waiting: dict[int, dict[str, Any]] = defaultdict(dict)

    def process(self, tup: Any) -> Any:
        parts = self.waiting[tup.id]
        parts[tup.component] = tup[1]
        if len(parts) == self._sources:
            del self.waiting[tup.id]
            yield parts["gender"], parts["age"]


def test_single_join(same: Case) -> None:
    top = ps.Topology("single-join")
    top.spout("gender", ps.items([], "id int, gender string"))
    top.spout("age", ps.items([], "id int, age int"))
    top.bolt("join", SingleJoin(), 2).fields("gender", "id").fields("age", "id")
    top.sink("out", ps.console(), from_="join")
    genders = [(i, "male" if i % 2 == 0 else "female") for i in range(10)]
    ages = [(i, i + 20) for i in reversed(range(10))]
    same.check(top, {"gender": genders, "age": ages}, {"out": [(g, i + 20) for i, g in genders]})


class Sum(ps.StatefulBolt):
    """A running sum, kept under one key."""

    outputs = "total bigint"

    def init_state(self, state: Any) -> None:
        self._state = state
        self._total = state.get("value", 0)

    def process(self, tup: Any) -> Any:
        self._total += tup[0]
        self._state.put("value", self._total)
        yield self._total


def test_stateful(same: Case) -> None:
    top = ps.Topology("stateful")
    top.spout("numbers", ps.items([], "n int"))
    top.bolt("partial", Sum()).shuffle("numbers")
    top.bolt("total", Sum()).global_("partial")
    top.sink("out", ps.console(), from_="partial")
    top.sink("totals", ps.console(), from_="total")
    partial = [sum(range(n + 1)) for n in range(20)]
    totals = [sum(partial[: n + 1]) for n in range(20)]
    same.check(top, {"numbers": range(20)}, {"out": [(n,) for n in partial], "totals": [(n,) for n in totals]})


class SlidingSum(ps.StatefulWindowedBolt):
    """The sum of a sliding window, from what is new and what has expired; at most 8 of its 30 tuples are in memory."""

    outputs = "total bigint"
    window, slide = 30, 10
    in_memory = 8

    def init_state(self, state: Any) -> None:
        self._state = state

    def process_window(self, window: Any) -> Any:
        total = self._state.get("total", 0)
        total += sum(tup.n for tup in window.new) - sum(tup.n for tup in window.expired)
        self._state["total"] = total
        assert total == sum(tup.n for tup in window)
        yield total


class TumblingAverage(ps.WindowedBolt):
    outputs = "average bigint"
    window = 3

    def process_window(self, window: Any) -> Any:
        yield sum(tup.total for tup in window) // len(window)


@pytest.mark.live
def test_sliding_window(same: Case) -> None:
    """A sliding sum, and a tumbling average of the sums; the tuples of the windows are in the state of the task."""
    top = ps.Topology("sliding-window")
    top.spout("numbers", ps.items([], "n int"))
    top.bolt("sums", SlidingSum()).shuffle("numbers")
    top.bolt("averages", TumblingAverage()).shuffle("sums")
    top.sink("out", ps.console(), from_="sums")
    top.sink("averages-out", ps.console(), from_="averages")
    sums = [sum(range(max(0, end - 30), end)) for end in range(10, 121, 10)]
    averages = [sum(sums[at : at + 3]) // 3 for at in range(0, 12, 3)]
    same.check(top, {"numbers": range(120)}, {"out": [(n,) for n in sums], "averages-out": [(n,) for n in averages]})


NOON = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)


class TupleTimes(ps.WindowedBolt):
    outputs = {"default": "total bigint", "late": "n int, at timestamp"}
    window, slide = "10s", "5s"
    timestamp_field, lag, late_stream = "at", "3s", "late"

    def process_window(self, window: Any) -> Any:
        yield sum(tup.n for tup in window)


def test_sliding_window_by_the_time_of_tuples(same: Case) -> None:
    """Seconds 1 to 30 in order, in one batch: windows end every five seconds and reach ten back."""
    top = ps.Topology("tuple-times")
    top.spout("numbers", ps.items([], "n int, at timestamp"))
    top.bolt("sums", TupleTimes()).global_("numbers")
    top.sink("out", ps.console(), from_="sums")
    given = [(n, NOON + datetime.timedelta(seconds=n)) for n in range(1, 31)]
    ends = range(5, 36, 5)
    expected = [(sum(n for n, _ in given if end - 10 < n <= end),) for end in ends]
    same.check(top, {"numbers": given}, {"out": expected}, cuts={"numbers": [30]})


class Rolling(ps.Bolt):
    """Counts in the last three slots of ten seconds each, out with every tick."""

    outputs = "word string, n bigint"
    config = {"topology.tick.tuple.freq.secs": 10}

    def prepare(self, context: Any) -> None:
        self.slots: list[Counter[str]] = [Counter()]

    def process(self, tup: Any) -> Any:
        if not tup.is_tick:
            self.slots[-1][tup.word] += 1
            return
        yield from sum(self.slots, Counter[str]()).items()
        self.slots = [*self.slots, Counter()][-3:]


class Ranking(ps.Bolt):
    """The two words with the highest counts of late."""

    outputs = "words array<string>"
    config = {"topology.tick.tuple.freq.secs": 10}

    def prepare(self, context: Any) -> None:
        self.counts: dict[str, int] = {}

    def process(self, tup: Any) -> Any:
        if not tup.is_tick:
            self.counts[tup.word] = tup.n
        elif self.counts:
            yield sorted(self.counts, key=lambda word: (-self.counts[word], word))[:2]


def test_rolling_top_words() -> None:
    """By simulated time: a count leaves after three slots."""
    top = ps.Topology("rolling-top-words")
    top.spout("words", ps.items([], "word string"))
    top.bolt("rolling", Rolling(), 2).fields("words", "word")
    top.bolt("ranking", Ranking()).global_("rolling")
    top.sink("counts", ps.console(), from_="rolling")
    top.sink("out", ps.console(), from_="ranking")
    tracked = TrackedTopology(top)
    tracked.push("words", *"aabbbc")
    tracked.advance(11)
    assert sorted(tracked.driver.results()["counts"]) == [("a", 2), ("b", 3), ("c", 1)]
    tracked.push("words", *"ccc")
    tracked.advance(10)
    assert max(tracked.driver.results()["counts"]) == ("c", 4)
    tracked.advance(10)
    assert tracked.driver.results()["out"][-1] == (["c", "b"],)


def test_trident_word_count_with_a_function() -> None:
    """Counts are kept; a call asks for the sum over some words, and another for all words that are kept."""
    top = ps.TridentTopology("words")
    lines = top.new_stream("lines", ps.items([], "line string"))
    words = lines.each("line", trident.Split, "word string")
    counts = words.group_by("word").persistent_aggregate(None, (), trident.Count, "n bigint", name="counts")
    asked = top.new_drpc_stream("words").each("args", trident.Split, "word string").group_by("word")
    found = asked.state_query(counts, "word", trident.MapGet, "n bigint").each("n", trident.FilterNull)
    found.aggregate("n", trident.Sum, "sum bigint")
    called = LocalDRPC(top)
    called.push("lines", "the cow jumped over the moon", "the man went to the store")
    called.driver.barrier()
    assert called.execute("words", "the man cow nobody") == "[[6]]"


@pytest.mark.parametrize("kind", ["kept by Penstock", "kept by the user"])
def test_a_query_lists_all_keys_of_a_state(same: Case, kind: str) -> None:
    """Each tuple that asks gets every key with its value; the batch's own updates are among them."""
    top = ps.TridentTopology("listing")
    words = top.new_stream("words", ps.items([], "word string"))
    factory = trident.StateFactory(lambda *where: trident.MemoryStore(), "opaque") if "user" in kind else None
    counts = words.group_by("word").persistent_aggregate(factory, (), trident.Count, "n bigint", name="counts")
    asks = top.new_stream("asks", ps.items([], "who string"))
    found = asks.state_query(counts, "who", trident.TupleCollectionGet, "word string, n bigint")
    found.sink("out", ps.console())
    asks.state_query(counts, "who", trident.TupleCollectionGet, "again string, m bigint").sink("twice", ps.console())
    given = {"words": list("abca"), "asks": ["x", "y"]}
    expected = [(who, word, n) for who in "xy" for word, n in (("a", 2), ("b", 1), ("c", 1))]
    cuts = {"words": [], "asks": []} if factory else {"words": [4], "asks": [0]}  # a store in memory ends with its run
    same.check(top, given, {"out": expected, "twice": expected}, cuts=cuts)
