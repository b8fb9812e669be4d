"""Flux files, topologies of streamparse and heronpy, and a project of streamparse: real runs, on Spark and in an environment of their own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import venv
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.compat import heron, streamparse
from penstock.errors import FlowError
from penstock.testing import TrackedTopology, run_local, run_spark

EXAMPLE = Path(__file__).parents[2] / "examples" / "flux" / "topology.yaml"
WORDS = ["to", "be", "or", "not", "to", "be", "that", "is", "the", "question"]


FLUX = f"""
name: words
spouts:
  - {{id: lines, className: tests.flowfiles.parts.Sentences, constructorArgs: [[to be or not to be, that is the question]]}}
bolts:
  - id: split
    className: org.apache.storm.flux.wrappers.bolts.FluxShellBolt
    constructorArgs: [[{sys.executable}, {EXAMPLE.parent / "split.py"}], [word string]]
    parallelism: 2
  - {{id: tasks, className: tests.flowfiles.parts.Tasks, parallelism: 2}}
  - {{id: out, className: "penstock:console"}}
streams:
  - {{from: lines, to: split, grouping: {{type: SHUFFLE}}}}
  - {{from: split, to: tasks, grouping: {{type: FIELDS, args: [word]}}}}
  - {{from: tasks, to: out, grouping: {{type: SHUFFLE}}}}
"""


def words_by_flux(folder: Path, run: Any) -> None:
    """A Flux file with a spout, a program and a bolt: each word once, equal words at one task."""
    (folder / "words.yaml").write_text(FLUX)
    rows = run(ps.flow_file(folder / "words.yaml"))["out"]
    assert sorted(row[0] for row in rows) == sorted(WORDS)
    assert len({tuple(row) for row in rows}) == len(set(WORDS))


def test_a_flux_file_with_a_program_runs(tmp_path: Path) -> None:
    words_by_flux(tmp_path, run_local)


@pytest.mark.spark
def test_a_flux_file_with_a_program_runs_on_spark(penstock_spark: Any, tmp_path: Path) -> None:
    words_by_flux(tmp_path, lambda flow: run_spark(flow, penstock_spark, {}))


class Lines(streamparse.ReliableSpout):
    """Emits with ids; the base class emits again what failed."""

    outputs = ["line"]

    def initialize(self, stormconf: Any, context: Any) -> None:
        self.left = ["to be or not to be", "that is the question"]

    def next_tuple(self) -> None:
        if self.left:
            line = self.left.pop(0)
            self.emit([line], tup_id=line)


class Split(streamparse.Bolt):
    """Fails each line once, says the tasks that words go to, and the task that a line comes from."""

    outputs = ["word", streamparse.Stream(fields=["word", "task int", "source int"], name="said")]

    def initialize(self, conf: Any, ctx: Any) -> None:
        self.seen: list[str] = []

    def process(self, tup: Any) -> None:
        line = tup.values.line
        if line not in self.seen:
            self.seen.append(line)
            self.fail(tup)
            return
        for word in line.split():
            [task] = self.emit([word], need_task_ids=True)
            assert self.emit([word, task, tup.task], stream="said") is None


class Count(heron.Bolt):
    outputs = ["word", "n bigint", "task int"]

    def initialize(self, config: Any, context: Any) -> None:
        self.counts: Counter[str] = Counter()
        self.task = context["taskid"]

    def process(self, tup: Any) -> None:
        word = tup.values[0]
        self.counts[word] += 1
        self.emit([word, self.counts[word], self.task], anchors=[tup])
        self.ack(tup)


class Ported(streamparse.Topology):
    lines = Lines.spec(config={"penstock.spout.limit": 4})
    split = Split.spec(inputs=[lines])
    count = Count.spec(inputs={split: streamparse.Grouping.fields("word")}, par=3)


def watched() -> ps.Topology:
    top = Ported.topology
    top.sink("out", ps.console(), from_="count")
    top.sink("said", ps.console(), from_="split", stream="said")
    return top


def check(results: Any) -> None:
    counted = {(word, n): task for word, n, task in results["out"]}
    assert sorted(counted) == sorted((w, i + 1) for w in set(WORDS) for i in range(WORDS.count(w)))
    assert {word: task for (word, _), task in counted.items()} == {word: task for word, task, _ in results["said"]}
    assert len({source for *_, source in results["said"]}) == 1


def test_a_ported_topology_replays_and_knows_its_tasks() -> None:
    tracked = TrackedTopology(watched())
    check(tracked.run())
    assert len(tracked.acked("lines")) == len(tracked.failed("lines")) == 2


@pytest.mark.spark
def test_a_ported_topology_replays_and_knows_its_tasks_on_spark(penstock_spark: Any) -> None:
    check(run_spark(watched(), penstock_spark, {}))


class ByLength:
    """A grouping as Heron has it."""

    def prepare(self, context: Any, component: str, stream: str, target_tasks: list[int]) -> None:
        assert (component, stream) == ("split", "default")
        self.target_tasks = target_tasks

    def choose_tasks(self, values: list[Any]) -> list[int]:
        return [self.target_tasks[len(values[0]) % len(self.target_tasks)]]


class StormByLength:
    """A grouping as Storm has it."""

    def prepare(self, context: Any, stream: str, targets: list[int]) -> None:
        self.own, self.targets = context.task_id, targets

    def chooseTasks(self, task: int, values: list[Any]) -> list[int]:  # noqa: N802 - Storm's name
        assert task == self.own
        return [self.targets[len(values[0]) % len(self.targets)]]


@pytest.mark.parametrize("chooser", [f"{__name__}.ByLength", StormByLength()], ids=["heron", "storm"])
def test_a_custom_grouping_gets_and_returns_task_ids(chooser: Any) -> None:
    class Chosen(streamparse.Topology):
        lines = Lines.spec(config={"penstock.spout.limit": 4})
        split = Split.spec(inputs=[lines])
        count = Count.spec(inputs={split: streamparse.Grouping.custom(chooser)}, par=3)

    top = Chosen.topology
    top.sink("out", ps.console(), from_="count")
    ids = top.graph.node("count").layout.task_ids("count")  # type: ignore[attr-defined]  # a bolt has a layout
    rows = run_local(top)["out"]
    assert {(word, task) for word, _, task in rows} == {(w, ids[len(w) % 3]) for w in WORDS}


def test_a_custom_grouping_that_cannot_be_is_refused() -> None:
    with pytest.raises(FlowError, match=r"expected the path of a class, such as module.Class, got 'no.such.Class'"):
        streamparse.Grouping.custom("no.such.Class")


def test_an_item_of_a_property_that_is_a_list(tmp_path: Path) -> None:
    text = """
    name: t
    spouts:
      - {id: lines, className: "penstock:items", constructorArgs: [["${words[1]}", "${words[7]}"], word string]}
    bolts: [{id: out, className: "penstock:console"}]
    streams: [{from: lines, to: out, grouping: {type: SHUFFLE}}]
    """
    (tmp_path / "t.yaml").write_text(textwrap.dedent(text))
    rows = run_local(ps.flow_file(tmp_path / "t.yaml", {"words": "[a, b]"}))["out"]
    assert rows == [("b",), ("${words[7]}",)], "what is not there stays as it is"


@pytest.mark.slow
@pytest.mark.parametrize("serializer", ["json", "msgpack"])
def test_a_project_of_streamparse_runs_unchanged(tmp_path: Path, serializer: str) -> None:
    """The project that `sparse quickstart` makes, with the package itself in an environment of its own."""
    venv.create(tmp_path / "env", with_pip=True)
    tools = tmp_path / "env" / "bin"
    subprocess.run([tools / "pip", "install", "-q", "streamparse==5.0.1", "msgpack"], check=True)
    subprocess.run(
        [tools / "sparse", "quickstart", "own"], check=True, cwd=tmp_path, env={**os.environ, "LEIN_ROOT": "1"}
    )
    about: dict[str, Any] = {"cwd": str(tmp_path / "own" / "src"), "serializer": serializer}
    command = [str(tools / "streamparse_run"), "-s", serializer]
    top = ps.Topology("wordcount")
    spout = ps.ShellSpout([*command, "spouts.words.WordSpout"], ["word"], reliable=False, **about)
    top.spout("words", spout, limit=40)
    bolt = ps.ShellBolt([*command, "bolts.wordcount.WordCountBolt"], ["word", "count bigint"], **about)
    top.bolt("count", bolt, 2).fields("words", "word")
    top.sink("out", ps.console(), from_="count")
    rows = run_local(top)["out"]
    assert Counter(word for word, _ in rows) == dict.fromkeys(["dog", "cat", "zebra", "elephant"], 10)
    assert max(count for word, count in rows if word == "dog") == 100
    assert sys.executable != str(tools / "python")
