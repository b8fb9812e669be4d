"""count, sum, aggregate, reduce, process."""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case

SALES = [("ada", 3, 2.5), ("bob", 1, None), (None, 7, 1.0), ("ada", 10, 4.0), ("bob", None, 0.5), ("eve", 2, 2.0)]
SCHEMA = "user string, n int, price double"


def sales(name: str) -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source("sales", ps.items([], SCHEMA))


@pytest.mark.live
def test_count_by_key_null_is_a_key_too(same: Case) -> None:
    flow, stream = sales("count")
    stream.key_by("user").count("times").sink("out", ps.console())
    same.check(flow, {"sales": SALES}, {"out": [("ada", 2), ("bob", 2), (None, 1), ("eve", 1)]})


def test_sum_ignores_null(same: Case) -> None:
    flow, stream = sales("sum")
    stream.key_by("user").sum("total", "n").sink("out", ps.console())
    same.check(flow, {"sales": SALES}, {"out": [("ada", 13), ("bob", 1), (None, 7), ("eve", 2)]})


@pytest.mark.live
def test_many_aggregates_at_once(same: Case) -> None:
    flow, stream = sales("many")
    stream.key_by("user").aggregate(
        "stats",
        rows="count(*)",
        known="count(price)",
        low="min(n)",
        high="max(n)",
        mean="avg(n)",
        worth="sum(n * price)",
        big="count_if(n > 2)",
        ever="bool_or(n > 2)",
        always="bool_and(n > 2)",
        seen="collect_set(n)",
    ).sink("out", ps.console())
    expected = [
        ("ada", 2, 2, 3, 10, 6.5, 47.5, 2, True, True, [3, 10]),
        ("bob", 2, 1, 1, 1, 1.0, None, 0, False, False, [1]),
        (None, 1, 1, 7, 7, 7.0, 7.0, 1, True, True, [7]),
        ("eve", 1, 1, 2, 2, 2.0, 4.0, 0, False, False, [2]),
    ]
    same.check(flow, {"sales": SALES}, {"out": expected})


def test_key_by_an_expression(same: Case) -> None:
    flow, stream = sales("computed")
    stream.key_by(initial="substring(user, 1, 1)").count("n").sink("out", ps.console())
    same.check(flow, {"sales": SALES}, {"out": [("a", 2), ("b", 2), (None, 1), ("e", 1)]})


def test_two_keys(same: Case) -> None:
    flow, stream = sales("two-keys")
    stream.key_by("user", "n").count("times").sink("out", ps.console())
    same.check(flow, {"sales": [*SALES, SALES[0]]}, {"out": [
        ("ada", 3, 2), ("ada", 10, 1), ("bob", 1, 1), ("bob", None, 1), (None, 7, 1), ("eve", 2, 1),
    ]})  # fmt: skip


@pytest.mark.live
def test_reduce_folds_records_of_a_key(same: Case) -> None:
    flow, stream = sales("reduce")
    best = stream.key_by("user").reduce("best", lambda a, b: a if (a.n or 0) >= (b.n or 0) else b)
    best.sink("out", ps.console())
    same.check(flow, {"sales": SALES}, {"out": [SALES[3], SALES[1], SALES[2], SALES[5]]})


class Longest(ps.Aggregator):
    """An aggregate of the user's own."""

    schema = "string"

    def init(self) -> str:
        return ""

    def add(self, so_far: str, row: Any) -> str:
        return self.merge(so_far, row.word)

    def merge(self, one: str, other: str) -> str:
        return max(one, other, key=lambda w: (len(w), w))

    def result(self, so_far: str) -> str:
        return so_far.upper()


@pytest.mark.live
def test_own_aggregates_beside_native_ones(same: Case) -> None:
    flow = ps.Flow("own")
    words = flow.source("words", ps.items([], "word string"))
    words.key_by(first="substring(word, 1, 1)").aggregate(
        "stats", longest=Longest, n="count(*)", mean="avg(length(word))"
    ).sink("out", ps.console())
    given = ["apple", "ant", "bee", "avocado", "bear", "b"]
    same.check(flow, {"words": given}, {"out": [("a", "AVOCADO", 3, 5.0), ("b", "BEAR", 3, 8 / 3)]})


def test_an_aggregate_of_ones_own_alone(same: Case) -> None:
    flow = ps.Flow("own-alone")
    words = flow.source("words", ps.items([], "word string"))
    words.key_by(first="substring(word, 1, 1)", n="length(word) % 2").aggregate("by-two", longest=Longest).sink(
        "two", ps.console()
    )
    words.key_by(first="substring(word, 1, 1)").aggregate("alone", longest=Longest).sink("one", ps.console())
    given = ["apple", "ant", "bee", "avocado", "bear", "b"]
    same.check(flow, {"words": given}, {
        "one": [("a", "AVOCADO"), ("b", "BEAR")],
        "two": [("a", 1, "AVOCADO"), ("b", 1, "BEE"), ("b", 0, "BEAR")],
    })  # fmt: skip


class Total(ps.Aggregator):
    """A count, made one by one."""

    schema = "bigint"

    def init(self) -> int:
        return 0

    def add(self, so_far: int, row: Any) -> int:
        return so_far + 1

    def merge(self, one: int, other: int) -> int:
        return one + other


class TotalOfMany(Total):
    """The same, made several at a time."""

    def add_all(self, so_far: int, rows: Sequence[Any]) -> int:
        return so_far + len(rows)


@pytest.mark.parametrize("own", [Total, TotalOfMany])
@pytest.mark.live("TotalOfMany")
def test_own_aggregates_over_records_that_are_their_key(same: Case, own: type[ps.Aggregator]) -> None:
    flow = ps.Flow("alike")
    words = flow.source("lines", ps.items([], "line string")).flat_map("split", lambda r: r.line.split(), "word string")
    words.key_by("word").aggregate("alone", n=own).sink("one", ps.console())
    words.map("wide", lambda r: (r.word, 1), "word string, n int").key_by("word").aggregate("wide-n", n=own).sink(
        "two", ps.console()
    )
    expected = [("a", 3), ("b", 2), ("c", 1)]
    same.check(flow, {"lines": ["a b a", "", "c", "b a"]}, {"one": expected, "two": expected})


class Numbered(ps.Process):
    """Numbers the records of a key, and remembers what it saw."""

    nth = ps.value(int, default=0)
    seen = ps.list_of(str)
    by_word = ps.map_of(str, int)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.nth += 1
        self.seen.append(row.word)
        self.by_word[row.word] = self.by_word.get(row.word, 0) + 1
        yield {"key": self.key, "nth": self.nth, "seen": "".join(self.seen), "same": self.by_word[row.word]}


@pytest.mark.live
def test_process_keeps_state_per_key_in_order(same: Case) -> None:
    flow = ps.Flow("process")
    events = flow.source("events", ps.items([], "k int, word string"))
    events.key_by("k").process("number", Numbered, "key int, nth bigint, seen string, same bigint").sink(
        "out", ps.console()
    )
    given = [(1, "a"), (2, "x"), (1, "b"), (1, "a"), (2, "y"), (3, "z"), (1, "c")]
    expected = [
        (1, 1, "a", 1), (2, 1, "x", 1), (1, 2, "ab", 1), (1, 3, "aba", 2), (2, 2, "xy", 1), (3, 1, "z", 1), (1, 4, "abac", 1),
    ]  # fmt: skip
    same.check(flow, {"events": given}, {"out": expected})


class Pairs(ps.Process):
    """Gives every second record of a key, and forgets."""

    waiting = ps.value(str)

    def on_event(self, row: Any) -> Iterator[Any]:
        if self.waiting is None:
            self.waiting = row.word
            return
        yield self.waiting + row.word
        self.clear()


@pytest.mark.live
def test_process_then_map_then_process(same: Case) -> None:
    """Stateful steps in a row."""
    flow = ps.Flow("chain")
    events = flow.source("events", ps.items([], "k int, word string"))
    pairs = events.key_by("k").process("pairs", Pairs, "word string")
    pairs.map("mark", lambda r: (len(r.word), r.word), "k int, word string").key_by("k").process(
        "again", Pairs, "word string"
    ).sink("out", ps.console())
    given = [(k, f"{k}{c}") for c in "abcd" for k in (1, 1)]
    results = same.run(flow, {"events": given})
    assert sorted(len(r.word) for r in results["out"]) == [8, 8]


def test_running_totals_may_be_reshaped(same: Case) -> None:
    flow, stream = sales("reshape")
    totals = stream.key_by("user").sum("total", "n")
    totals.select("shown", "user", label="concat(user, ':', cast(total as string))").map("low", lambda r: r).sink(
        "out", ps.console()
    )
    same.check(flow, {"sales": SALES}, {"out": [("ada", "ada:13"), ("bob", "bob:1"), (None, None), ("eve", "eve:2")]})


@pytest.mark.live
def test_updates_as_records_reach_the_same_end(same: Case) -> None:
    flow, stream = sales("as-records")
    totals = stream.key_by("user").sum("total", "n").as_records("each")
    totals.where("big", "total > 6").key_by("user").aggregate("most", high="max(total)").sink("out", ps.console())
    same.check(flow, {"sales": SALES}, {"out": [("ada", 13), (None, 7)]})


class Sorted(ps.Process):
    """Sends every second record of a key to the side."""

    nth = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.nth += 1
        yield ps.to("even", row.word) if self.nth % 2 == 0 else row.word


@pytest.mark.live
def test_process_with_a_side_output(same: Case) -> None:
    flow = ps.Flow("process-side")
    events = flow.source("events", ps.items([], "k int, word string"))
    odd = events.key_by("k").process("sort", Sorted, "word string", side={"even": "word string"})
    odd.sink("odd", ps.console())
    odd.side("even").sink("even", ps.console())
    given = [(1, "a"), (1, "b"), (1, "c"), (2, "x")]
    same.check(flow, {"events": given}, {"odd": ["a", "c", "x"], "even": ["b"]})


def test_a_repartition_before_a_key_changes_nothing(same: Case) -> None:
    """Spark would leave out the shuffle of the aggregate, and keys would stay where their state is not."""
    flow, stream = sales("repartitioned")
    stream.repartition("many", 8, "user").key_by("user").count("a").sink("one", ps.console())
    stream.repartition("few", 1).key_by("user").sum("b", "n").sink("two", ps.console())
    stream.repartition("part", 2, "user").key_by("user", "n").count("c").sink("three", ps.console())
    users = [("ada", 2), ("bob", 2), (None, 1), ("eve", 1)]
    same.check(flow, {"sales": SALES * 3}, {
        "one": [(u, 3 * n) for u, n in users],
        "two": [("ada", 39), ("bob", 3), (None, 21), ("eve", 6)],
        "three": [(u, n, 3) for u, n, _ in SALES],
    })  # fmt: skip


def test_sums_of_decimals_are_exact(same: Case) -> None:
    flow = ps.Flow("decimals")
    money = flow.source("money", ps.items([], "k int, m decimal(28,18)"))
    money.key_by("k").sum("total", "m").sink("out", ps.console())
    given = [(1, Decimal("1234567890.123456789012345678")), (1, Decimal("0.000000000000000001"))] * 2
    same.check(flow, {"money": given}, {"out": [(1, Decimal("2469135780.246913578024691358"))]})


def test_not_a_number_is_the_largest(same: Case) -> None:
    flow = ps.Flow("nan")
    values = flow.source("values", ps.items([], "k int, x double"))
    values.key_by("k").aggregate("ends", low="min(x)", high="max(x)").sink("out", ps.console())
    nan = float("nan")
    given = [(1, 1.0), (1, nan), (1, 3.0), (2, nan), (2, 2.0)]
    same.check(flow, {"values": given}, {"out": [(1, 1.0, nan), (2, 2.0, nan)]})


def test_sums_begin_at_zero(same: Case) -> None:
    """So -0.0 alone adds up to 0.0, however a sum is made: of records, of parts, of windows, of different values, of a table."""
    flow = ps.Flow("zeros")
    values = flow.source("values", ps.items([], "k int, x double, at timestamp"), event_time="at")
    asked = {
        "s": "sum(x)",
        "m": "avg(x)",
        "d": "sum(distinct x)",
        "e": "avg(distinct x)",
        "f": "sum(x) filter (where k > 0)",
    }
    values.key_by("k").aggregate("all", **asked).sink("out", ps.console())
    values.key_by("k").window(ps.tumbling("1m")).aggregate("minutes", **asked).select(
        "sums", "k", "s", "m", "d", "e", "f"
    ).sink("windowed", ps.console())
    values.key_by("k").aggregate("least", x="min(x)").aggregate("total", s="sum(x)", d="sum(distinct x)").sink(
        "table", ps.console()
    )
    at = datetime.datetime(2026, 5, 1, 12, tzinfo=datetime.UTC)
    zeros = (0.0,) * 5
    same.check(flow, {"values": [(1, -0.0, at), (2, -0.0, at), (2, -0.0, at)]}, {
        "out": [(1, *zeros), (2, *zeros)], "windowed": [(1, *zeros), (2, *zeros)], "table": [(0.0, 0.0)],
    })  # fmt: skip


class Recent(ps.Process):
    """A default that changes, and is not shared between keys."""

    last = ps.value(deque, default=deque(maxlen=2))

    def on_event(self, row: Any) -> Iterator[Any]:
        self.last.append(row.word)
        yield self.key, "".join(self.last)


def test_a_default_that_changes_belongs_to_its_key(same: Case) -> None:
    flow = ps.Flow("deques")
    events = flow.source("events", ps.items([], "k int, word string"))
    events.key_by("k").process("recent", Recent, "k int, last string").sink("out", ps.console())
    given = [(1, "a"), (2, "x"), (1, "b"), (1, "c")]
    same.check(flow, {"events": given}, {"out": [(1, "a"), (2, "x"), (1, "ab"), (1, "bc")]})


@pytest.mark.live
def test_state_of_nested_types_past_the_size_at_which_files_are_read_in_parts(same: Case) -> None:
    """Lists, structs and decimals in state files of more than 256 KiB, which live batches read in parts."""
    flow = ps.Flow("large")
    stream = flow.source("sales", ps.items([], "user int, n int, name string, price decimal(12,2)"))
    stream.key_by("user").aggregate(
        "stats", kinds="count(distinct n)", last="max_by(name, n)", most="max(price)", all="collect_set(name)"
    ).sink("out", ps.console())
    users = 16_000
    rows = [(u, turn, f"{u} at {turn}", Decimal(u + turn) / 4) for turn in range(2) for u in range(users)]
    expected = [(u, 2, f"{u} at 1", Decimal(u + 1) / 4, [f"{u} at 0", f"{u} at 1"]) for u in range(users)]
    same.check(flow, {"sales": rows}, {"out": [(*r[:3], r[3].quantize(Decimal("0.01")), r[4]) for r in expected]})
