"""Topologies of streamparse and heronpy, with another import."""

from __future__ import annotations

import pickle
import runpy
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.compat import heron, heron_constants, heron_global_metrics, heron_windows, streamparse
from penstock.compat.topology import TopologyType, built
from penstock.errors import FlowError
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.jobs.load import load_flow
from penstock.testing import TrackedTopology, complete_topology, run_local

SEEN: list[Any] = []


class Words(streamparse.Spout):
    outputs = ["word"]

    def initialize(self, stormconf: Any, context: Any) -> None:
        self.left = ["dog", "cat", "dog", "zebra"]

    def next_tuple(self) -> None:
        if self.left:
            self.emit([self.left.pop(0)])


class CountBolt(streamparse.Bolt):
    outputs = ["word", "count", streamparse.Stream(fields=["word"], name="rare")]

    def initialize(self, conf: Any, ctx: Any) -> None:
        self.counter: Counter[str] = Counter()
        self.total = 0

    def process(self, tup: Any) -> None:
        word = tup.values.word
        self.counter[word] += 1
        self.total += 1
        self.emit([word, self.counter[word]])
        if word == "zebra":
            self.emit([word], stream="rare")


class Look(streamparse.Bolt):
    def process(self, tup: Any) -> None:
        SEEN.append((tup.component, tup.stream, *tup.values))


class WordCount(streamparse.Topology):
    word_spout = Words.spec(config={"penstock.spout.limit": 4})
    count_bolt = CountBolt.spec(inputs={word_spout: streamparse.Grouping.fields("word")}, par=2)
    look = Look.spec(inputs=[count_bolt, count_bolt["rare"]])


def test_a_topology_of_streamparse_runs() -> None:
    SEEN.clear()
    run_local(WordCount)
    assert sorted(s for s in SEEN if s[1] == "default") == [
        ("count_bolt", "default", "cat", 1), ("count_bolt", "default", "dog", 1), ("count_bolt", "default", "dog", 2), ("count_bolt", "default", "zebra", 1),
    ]  # fmt: skip
    assert [s for s in SEEN if s[1] == "rare"] == [("count_bolt", "rare", "zebra")]


def test_a_class_is_found_in_its_file(tmp_path: Any) -> None:
    file = tmp_path / "ported_topology.py"
    file.write_text(
        "from penstock.compat.streamparse import Topology\nfrom tests.compat.test_ported import Words, CountBolt, Grouping\n\n\nclass Found(Topology):\n    words = Words.spec()\n    count = CountBolt.spec(inputs={words: Grouping.SHUFFLE})\n".replace(
            ", Grouping", ""
        ).replace(
            "from penstock.compat.streamparse import Topology",
            "from penstock.compat.streamparse import Grouping, Topology",
        )
    )
    assert load_flow(str(file)).graph.name == "Found"


def test_a_reliable_spout_emits_again_what_failed() -> None:
    class Numbers(streamparse.ReliableSpout):
        outputs = ["n"]
        max_fails = 1

    sent: list[Any] = []
    made = Numbers()
    made._adapter = type(
        "Adapter", (), {"send": lambda self, values, stream, number, task: sent.append((values, number))}
    )()
    made.emit([1], tup_id=7)
    made.fail(7)
    made.fail(7)
    assert sent == [([1], 7), ([1], 7)]
    with pytest.raises(FlowError, match="emits with an id"):
        made.emit([1])


def test_classes_of_java_are_refused() -> None:
    with pytest.raises(FlowError, match=r"JavaBolt\.spec names a class of Java"):
        streamparse.JavaBolt.spec(full_class_name="org.x.Y")
    with pytest.raises(FlowError, match="neither a Spout nor a Bolt"):
        built("x", {"a": heron.Spec(type("Odd", (), {"config": {}}))}, {})


class HeronWords(heron.Spout):
    outputs = ["word"]

    def initialize(self, config: Any, context: Any) -> None:
        self.left = ["a", "b", "a"]

    def next_tuple(self) -> None:
        if self.left:
            self.emit([self.left.pop(0)])


class HeronCount(heron.Bolt):
    outputs = ["word", "n bigint"]

    def init_state(self, stateful_state: dict[Any, Any]) -> None:
        self.recovered = stateful_state

    def process(self, tup: Any) -> None:
        if self.is_tick(tup):
            return
        word = tup.values[0]
        self.recovered[word] = self.recovered.get(word, 0) + 1
        self.emit([word, self.recovered[word]], anchors=[tup])
        self.ack(tup)


def test_a_topology_of_heronpy_runs() -> None:
    builder = heron.TopologyBuilder("counts")
    words = builder.add_spout("words", HeronWords, par=1, config={"penstock.spout.limit": 3})
    builder.add_bolt("count", HeronCount, par=2, inputs={words: heron.Grouping.fields("word")})
    builder.set_config({"topology.message.timeout.secs": 60})
    builder.build_and_submit()
    top = builder.topology
    top.sink("out", ps.console(), from_="count")
    assert sorted(run_local(top)["out"]) == [("a", 1), ("a", 2), ("b", 1)]
    with pytest.raises(FlowError, match="expected a name of its own"):
        builder.add_spout("words", HeronWords, par=1)


def test_state_of_a_ported_bolt_is_saved_and_put_back() -> None:
    from copy import deepcopy

    from penstock.compat.components import BoltAdapter
    from penstock.graph.logic.topology.collector import Collector
    from penstock.graph.logic.topology.task_context import TaskContext
    from penstock.graph.logic.topology.tuples import tuple_class

    def adapter() -> Any:
        made = deepcopy(BoltAdapter(CountBolt))
        made._collector = Collector(["default", "rare"])
        made._context = TaskContext("count")
        made.prepare(made._context)
        return made

    first = adapter()
    first.process(tuple.__new__(tuple_class(("word",), "words", "default", False), ("dog",)))
    first._made.connection = lambda: None
    first.end_batch(1)
    again = adapter()
    again.kept = first.kept
    again.restored()
    assert again._made.counter == Counter(dog=1)
    assert again._made.total == 1
    assert not hasattr(again._made, "connection")


class HeronMeasured(heron.Bolt):
    outputs: list[str] = []

    def initialize(self, config: Any, context: Any) -> None:
        self.context = context
        self.count, self.kinds, self.mean = heron.CountMetric(), heron.MultiCountMetric(), heron.MeanReducedMetric()
        for name, metric in (("count", self.count), ("kinds", self.kinds), ("mean", self.mean)):
            context.register_metric(name, metric, 10)

    def process(self, tup: Any) -> None:
        context = self.context
        SEEN.append((context.get_component_id(), context.get_task_id() in context.get_component_tasks("measured")))
        SEEN.append((context.get_topology_name(), list(context.get_this_sources()), context["componentid"]))
        self.count.incr()
        self.count.incr(to_add=2)
        self.kinds.incr(tup.values[0])
        self.mean.update(len(tup.values[0]))
        self.ack(tup)


def test_a_bolt_of_heronpy_knows_its_context_and_counts_there() -> None:
    SEEN.clear()
    builder = heron.TopologyBuilder("measuring")
    words = builder.add_spout("words", HeronWords, par=1, config={"penstock.spout.limit": 2})
    builder.add_bolt("measured", HeronMeasured, par=1, inputs={words: heron.Grouping.SHUFFLE})
    tracked = TrackedTopology(builder)
    tracked.run()
    (metrics,) = [v for (name, _), v in tracked.metrics.items() if name == "measured"]
    assert metrics["count"] == 3 * sum(metrics["kinds"].values())
    assert 0 < metrics["mean"] < 100
    assert set(map(repr, SEEN[:2])) == {
        "('measured', True)",
        "('measuring', [StreamId(id='default', component_name='words')], 'measured')",
    }


def test_metrics_and_contexts_are_no_state() -> None:
    """They would come back as copies, which nobody reads."""
    for made in (heron.CountMetric(), heron.TopologyContext(TaskContext("a"))):
        with pytest.raises(TypeError, match="is made again by initialize"):
            pickle.dumps(made)


class Reports(streamparse.Bolt):
    outputs = ["any"]

    def process(self, tup: Any) -> None:
        self.report_metric("size", 2.5)
        self.report_metric("seen", {"odd": 1})
        self.emit([{"n": tup.values[0]}])


class Reported(streamparse.Topology):
    words = Words.spec(config={"penstock.spout.limit": 4})
    reports = Reports.spec(inputs=[words])


def test_a_class_is_completed_and_its_open_fields_have_their_values() -> None:
    assert complete_topology(Reported, {"words": ["a", "b"]}).tuples("reports") == [({"n": "a"},), ({"n": "b"},)]
    tracked = TrackedTopology(Reported)
    tracked.run()
    assert tracked.metrics["reports", 0] == {"size": 10.0, "seen": 4}


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: {"a": Words.spec(name="x"), "b": Look.spec(name="x")}, "got 'x' twice"),
        (lambda: {"a": Words.spec(), "b": Look.spec(inputs=["a"])}, "expected inputs of its topology (a, b), got 'a'"),
        (lambda: {"a": (a := Words.spec()), "b": Look.spec(inputs={a: "shuffle"})}, "expected a grouping such as"),
        (lambda: {"a": Words.spec(par="2"), "b": Look.spec()}, "got parallelism='2'"),
    ],
)
def test_a_class_that_cannot_be_meant_is_refused(build: Any, text: str) -> None:
    with pytest.raises(FlowError) as caught:
        TopologyType("Wrong", (streamparse.Topology,), build()).graph  # noqa: B018 - it is made when it is asked for
    assert text in str(caught.value)


class Timed(heron.Spout):
    outputs = ["n"]

    def initialize(self, config: Any, context: Any) -> None:
        self.left = [1, 2, 3]

    def next_tuple(self) -> None:
        if self.left:
            self.emit([self.left[0]], tup_id=self.left.pop(0))


class Lengths:
    outputs = ("many bigint",)

    def processWindow(self, window_info: heron.WindowContext, tuples: list[Any]) -> None:  # noqa: N802 - heronpy's name
        assert window_info.end - window_info.start == 10
        self.emit([sum(tup.values[0] for tup in tuples)])  # type: ignore[attr-defined]  # the base has it


class Tumbling(Lengths, heron.TumblingWindowBolt):
    """What came in ten seconds."""


class Sliding(Lengths, heron.SlidingWindowBolt):
    """What came in the last ten seconds, every two."""


@pytest.mark.parametrize(
    ("bolt", "config", "sums"),
    [
        (Tumbling, {heron.TumblingWindowBolt.WINDOW_DURATION_SECS: 10}, [6, 0]),
        (
            Sliding,
            {heron.SlidingWindowBolt.WINDOW_DURATION_SECS: 10, heron.SlidingWindowBolt.WINDOW_SLIDEINTERVAL_SECS: 2},
            [6, 6, 6, 6, 6, 6, 0, 0, 0, 0],
        ),
    ],
)
def test_windowed_bolts_of_heronpy(
    bolt: type[heron.Bolt], config: dict[str, Any], sums: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    builder = heron.TopologyBuilder("windows")
    spout = builder.add_spout("timed", Timed, par=1)
    builder.add_bolt("windows", bolt, par=1, inputs={spout: heron.Grouping.SHUFFLE}, config=config)
    top = builder.topology
    top.sink("out", ps.console(), from_="windows")
    tracked = TrackedTopology(top)
    monkeypatch.setattr(heron_windows, "clock", tracked.driver.clock)
    tracked.run()
    tracked.advance(1)
    assert tracked.pending("timed") == 3
    tracked.advance(20)
    assert [row.many for row in tracked.driver.results()["out"]] == sums
    assert sorted(tracked.acked("timed")) == [1, 2, 3]


def test_windowed_bolts_of_heronpy_need_their_duration() -> None:
    name = heron.SlidingWindowBolt.WINDOW_DURATION_SECS
    for config, message in (({}, "expected seconds, 1 or more, as config"), ({name: 2, "slidingwindowbolt_slideinterval_secs": 3}, "a slide of at most the duration, 2 s, got 3 s")):  # fmt: skip
        builder = heron.TopologyBuilder("windows")
        spout = builder.add_spout("timed", Timed, par=1)
        builder.add_bolt("windows", Sliding, par=1, inputs=[spout], config=config)
        with pytest.raises(FlowError, match=message):
            builder.topology  # noqa: B018 - it is made when it is asked for


class Forgets(heron.Bolt):
    def process(self, tup: Any) -> None:
        """Acks nothing."""


@pytest.mark.parametrize(
    ("config", "pending", "failed"),
    [
        ({}, 3, 3),
        ({heron_constants.TOPOLOGY_ENABLE_MESSAGE_TIMEOUTS: "false"}, 3, 0),
        ({heron_constants.TOPOLOGY_RELIABILITY_MODE: heron_constants.TopologyReliabilityMode.ATMOST_ONCE}, 0, 0),
        ({heron_constants.TOPOLOGY_RELIABILITY_MODE: heron_constants.TopologyReliabilityMode.ATLEAST_ONCE}, 3, 3),
    ],
)
def test_settings_of_heron_say_what_is_acked_and_fails(config: dict[str, str], pending: int, failed: int) -> None:
    builder = heron.TopologyBuilder("settings")
    spout = builder.add_spout("timed", Timed, par=1)
    builder.add_bolt("forgets", Forgets, par=1, inputs=[spout])
    builder.set_config(config)
    tracked = TrackedTopology(builder)
    tracked.run()
    assert tracked.pending("timed") == pending
    tracked.advance(61)
    assert len(tracked.failed("timed")) == failed


class Counted(heron.Bolt):
    """Counts as the examples of heronpy do, without a metric of its own."""

    def process(self, tup: Any) -> None:
        heron_global_metrics.safe_incr("count")
        heron_global_metrics.incr(tup.values[0], to_add=2)
        self.ack(tup)


class FirstTask(heron.ICustomGrouping):
    def prepare(self, context: Any, component: str, stream: str, target_tasks: list[int]) -> None:
        self.target_tasks = target_tasks

    def choose_tasks(self, values: Any) -> list[int]:
        return self.target_tasks[:1]


def test_global_metrics_belong_to_the_task_at_work() -> None:
    builder = heron.TopologyBuilder("counted")
    words = builder.add_spout("words", HeronWords, par=1, config={"penstock.spout.limit": 3})
    builder.add_bolt("counted", Counted, par=2, inputs={words: heron.Grouping.custom(FirstTask())})
    tracked = TrackedTopology(builder)
    tracked.run()
    assert tracked.metrics == {("counted", 0): {"count": 3, "a": 4, "b": 2}}


SUBMITTED = """
from penstock.compat.heron import TopologyBuilder
from tests.compat.test_ported import HeronWords

builder = TopologyBuilder("submitted")
builder.add_spout("words", HeronWords, par=1)
builder.build_and_submit()
"""


def test_a_builder_runs_where_its_file_is_the_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[heron.TopologyBuilder] = []
    monkeypatch.setattr(ps, "run", ran.append)
    (tmp_path / "submitted.py").write_text(SUBMITTED)
    for name in ("submitted", "__main__"):
        runpy.run_path(str(tmp_path / "submitted.py"), run_name=name)
    assert [builder.name for builder in ran] == ["submitted"]
