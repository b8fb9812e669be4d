"""Rules of Storm that no other test holds: which tasks get values of any type, whose messages count as pending, and who is told of them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.bridge.drpc.calls import CallLimits
from penstock.errors import PenstockError, SchemaError
from penstock.graph import types as t
from penstock.graph.multilang.shell import HEARTBEAT
from penstock.graph.nodes import Grouping
from penstock.graph.schema import schema_of
from penstock.kernels.topology.routing import router_of
from penstock.testing import TrackedTopology, complete_topology, run_local

ODD = Path(__file__).parents[1] / "multilang" / "programs" / "odd.py"


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("binary", [b"a", b"bb", b"\x00\x01", b""]),
        ("array<int>", [[1, 2], [2, 1], [], [None]]),
        ("struct<a: int, b: string>", [{"a": 1, "b": "x"}, {"a": 2, "b": None}, {"a": 1, "b": "y"}]),
        ("timestamp", [None]),
    ],
)
def test_fields_hash_by_content(field: str, values: list[Any]) -> None:
    """Equal values that are other objects go to the task that the first one went to."""
    schema = schema_of(f"word {field}")
    made = router_of(Grouping("fields", ("word",)), 7, schema)
    again = router_of(Grouping("fields", ("word",)), 7, schema)
    copies = [bytes(bytearray(v)) if isinstance(v, bytes) else list(v) if isinstance(v, list) else v for v in values]
    assert [made.targets((v,), 0) for v in values] == [again.targets((v,), 3) for v in copies]


class Pending(ps.Spout):
    """Emits for ever, with ids or without."""

    outputs = "n int, task int"
    reliable = True
    endless = True

    def __init__(self, ids: bool) -> None:
        self.ids, self.n = ids, 0
        self.told: list[Any] = []

    def open(self, context: Any) -> None:
        self._task = context.task

    def next_tuple(self) -> Any:
        if self.n == 50:
            return ps.END
        self.n += 1
        self.emit((self.n, self._task), id=(self._task, self.n) if self.ids else None)
        return None

    def ack(self, id: Any) -> None:
        assert id[0] == self._task, "another task emitted it"
        self.told.append(id)

    def fail(self, id: Any) -> None:
        assert id[0] == self._task, "another task emitted it"
        self.told.append(id)


class Keep(ps.Bolt):
    """Keeps every tuple, or fails the odd ones."""

    auto_ack = False
    seen: list[int] = []

    def __init__(self, keeps: bool) -> None:
        self.keeps = keeps

    def process(self, tup: Any) -> None:
        self.seen.append(tup.n)
        if not self.keeps:
            self.fail(tup) if tup.n % 2 else self.ack(tup)


def kept(ids: bool, keeps: bool = True) -> TrackedTopology:
    top = ps.Topology("pending", {"topology.max.spout.pending": 5})
    top.spout("numbers", Pending(ids), 3)
    Keep.seen = []
    top.bolt("keep", Keep(keeps)).shuffle("numbers")
    tracked = TrackedTopology(top)
    tracked.run()
    return tracked


def test_messages_are_pending_by_the_task_of_a_spout() -> None:
    """Three tasks with five messages each, and not one more."""
    tracked = kept(ids=True)
    assert tracked.pending("numbers") == 15
    assert Counter(Keep.seen) == dict.fromkeys(range(1, 6), 3)


def test_tuples_without_an_id_are_not_pending() -> None:
    tracked = kept(ids=False)
    assert tracked.pending("numbers") == 0
    assert len(Keep.seen) == 150


def test_acks_and_fails_go_to_the_task_that_emitted() -> None:
    """The spout itself checks that each is its own."""
    tracked = kept(ids=True, keeps=False)
    assert Counter(task for task, _ in tracked.acked("numbers")) == {0: 25, 1: 25, 2: 25}
    assert Counter(task for task, _ in tracked.failed("numbers")) == {0: 25, 1: 25, 2: 25}


def test_a_heartbeat_is_as_the_protocol_has_it() -> None:
    assert (HEARTBEAT["stream"], HEARTBEAT["task"], HEARTBEAT["tuple"]) == ("__heartbeat", -1, [])
    assert isinstance(HEARTBEAT["id"], str)


def test_answers_of_task_ids_come_in_the_order_of_emits_between_tuples(tmp_path: Path) -> None:
    """A program that asks with every emit and reads the answers among its tuples, whenever they come."""
    program = tmp_path / "asks.py"
    program.write_text(ASKS)
    top = ps.Topology("asks")
    top.spout("words", ps.items([f"w{n}" for n in range(600)], "word string"))
    bolt = ps.ShellBolt([sys.executable, str(program)], {"default": "word string", "told": "words string, ids string"})
    top.bolt("asks", bolt).shuffle("words")
    top.bolt("heard", Heard(), 3).fields("asks", "word")
    top.sink("out", ps.console(), from_="heard")
    top.sink("told", ps.console(), from_="asks", stream="told")
    results = run_local(top)
    told: dict[str, int] = {}
    for words, ids in results["told"]:
        told |= dict(zip(json.loads(words), (each[0] for each in json.loads(ids)), strict=True))
    assert len(told) == 600
    assert told == dict(map(tuple, results["out"]))


class Heard(ps.Bolt):
    outputs = "word string, task int"

    def prepare(self, context: Any) -> None:
        self._id = context.task_id

    def process(self, tup: Any) -> Any:
        yield tup.word, self._id


ASKS = """
import json, os, sys

def read():
    lines = []
    for line in sys.stdin:
        if line == "end\\n":
            yield json.loads("".join(lines))
            lines = []
        else:
            lines.append(line)

def send(message):
    print(json.dumps(message) + "\\nend", flush=True)

messages = read()
setup = next(messages)
open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
send({"pid": os.getpid()})
asked, told, waiting = [], [], []
for message in messages:
    if isinstance(message, list):
        told.append(message)
    elif message["stream"] == "__heartbeat":
        send({"command": "sync"})
    else:
        asked.append(message["tuple"][0])
        waiting.append(message["id"])
        send({"command": "emit", "tuple": message["tuple"], "anchors": [message["id"]]})
    if asked and len(told) == len(asked):
        send({"command": "emit", "tuple": [json.dumps(asked), json.dumps(told)], "stream": "told", "anchors": [], "need_task_ids": False})
        for each in waiting:
            send({"command": "ack", "id": each})
        asked, told, waiting = [], [], []
"""


def test_the_limits_of_calls_are_those_of_storm() -> None:
    assert (CallLimits().queue, CallLimits().timeout) == (128, 600)


def test_a_type_of_every_field_may_be_grouped_but_a_map() -> None:
    top = ps.Topology("maps")
    top.spout("words", ps.items([], "word map<string, int>"))
    top.bolt("keep", Keep(True)).fields("words", "word")
    with pytest.raises(SchemaError, match="a map has no hash"):
        _ = top.graph
    assert isinstance(schema_of("word map<string, int>").field("word").type, t.Map)


def test_a_test_sees_what_its_own_class_has_noted() -> None:
    """The check that a class can travel must leave the class as it is: its methods hold the very list of the test."""
    seen: list[Any] = []

    class Note(ps.Bolt):
        outputs = "n int"

        def process(self, tup: Any) -> Any:
            seen.append(tup.n)
            yield tup.n

    top = ps.Topology("noted")
    top.spout("numbers", ps.items([1, 2], "n int"))
    top.bolt("note", Note()).shuffle("numbers")
    top.sink("out", ps.console(), from_="note")
    assert run_local(top)["out"] == [(1,), (2,)]
    assert run_local(top)["out"] == [(1,), (2,)]
    assert seen == [1, 2, 1, 2]


@pytest.mark.parametrize("reliable", [False, True])
def test_a_spout_is_closed_once(reliable: bool) -> None:
    told: list[str] = []

    class Told(ps.Spout):
        outputs = "n int"

        def open(self, context: Any) -> None:
            told.append("open")

        def next_tuple(self) -> Any:
            return ps.END

        def activate(self) -> None:
            told.append("activate")

        def deactivate(self) -> None:
            told.append("deactivate")

        def close(self) -> None:
            told.append("close")

    Told.reliable = reliable
    top = ps.Topology("told")
    top.spout("told", Told())
    top.bolt("keep", Keep(False)).shuffle("told")
    run_local(top)
    assert told == ["open", "activate", "deactivate", "close"]


def windowed(**attributes: Any) -> ps.Topology:
    top = ps.Topology("windows")
    top.spout("numbers", ps.items([1], "n int, ts bigint"))
    made = {"outputs": "n int", "window": 2, "process_window": lambda self, window: None, **attributes}
    top.bolt("windows", type("Windows", (ps.WindowedBolt,), made)()).global_("numbers")
    return top


@pytest.mark.parametrize(
    ("attributes", "text"),
    [
        ({"window": 0}, "window: expected a number of tuples (10) or a duration ('10s'), got 0"),
        ({"slide": 1.5}, "slide: expected a number of tuples (10) or a duration ('10s'), got 1.5"),
        ({"lag": "much"}, "lag"),
        ({"late_stream": "late"}, "late_stream 'late': expected a timestamp_field, got none"),
        ({"late_stream": "late", "timestamp_field": "ts"}, "late_stream: outputs have no 'late'; there are: 'default'"),
        ({"timestamp_field": "time"}, "stream 'default' of 'numbers' has no field 'time'; there are: 'n', 'ts'"),
        (
            {"process_window": ps.WindowedBolt.process_window},
            "Windows must define process_window(self, window)",
        ),
    ],
)
def test_windows_that_cannot_be_are_refused_while_the_topology_is_built(attributes: dict[str, Any], text: str) -> None:
    with pytest.raises(PenstockError, match=r"bolt 'windows' \(test_storm_rules.py:\d+\)") as caught:
        windowed(**attributes).graph  # noqa: B018 - the graph is made when it is asked for
    assert text in str(caught.value)


class Growing(ps.PartitionedSpout):
    """Partitions that may grow while the run goes on."""

    outputs = "n int"
    most = 2
    parts: dict[str, int] = {}
    done: list[Any] = []

    def ends(self) -> dict[str, int]:
        return dict(self.parts)

    def starts(self, partition: str) -> int:
        return 1 if partition == "late" else 0

    def read(self, partition: str, first: int, end: int) -> Any:
        self.parts["a"] = 9
        return list(range(first, end))

    def acked(self, partition: str, first: int, end: int) -> None:
        self.done.append((partition, first, end))


def growing(**config: Any) -> ps.Topology:
    Growing.parts, Growing.done = {"a": 3, "late": 2}, []
    top = ps.Topology("growing", config)
    top.spout("growing", Growing, parallelism=2)
    return top


def test_a_bounded_run_reads_what_a_partitioned_spout_has_when_it_begins() -> None:
    assert sorted(complete_topology(growing()).tuples("growing")) == [(0,), (1,), (1,), (2,)]
    assert sorted(Growing.done) == [("a", 0, 2), ("a", 2, 3), ("late", 1, 2)]


def test_a_partitioned_spout_goes_on_and_reads_again_what_nobody_acks_in_time() -> None:
    top = growing(**{"topology.message.timeout.secs": 5})
    Keep.seen = []
    top.bolt("keep", Keep(True)).shuffle("growing")
    tracked = TrackedTopology(top)
    tracked.run()
    ranges = {("a", 0, 2), ("a", 2, 3), ("a", 3, 5), ("a", 5, 7), ("a", 7, 9), ("late", 1, 2)}
    assert (sorted(Keep.seen), tracked.pending("growing")) == ([*range(2), 1, *range(2, 9)], len(ranges))
    tracked.advance(11)
    assert (set(tracked.failed("growing")), tracked.pending("growing")) == (ranges, 0)
    tracked.run()
    assert (len(Keep.seen), tracked.pending("growing"), Growing.done) == (20, len(ranges), [])


@pytest.mark.parametrize(
    ("attributes", "options", "text"),
    [
        ({"read": ps.PartitionedSpout.read}, {}, "Wrong must define read(self, partition, first, end)"),
        ({"ends": ps.PartitionedSpout.ends}, {}, "Wrong must define ends(self)"),
        ({"most": 0}, {}, "most: expected a number of records from 1 on, got 0"),
        ({}, {"limit": 3}, "a PartitionedSpout ends as ends() says, got limit=3"),
        ({"ends": lambda self: {"a": "b"}}, {}, "expected names of partitions with numbers of records, got ('a', 'b')"),
    ],
)
def test_a_partitioned_spout_that_cannot_be_meant_is_refused(
    attributes: dict[str, Any], options: dict[str, Any], text: str
) -> None:
    def build() -> None:
        top = ps.Topology("wrong")
        top.spout("wrong", type("Wrong", (Growing,), attributes), **options)
        run_local(top)

    with pytest.raises(PenstockError) as caught:
        build()
    assert text in str(caught.value)
