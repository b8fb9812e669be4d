"""What components of streamparse and heronpy may count on, as pystorm 3.1 and heronpy 0.20 have it."""

from __future__ import annotations

import logging
import os
import pickle
import sys
from copy import deepcopy
from typing import Any

import pytest

from penstock.compat import heron, heron_constants, streamparse
from penstock.compat.components import PortedTuple, SpoutAdapter
from penstock.compat.streamparse import Grouping, Stream
from penstock.compat.topology import TopologyType
from penstock.errors import FlowError, StepError
from penstock.graph.logic.topology.collector import SpoutCollector
from penstock.graph.logic.topology.components import kept_attributes
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.testing import TrackedTopology, run_local

SEEN: list[Any] = []


@pytest.fixture(autouse=True)
def _nothing_seen() -> None:
    SEEN.clear()


class Messages(streamparse.Spout):
    outputs = ["word"]

    def initialize(self, conf: Any, context: Any) -> None:
        self.left = ["a", "b", "a"]
        self.again: list[Any] = []

    def next_tuple(self) -> None:
        if self.left:
            word = self.left.pop(0)
            self.emit([word], tup_id=f"{word}{len(self.left)}")

    def fail(self, tup_id: Any) -> None:
        self.again.append(tup_id)


def tracked(bolt: Any, spout: Any = Messages, **about: Any) -> TrackedTopology:
    """A topology of one bolt that reads messages."""
    words = spout.spec()
    body = {"words": words, "own": bolt.spec(inputs={words: Grouping.GLOBAL}), **about}
    made = TrackedTopology(TopologyType("Own", (streamparse.Topology,), body))
    made.run()
    return made


class Grouped(streamparse.BatchingBolt):
    outputs = ["word", "n bigint"]

    def group_key(self, tup: Any) -> Any:
        return tup.values[0]

    def process_batch(self, key: Any, tups: list[Any]) -> None:
        SEEN.append((key, len(tups)))
        self.emit([key, len(tups)])


def test_a_batching_bolt_waits_for_one_tick_more_than_it_says() -> None:
    made = tracked(Grouped)
    made.advance(1)
    assert (SEEN, made.acked("words")) == ([], [])
    made.advance(1)
    assert (SEEN, sorted(made.acked("words"))) == ([("a", 2), ("b", 1)], ["a0", "a2", "b1"])


def test_ticks_of_the_topology_are_those_of_a_batching_bolt() -> None:
    made = tracked(Grouped, config={"topology.tick.tuple.freq.secs": 5})
    made.advance(9)
    assert not SEEN
    made.advance(1)
    assert SEEN == [("a", 2), ("b", 1)]


def test_a_batching_bolt_acks_anchors_and_fails_only_where_it_is_left_to_it() -> None:
    class Own(Grouped):
        auto_ack = False

        def process_batch(self, key: Any, tups: list[Any]) -> None:
            super().process_batch(key, tups)
            if key == "b":
                self.ack(tups[0].id)

    made = tracked(Own)
    made.advance(2)
    assert (made.acked("words"), made.pending("words")) == (["b1"], 2)

    class Breaks(Grouped):
        def process_batch(self, key: Any, tups: list[Any]) -> None:
            if key == "a":
                raise ValueError("no a")

    made = tracked(Breaks)
    made.advance(2)
    assert (made.acked("words"), sorted(made.failed("words"))) == (["b1"], ["a0", "a2"])

    class Falls(Breaks):
        auto_fail = False

    made = tracked(Falls)
    with pytest.raises(StepError, match="no a"):
        made.advance(2)


@pytest.mark.parametrize(("anchored", "acked"), [(True, []), (False, ["a0", "a2", "b1"])])
def test_what_a_batch_emits_is_anchored_unless_the_class_says_otherwise(anchored: bool, acked: list[str]) -> None:
    class Own(Grouped):
        auto_anchor = anchored

    class Keeps(streamparse.Bolt):
        auto_ack = False

        def process(self, tup: Any) -> None:
            """Acks nothing."""

    class Both(streamparse.Topology):
        words = Messages.spec()
        own = Own.spec(inputs=[words])
        keeps = Keeps.spec(inputs=[own])

    made = TrackedTopology(Both)
    made.run()
    made.advance(3)
    assert sorted(made.acked("words")) == acked


def test_a_tickless_bolt_has_its_batches_by_the_time_that_a_test_moves() -> None:
    class Own(streamparse.TicklessBatchingBolt):
        secs_between_batches = 3

        def process_batch(self, key: Any, tups: list[Any]) -> None:
            SEEN.append((key, len(tups)))

    made = tracked(Own)
    made.advance(2)
    assert not SEEN
    made.advance(1)
    assert (SEEN, len(made.acked("words"))) == ([(None, 3)], 3)


def test_a_tuple_has_five_fields_and_an_id_of_its_own() -> None:
    class Own(streamparse.Bolt):
        outputs = ["word"]
        auto_ack = False

        def initialize(self, conf: Any, context: Any) -> None:
            self.held: dict[str, Any] = {}

        def process(self, tup: Any) -> None:
            number, component, stream, task, values = tup
            assert isinstance(number, str)
            assert type(tup) is PortedTuple
            SEEN.append((component, stream, task, values.word, number))
            again = pickle.loads(pickle.dumps(tup))
            assert (again, again.origin) == (tup, tup.origin)
            self.held[number] = tup
            if len(self.held) == 3:
                self.emit(["all"], anchors=list(self.held))
                for each in self.held:
                    self.ack(each)

    class Fails(streamparse.Bolt):
        def process(self, tup: Any) -> None:
            raise ValueError(tup.values.word)

    class Both(streamparse.Topology):
        words = Messages.spec()
        own = Own.spec(inputs=[words])
        fails = Fails.spec(inputs=[own])

    made = TrackedTopology(Both)
    made.run()
    assert [seen[:4] for seen in SEEN] == [("words", "default", 3, word) for word in "aba"]
    assert len({number for *_, number in SEEN}) == 3
    assert sorted(made.failed("words")) == ["a0", "a2", "b1"], "each anchor by its id"


def test_an_id_that_is_not_open_is_passed_over() -> None:
    class Own(streamparse.Bolt):
        def process(self, tup: Any) -> None:
            self.fail("of nobody")

    assert sorted(tracked(Own).acked("words")) == ["a0", "a2", "b1"]


def test_a_component_knows_its_place() -> None:
    class Own(streamparse.Bolt):
        def initialize(self, conf: Any, context: Any) -> None:
            assert (self.storm_conf, self.context) == (conf, context)
            SEEN.append((self.topology_name, self.component_name, self.task_id, self.debug, self.pid))

        def process(self, tup: Any) -> None:
            """Nothing."""

    tracked(Own, config={"topology.debug": True})
    assert SEEN[0] == ("Own", "own", 1, True, os.getpid())


def test_what_a_spec_does_not_say_the_class_says() -> None:
    class Own(streamparse.Bolt):
        par = 3
        config = {"a": 1, "b": 2}

        def process(self, tup: Any) -> None:
            """Nothing."""

    assert (Own.spec().par, Own.spec().config) == (3, {"a": 1, "b": 2})
    assert (Own.spec(par={"prod": 4, "test": 2}).par, Own.spec(config={"a": 5}).config) == (4, {"a": 5})


def test_a_direct_stream_is_read_as_such() -> None:
    class Deals(streamparse.Bolt):
        outputs = [Stream(["word"], direct=True)]

        def process(self, tup: Any) -> None:
            tasks = [int(t) for t, name in self.context["task->component"].items() if name == "plays"]
            assert self.emit([tup.values.word], direct_task=max(tasks), need_task_ids=True) == [max(tasks)]

    class Plays(streamparse.Bolt):
        def process(self, tup: Any) -> None:
            SEEN.append(self.task_id)

    class Direct(streamparse.Topology):
        words = Messages.spec(config={"penstock.spout.limit": 3})
        deals = Deals.spec(inputs=[words])
        plays = Plays.spec(inputs=[deals], par=2)

    run_local(Direct)
    assert SEEN == [3, 3, 3]


def test_a_record_is_a_list_or_a_tuple() -> None:
    class Own(streamparse.Bolt):
        outputs = ["a", "b"]
        auto_fail = False

        def process(self, tup: Any) -> None:
            self.emit("ab")

    with pytest.raises(StepError, match="expected a list or a tuple of values, got 'ab'"):
        tracked(Own)


def test_a_reliable_spout_takes_what_failed_too_often_for_acked() -> None:
    class Numbers(streamparse.ReliableSpout):
        outputs = ["n bigint"]
        max_fails = 2

        def initialize(self, conf: Any, context: Any) -> None:
            self.left = [7]

        def next_tuple(self) -> None:
            if self.left:
                self.emit([self.left[0]], tup_id=self.left.pop())

        def ack(self, tup_id: Any) -> None:
            SEEN.append(tup_id)
            super().ack(tup_id)

    class Fails(streamparse.Bolt):
        def process(self, tup: Any) -> None:
            self.fail(tup)

    assert tracked(Fails, Numbers).failed("words") == [7, 7, 7]
    assert SEEN == [7]


def test_the_state_of_a_ported_spout_knows_what_it_was_told_last() -> None:
    """A message that failed is saved with the attributes, and not only after the next tuple: a driver that is killed then would forget it."""
    made: Any = deepcopy(SpoutAdapter(Messages))
    made._collector, made._context = SpoutCollector(["default"], (), True), TaskContext("words")
    made.open(made._context)
    made.next_tuple()
    made.fail("a2")
    made._about_to_save()
    kept = kept_attributes(made, SpoutAdapter(Messages))["kept"]
    assert pickle.loads(kept["again"]) == ["a2"]
    assert pickle.loads(kept["left"]) == ["b", "a"]


PROGRAM = """
import json, os, sys
def read():
    return json.loads("".join(iter(sys.stdin.readline, "end\\n")))
def send(message):
    print(json.dumps(message), "end", sep="\\n", flush=True)
setup = read()
open(os.path.join(setup["pidDir"], str(os.getpid())), "w").close()
send({"pid": os.getpid()})
left = list(sys.argv[2:])
while True:
    got = read()
    if sys.argv[1] == "spout":
        if got["command"] == "next" and left:
            send({"command": "emit", "tuple": [left.pop(0)], "need_task_ids": False})
        send({"command": "sync"})
    elif got["stream"] == "__heartbeat":
        send({"command": "sync"})
    else:
        send({"command": "emit", "anchors": [got["id"]], "tuple": [got["tuple"][0] + "!"], "need_task_ids": False, "stream": "loud"})
        send({"command": "ack", "id": got["id"]})
"""


def test_programs_stand_in_a_topology_of_streamparse(tmp_path: Any) -> None:
    (tmp_path / "own.py").write_text(PROGRAM)
    own = f"'{tmp_path}/own.py'"

    class Hears(streamparse.Bolt):
        def process(self, tup: Any) -> None:
            SEEN.append((tup.component, tup.stream, tup.values.word))

    class Programs(streamparse.Topology):
        words = streamparse.ShellSpout.spec(
            command=sys.executable, script=f"{own} spout x y", outputs=["word"], config={"penstock.spout.limit": 2}
        )
        louder = streamparse.ShellBolt.spec(
            command=sys.executable, script=f"{own} bolt", inputs=[words], outputs=[Stream(["word"], name="loud")]
        )
        hears = Hears.spec(inputs=[louder["loud"]])

    run_local(Programs)
    assert sorted(SEEN) == [("louder", "loud", "x!"), ("louder", "loud", "y!")]
    with pytest.raises(FlowError, match="expected a command, such as"):
        type("Wrong", (streamparse.Topology,), {"a": streamparse.ShellSpout.spec(outputs=["n"])}).graph  # type: ignore[attr-defined]  # noqa: B018


def test_logs_of_a_handler_and_what_belongs_to_java(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "penstock.shell"):
        streamparse.StormHandler().handle(logging.makeLogRecord({"msg": "said", "levelno": logging.INFO}))
    assert caplog.messages == ["said"]
    with pytest.raises(FlowError, match="a class of Java, which does not run here"):
        Grouping.custom_object("org.x.Y", [1])
    with pytest.raises(FlowError, match="an object of Java, which does not run here"):
        Grouping.custom_serialized(b"")


class Hook(heron.ITaskHook):
    def prepare(self, conf: Any, context: Any) -> None:
        SEEN.append(("prepare", context.get_component_id()))

    def emit(self, emit_info: heron.EmitInfo) -> None:
        SEEN.append(("emit", emit_info.values))

    def bolt_execute(self, bolt_execute_info: heron.BoltExecuteInfo) -> None:
        SEEN.append(("execute", bolt_execute_info.executing_task_id))

    def bolt_ack(self, bolt_ack_info: heron.BoltAckInfo) -> None:
        SEEN.append(("ack", bolt_ack_info.heron_tuple[0]))

    def bolt_fail(self, bolt_fail_info: heron.BoltFailInfo) -> None:
        SEEN.append(("fail", bolt_fail_info.heron_tuple[0]))

    def spout_ack(self, spout_ack_info: heron.SpoutAckInfo) -> None:
        SEEN.append(("spout ack", spout_ack_info.message_id))

    def spout_fail(self, spout_fail_info: heron.SpoutFailInfo) -> None:
        SEEN.append(("spout fail", spout_fail_info.message_id))


class HeronWords(heron.Spout):
    outputs = ["word"]

    def initialize(self, config: Any, context: Any) -> None:
        self.left = ["a", "b"]
        context.add_task_hook(Hook())

    def next_tuple(self) -> None:
        if self.left:
            self.emit([self.left[0]], tup_id=self.left.pop(0), stream=heron.Stream.DEFAULT_STREAM_ID)


class HeronBolt(heron.Bolt):
    outputs = ["word"]

    def init_state(self, stateful_state: Any) -> None:
        self.state = stateful_state

    def initialize(self, config: Any, context: Any) -> None:
        context.add_task_hook(Hook())
        SEEN.append(("config", config["own"], config["flag"]))

    def process(self, tup: Any) -> None:
        assert not self.is_tick(tup), "ticks go to process_tick, which does nothing"
        self.state.put(tup.values[0], (self.state.get(tup.values[0]) or 0) + 1)
        if tup.values[0] == "b":
            self.fail(tup)
            return
        self.emit(["A"], anchors=[tup])
        self.ack(tup)


def test_hooks_settings_and_ticks_of_heronpy() -> None:
    builder = heron.TopologyBuilder("own")
    words = builder.add_spout("words", HeronWords, par=1)
    config = {heron_constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: "1", "own": "7", "flag": "true"}
    builder.add_bolt("bolt", HeronBolt, par=1, inputs={words: heron.Grouping.SHUFFLE}, config=config)
    builder.set_config({heron_constants.TOPOLOGY_MESSAGE_TIMEOUT_SECS: "30"})
    made = TrackedTopology(builder)
    made.run()
    made.advance(3)
    for said in (("config", 7, True), ("prepare", "words"), ("prepare", "bolt"), ("execute", 1)):
        assert said in SEEN
    assert ("emit", ["A"]) in SEEN
    assert [s for s in SEEN if s[0] in ("ack", "fail")] == [("ack", "a"), ("fail", "b")]
    assert sorted(s for s in SEEN if s[0].startswith("spout")) == [("spout ack", "a"), ("spout fail", "b")]
