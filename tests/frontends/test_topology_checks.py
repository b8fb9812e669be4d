"""Topologies that cannot be meant are refused while they are built: what was expected, what it got, and where."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError, LoopError, NameTaken, PenstockError, SchemaError, UnknownName
from penstock.testing import run_local, run_spark


class Same(ps.Bolt):
    outputs = {"default": "word string", "other": "word string"}

    def process(self, tup: Any) -> Any:
        yield tup[0]


class Jobs(ps.Bolt):
    outputs = {"jobs": "word string"}
    direct = ("jobs",)

    def process(self, tup: Any) -> None:
        self.emit((tup[0],), stream="jobs", task=0)


class Words(ps.Spout):
    outputs = "word string"

    def next_tuple(self) -> Any:
        return ps.END


class Silent(ps.Spout):
    def next_tuple(self) -> Any:
        return ps.END


def words(**config: Any) -> ps.Topology:
    top = ps.Topology("words", config)
    top.spout("words", ps.items(["a", "b"], "word string"))
    return top


def reading(subscribe: Callable[[Any], Any], bolt: Any = Same) -> Callable[[], Any]:
    def made() -> Any:
        top = words()
        top.bolt("jobs", Jobs).shuffle("words")
        subscribe(top.bolt("own", bolt))
        return top.graph

    return made


def spoutless() -> Any:
    top = ps.Topology("words")
    top.bolt("own", Same).shuffle("own", feedback=True)
    return top.graph


def sink_as_source() -> Any:
    top = words()
    top.sink("out", ps.console(), from_="words")
    top.bolt("own", Same).shuffle("out")
    return top.graph


def twice(kind: str) -> Callable[[], Any]:
    def made() -> Any:
        top = words()
        if kind == "spout":
            top.spout("words", Words)
        elif kind == "sink":
            top.sink("words", ps.console(), from_="words")
        else:
            top.bolt("words", Same)

    return made


BAD: dict[str, tuple[Callable[[], Any], type[PenstockError], str]] = {
    "no component at all": (lambda: ps.Topology("words").graph, FlowError, "topology 'words' is empty"),
    "no spout": (spoutless, FlowError, "topology 'words': expected a spout, got none"),
    "an unknown component": (
        reading(lambda b: b.shuffle("wrods")),
        UnknownName,
        "bolt 'own' .* reads 'wrods', which is no spout or bolt .*'words'",
    ),
    "an unknown stream": (
        reading(lambda b: b.shuffle("words", stream="odd")),
        UnknownName,
        "bolt 'own' .* reads stream 'odd' of 'words'",
    ),
    "a sink as a source": (sink_as_source, UnknownName, "reads 'out', which is no spout or bolt"),
    "a field that is not there": (
        reading(lambda b: b.fields("words", "wrod")),
        SchemaError,
        "stream 'default' of 'words': .*'wrod'.*'word'",
    ),
    "a field of partial key that is not there": (
        reading(lambda b: b.partial_key("words", "wrod")),
        SchemaError,
        "stream 'default' of 'words': .*'wrod'",
    ),
    "no fields": (reading(lambda b: b.fields("words")), FlowError, "bolt 'own' .* fields needs at least one field"),
    "direct of a stream that is not": (
        reading(lambda b: b.direct("words")),
        FlowError,
        "direct grouping needs a direct stream, and stream 'default' of 'words' is not one",
    ),
    "another grouping of a direct stream": (
        reading(lambda b: b.shuffle("jobs", stream="jobs")),
        FlowError,
        "stream 'jobs' of 'jobs' is direct",
    ),
    "all of a direct stream": (
        reading(lambda b: b.all("jobs", stream="jobs")),
        FlowError,
        "stream 'jobs' of 'jobs' is direct",
    ),
    "custom of a direct stream": (
        reading(lambda b: b.custom("jobs", lambda values: 0, stream="jobs")),
        FlowError,
        "stream 'jobs' of 'jobs' is direct",
    ),
    "direct of a stream that is not declared": (
        reading(lambda b: b.shuffle("words"), type("Odd", (Same,), {"direct": ("odd",)})),
        FlowError,
        "direct lists streams of its outputs .default, other.",
    ),
    "the same stream twice": (
        reading(lambda b: b.shuffle("words").fields("words", "word")),
        FlowError,
        "has subscribed to stream 'default' of 'words' already",
    ),
    "nothing to read": (reading(lambda b: b), FlowError, "bolt 'own' .*reads nothing; subscribe it to a stream"),
    "a loop without an edge that closes it": (
        reading(lambda b: b.shuffle("words").shuffle("own", stream="other")),
        LoopError,
        "is a loop",
    ),
    "a spout of a taken name": (twice("spout"), NameTaken, "component 'words' .* must have a name of its own"),
    "a bolt of a taken name": (twice("bolt"), NameTaken, "component 'words' .* must have a name of its own"),
    "a sink of a taken name": (twice("sink"), NameTaken, "component 'words' .* must have a name of its own"),
    "a component of the system": (
        lambda: words().bolt("__acker", Same),
        FlowError,
        "expected a name that does not begin with '__'.*got '__acker'",
    ),
    "a stream of the system": (
        lambda: words().bolt("own", type("Odd", (Same,), {"outputs": {"__ack": "n int"}})),
        FlowError,
        "component 'own' .*got '__ack'",
    ),
    "a topology of the system": (lambda: ps.Topology("__words"), FlowError, "got '__words'"),
    "no task": (
        lambda: words().bolt("own", Same, 0),
        FlowError,
        "component 'own' .*1 to 32,768 tasks, got parallelism=0",
    ),
    "less than no task": (lambda: words().spout("own", Words, -1), FlowError, "component 'own' .*got parallelism=-1"),
    "half a task": (lambda: words().bolt("own", Same, 1.5), FlowError, "component 'own' .*got parallelism=1.5"),  # type: ignore[arg-type]
    "a task that is true": (lambda: words().bolt("own", Same, True), FlowError, "got parallelism=True"),
    "a spout that is a bolt": (lambda: words().spout("own", Same), FlowError, "spout 'own' .* needs a penstock.Spout"),  # type: ignore[arg-type]
    "a bolt that is a spout": (lambda: words().bolt("own", Words), FlowError, "bolt 'own' .* needs a penstock.Bolt"),  # type: ignore[arg-type]
    "a spout that emits nothing": (
        lambda: words().spout("own", Silent),
        SchemaError,
        "spout 'own' .* must say what it emits",
    ),
    "a chooser that takes nothing": (reading(lambda b: b.custom("words", lambda: 0)), FlowError, "own"),
    "a setting that is no dict": (
        lambda: ps.Topology("words", [1]),  # type: ignore[arg-type]
        FlowError,
        "config: expected a dict of names to values",
    ),
}
CONFIG: dict[str, list[Any]] = {
    "topology.tick.tuple.freq.secs": ["soon", 0, -1, True, [1]],
    "topology.message.timeout.secs": ["30", 0, False],
    "topology.max.spout.pending": [0, 1.5, "10", True],
    "topology.acker.executors": [-1, "all", 0.5],
    "topology.workers": [0, "two"],
    "topology.debug": ["yes", 1],
    "topology.name": [7],
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_topology_is_refused(what: str) -> None:
    make, error, message = BAD[what]
    with pytest.raises(error, match=message):
        make()


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in CONFIG.items() for value in values])
def test_a_setting_of_the_wrong_type_is_refused(name: str, value: Any) -> None:
    for make in (
        lambda: ps.Topology("words", {name: value}),
        lambda: words().bolt("own", Same, config={name: value}),
        lambda: words().spout("own", Words, config={name: value}),
    ):
        with pytest.raises(
            FlowError, match=f"config {re.escape(repr(name))}: expected .*, got {re.escape(repr(value))}"
        ):
            make()


def test_settings_of_ones_own_may_be_anything() -> None:
    top = words(**{"own.key": [1, {"a": None}], "topology.max.spout.pending": None})
    assert top.config["own.key"] == [1, {"a": None}]


class Task(ps.Bolt):
    outputs = "task int"
    stateful = False

    def prepare(self, context: Any) -> None:
        self._task = context.task

    def process(self, tup: Any) -> Any:
        yield self._task


class Numbers(ps.Spout):
    outputs = "word string"

    def __init__(self) -> None:
        self.at = 0

    def next_tuple(self) -> Any:
        if self.at == 100_000:
            return ps.END
        self.at += 1000
        return ["a"] * 1000


def spread() -> ps.Topology:
    """100,000 tuples to two tasks, from a spout and from a bolt of three tasks."""
    top = ps.Topology("spread")
    top.spout("numbers", Numbers())
    top.bolt("pass", Same(), 3).shuffle("numbers")
    top.bolt("near", Task(), 2).shuffle("numbers")
    top.bolt("far", Task(), 2).shuffle("pass")
    top.sink("near-out", ps.console(), from_="near")
    top.sink("far-out", ps.console(), from_="far")
    return top


def check_shares(results: Any) -> None:
    for sink in ("near-out", "far-out"):
        got = Counter(task for (task,) in results[sink])
        assert sum(got.values()) == 100_000
        assert sorted(got) == [0, 1]
        assert all(49_000 <= n <= 51_000 for n in got.values()), got


def test_a_shuffle_spreads_within_one_percent() -> None:
    check_shares(run_local(spread()))


@pytest.mark.spark
def test_a_shuffle_spreads_within_one_percent_on_spark(penstock_spark: Any) -> None:
    check_shares(run_spark(spread(), penstock_spark, {}))
