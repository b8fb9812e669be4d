"""Cases that somebody from Storm would try: choices of tasks, late tuples, spouts whose partitions are read in tasks, settings."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import pytest

import penstock as ps
from penstock import trident
from penstock.compat.storm import StormFields, deep_hash
from penstock.errors import FlowError
from penstock.testing import BARRIER, TrackedTopology, run_local


class Where(ps.Bolt):
    """Says in which task a tuple is."""

    outputs = "key string, task int"
    stateful = False

    def prepare(self, context: Any) -> None:
        self._task = context.task

    def process(self, tup: Any) -> Any:
        yield str(tup[0]), self._task


def test_equal_keys_of_two_streams_meet_in_one_task() -> None:
    top = ps.Topology("meet")
    top.spout("orders", ps.items(range(40), "order bigint"))
    top.spout("paid", ps.items([(f"p{n}", n) for n in range(40)], "what string, id bigint"))
    top.bolt("orders-by-key", Where(), parallelism=5).fields("orders", "order")
    top.bolt("both", Both(), parallelism=5).fields("orders", "order").fields("paid", "id")
    top.sink("out", ps.console(), from_="both")
    tasks = defaultdict(list)
    for key, task in run_local(top)["out"]:
        tasks[key].append(task)
    assert len(tasks) == 40
    assert all(len(found) == 2 and len({*found}) == 1 for found in tasks.values())


class Both(Where):
    def process(self, tup: Any) -> Any:
        yield str(tup[-1]), self._task


class SeveralOrNone:
    """A grouping as in Storm."""

    def prepare(self, context: Any, stream: str, target_tasks: list[int]) -> None:
        assert target_tasks == sorted(target_tasks)
        self.tasks = target_tasks

    def choose_tasks(self, task_id: int, values: list[Any]) -> list[int]:
        return [self.tasks[values[0] % 3], self.tasks[0]] if values[0] % 2 else []


def test_a_grouping_of_storm_chooses_several_tasks_or_none() -> None:
    chooser: Any = SeveralOrNone()
    top = ps.Topology("choose")
    top.spout("numbers", ps.items(range(6), "n bigint"))
    top.bolt("where", Where(), parallelism=3).custom("numbers", chooser)
    top.sink("out", ps.console(), from_="where")
    assert sorted(run_local(top)["out"]) == [("1", 0), ("1", 1), ("3", 0), ("3", 0), ("5", 0), ("5", 2)]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["hello"], 99162353),
        (["polygenelubricants"], -2147483617),
        ([100, None], 4061),
        (["a b", -5, 2.25, True, None, b"\x01\xff", [1, "x", False], {"k": 2, "z": None}, 1 << 40, -0.0], 1606910518),
    ],
)
def test_values_have_the_hash_that_java_has_of_them(values: list[Any], expected: int) -> None:
    """The numbers are what `java.util.Arrays.deepHashCode` of Java 17 returned."""
    assert deep_hash(values) == expected


def test_a_fields_grouping_may_choose_the_tasks_of_storm() -> None:
    top = ps.Topology("hash")
    top.spout("words", ps.items(["polygenelubricants", "hello"], "word string"))
    top.bolt("where", Where(), parallelism=7).custom("words", StormFields("word"))
    top.sink("out", ps.console(), from_="where")
    assert sorted(run_local(top)["out"]) == [("hello", 99162353 % 7), ("polygenelubricants", 1)]
    with pytest.raises(FlowError, match=r"StormFields: expected .* got 2j"):
        deep_hash([2j])


@pytest.mark.parametrize(
    ("late", "expected"),
    [("late_tuple struct<ts: bigint, n: bigint>", ({"ts": 1_000, "n": 9},)), ("ts bigint, n bigint", (1_000, 9))],
)
def test_a_late_tuple_is_one_field_as_in_storm_or_its_own_fields(late: str, expected: Any) -> None:
    class Windows(ps.WindowedBolt):
        outputs: Mapping[str, str] = {"default": "many bigint", "late": late}
        window, timestamp_field, late_stream = "10s", "ts", "late"

        def process_window(self, window: Any) -> Any:
            yield len(window)

    top = ps.Topology("late")
    top.spout("numbers", ps.items([], "ts bigint, n bigint"))
    top.bolt("windows", Windows()).global_("numbers")
    top.sink("late", ps.console(), from_="windows", stream="late")
    assert run_local(top, {"numbers": [(60_000, 1), BARRIER, (1_000, 9)]})["late"] == [expected]


class Shards(ps.PartitionedSpout):
    """Three shards; the first try to read one of them fails in the middle."""

    outputs = {"default": "shard string, n bigint", "read": "shard string, task int"}
    config: Mapping[str, Any] = {"topology.tick.tuple.freq.secs": 1}
    most = 2
    tries: dict[str, int] = {}
    closed: list[int] = []

    def ends(self) -> dict[str, int]:
        return {"a": 4, "b": 2, "c": 1}

    def open(self, context: Any) -> None:
        self._task = context.task

    def read(self, partition: str, first: int, end: int) -> Any:
        key = f"{partition}{first}"
        self.tries[key] = self.tries.get(key, 0) + 1
        for n in range(first, end):
            yield partition, n
            if (key, self.tries[key]) == ("b0", 1):
                raise ps.ReportedFailedException("the shard is busy")
        self.emit((partition, self._task), stream="read")

    def close(self) -> None:
        self.closed.append(self._task)


def test_a_range_that_cannot_be_read_just_now_is_read_again_and_emits_nothing_before(
    caplog: pytest.LogCaptureFixture,
) -> None:
    Shards.tries, Shards.closed = {}, []
    top = ps.Topology("shards", config={"topology.max.spout.pending": 1})
    top.spout("shards", Shards(), parallelism=2)
    top.sink("rows", ps.console(), from_="shards")
    top.sink("read", ps.console(), from_="shards", stream="read")
    with caplog.at_level(logging.WARNING, "penstock"):
        results = run_local(top)
    assert sorted(results["rows"]) == [("a", 0), ("a", 1), ("a", 2), ("a", 3), ("b", 0), ("b", 1), ("c", 0)]
    assert sorted(results["read"]) == [("a", 0), ("a", 0), ("b", 1), ("c", 0)]
    assert Shards.tries == {"a0": 1, "a2": 1, "b0": 2, "c0": 1}
    assert sorted(Shards.closed) == [0, 1]
    assert "the shard is busy" in caplog.text


@pytest.mark.parametrize(("most", "tasks", "open_now"), [(1, 1, 1), (2, 1, 2), (1, 2, 2), (None, 1, 10), (None, 2, 12)])
def test_only_so_many_ranges_are_open_for_each_task(most: int | None, tasks: int, open_now: int) -> None:
    class Keep(ps.Bolt):
        auto_ack = False

        def process(self, tup: Any) -> None:
            """Acks nothing."""

    class Twelve(ps.PartitionedSpout):
        outputs = "n bigint"

        def ends(self) -> dict[str, int]:
            return dict.fromkeys("abcdefghijkl", 1)

        def read(self, partition: str, first: int, end: int) -> Any:
            return [first]

    top = ps.Topology("open", config={} if most is None else {"topology.max.spout.pending": most})
    top.spout("letters", Twelve(), parallelism=tasks)
    top.bolt("keep", Keep()).shuffle("letters")
    tracked = TrackedTopology(top)
    tracked.run()
    assert tracked.pending("letters") == open_now


def test_the_value_of_an_opaque_state_outside_of_a_transaction() -> None:
    assert trident.OpaqueValue(8, "v1", "v0").get(None) == "v1"


def test_a_shuffle_that_looks_at_loads_is_refused() -> None:
    name = "topology.disable.loadaware.messaging"
    assert ps.Topology("even", config={name: True}).config[name] is True
    with pytest.raises(FlowError, match=rf"config '{name}': expected true, .* deals tuples out evenly .* got False"):
        ps.Topology("even", config={name: False})


def test_errors_of_bolts_are_logged_without_spark_too(caplog: pytest.LogCaptureFixture) -> None:
    class Reports(ps.Bolt):
        def process(self, tup: Any) -> None:
            self.report_error(ValueError("odd"))

    top = ps.Topology("errors")
    top.spout("numbers", ps.items([1], "n bigint"))
    top.bolt("reports", Reports()).shuffle("numbers")
    with caplog.at_level(logging.WARNING, "penstock"):
        run_local(top)
    assert "bolt 'reports', task 0: ValueError: odd" in caplog.text


def test_what_is_said_of_a_tuple_twice_counts_once() -> None:
    class Twice(ps.Bolt):
        auto_ack = False

        def process(self, tup: Any) -> None:
            self.ack(tup)
            self.ack(tup)

    top = ps.Topology("twice")
    top.spout("words", ps.items([], "word string"))
    top.bolt("twice", Twice()).shuffle("words")
    tracked = TrackedTopology(reliable(top), {"words": ["a", "b"]})
    tracked.run()
    assert sorted(tracked.acked("words")) == [0, 1]
    assert tracked.is_done


def reliable(top: ps.Topology) -> ps.Topology:
    """The topology with a spout of its own, for which a list stands in."""

    class Words(ps.Spout):
        outputs = "word string"

        def next_tuple(self) -> Any:
            return ps.END

    made = ps.Topology(top.name)
    made.spout("words", Words())
    made._declared = {**top._declared, **made._declared}
    return made


def test_a_stream_of_trident_reads_partitions_in_tasks() -> None:
    class Numbers(ps.PartitionedSpout):
        outputs = "n bigint"
        most = 2

        def ends(self) -> dict[str, int]:
            return {"a": 5, "b": 3}

        def read(self, partition: str, first: int, end: int) -> Any:
            return range(first, end)

    top = ps.TridentTopology("numbers")
    numbers = top.new_stream("numbers", Numbers, parallelism=2)
    numbers.aggregate("n", trident.Sum, "sum bigint").sink("out", ps.console())
    assert run_local(top)["out"] == [(13,)]
    with pytest.raises(FlowError, match="a PartitionedSpout ends as ends"):
        ps.TridentTopology("limited").new_stream("numbers", Numbers, limit=3)
