"""Storm's Flux: objects, references, includes, substitution, groupings; and what is refused."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import FlowError
from penstock.flowfiles.substitution import properties_of
from penstock.jobs.load import load_flow
from penstock.testing import run_local

PARTS = "tests.flowfiles.parts"
SPOUT = f"spouts: [{{id: lines, className: {PARTS}.Sentences, constructorArgs: [[a bb, ccc a]]}}]"
SPLIT = f"{{id: split, className: {PARTS}.Split}}"
TASKS = f"{{id: tasks, className: {PARTS}.Tasks, parallelism: 2}}"
OUT = '{id: out, className: "penstock:console"}'


def written(folder: Path, text: str, name: str = "topology.yaml") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def topology(folder: Path, text: str, **properties: str) -> Any:
    return ps.flow_file(written(folder, text), properties)


def grouped(folder: Path, grouping: str) -> list[Any]:
    streams = f"{{from: lines, to: split, grouping: {{type: SHUFFLE}}}}, {{from: split, to: tasks, grouping: {grouping}}}, {{from: tasks, to: out, grouping: {{type: SHUFFLE}}}}"
    return run_local(topology(folder, f"name: t\n{SPOUT}\nbolts: [{SPLIT}, {TASKS}, {OUT}]\nstreams: [{streams}]"))[
        "out"
    ]


FULL = f"""
name: "word-count"
config:
  topology.workers: 1
  own.setting: yes
components:
  - id: "separator"
    className: "{PARTS}.Separator"
    factory: "of"
    factoryArgs: [" "]
    properties:
      - name: "shouting"
        value: true
    configMethods:
      - name: "withSuffix"
        args: ["!", "?"]
  - id: "plain"
    className: "{PARTS}:Separator"
    constructorArgs: ["-"]
spouts:
  - id: "lines"
    className: "{PARTS}.Sentences"
    parallelism: 1
    constructorArgs:
      sentences: ["a bb", "ccc a"]
bolts:
  - id: "split"
    className: "{PARTS}.Split"
    parallelism: 2
    numTasks: 3
    onHeapMemoryLoad: 128.0
    constructorArgs:
      - ref: "separator"
    properties:
      - name: "limit"
        value: 4
      - name: "more"
        reflist: ["separator", "plain"]
  - id: "out"
    className: "penstock:console"
  - id: "long"
    className: "penstock:console"
streams:
  - name: "lines --> split"
    from: "lines"
    to: "split"
    grouping: {{type: SHUFFLE}}
  - from: "split"
    to: "out"
    grouping: {{type: NONE}}
  - from: "split"
    to: "long"
    grouping: {{type: SHUFFLE, streamId: long}}
"""


def test_a_flux_file_with_everything_runs(tmp_path: Path) -> None:
    top = topology(tmp_path, FULL)
    results = run_local(top)
    assert sorted(results["out"]) == [("A!?",), ("A!?",), ("BB!?",)]
    assert results["long"] == [("CCC!?",)]
    bolt = top.graph.node("split")
    assert bolt.tasks == 3
    assert [s.sign for s in bolt.logic.more] == [" ", "-"]
    assert dict(bolt.config)["own.setting"] is True


@pytest.mark.parametrize(
    ("grouping", "wanted"),
    [
        ("{type: SHUFFLE}", 4),
        ("{type: LOCAL_OR_SHUFFLE}", 4),
        ("{type: NONE}", 4),
        ("{type: FIELDS, args: [word]}", 4),
        ("{type: GLOBAL}", 4),
        ("{type: ALL}", 8),
        (f"{{type: CUSTOM, customClass: {{className: {PARTS}.ByLength}}}}", 4),
    ],
)
def test_every_grouping(grouping: str, wanted: int, tmp_path: Path) -> None:
    rows = grouped(tmp_path, grouping)
    assert len(rows) == wanted
    if "FIELDS" in grouping:
        assert len({task for word, task in rows if word == "a"}) == 1
    if "GLOBAL" in grouping:
        assert {task for _, task in rows} == {0}
    if "CUSTOM" in grouping:
        assert all(task == len(word) % 2 for word, task in rows)


def test_a_direct_grouping_needs_a_direct_stream(tmp_path: Path) -> None:
    with pytest.raises(FlowError, match="direct grouping needs a direct stream"):
        grouped(tmp_path, "{type: DIRECT}")


def test_includes_take_over_what_the_file_does_not_say(tmp_path: Path) -> None:
    written(
        tmp_path,
        f"config: {{a: 1, b: 1}}\ncomponents: [{{id: sep, className: {PARTS}.Separator, constructorArgs: [b]}}]\nincludes: [{{file: nothing.yaml}}]",
        "more.yaml",
    )
    rest = f"{SPOUT}\nbolts: [{{id: split, className: {PARTS}.Split, constructorArgs: [{{ref: sep}}]}}, {OUT}]\nstreams: [{{from: lines, to: split, grouping: {{type: SHUFFLE}}}}, {{from: split, to: out, grouping: {{type: SHUFFLE}}}}]"
    own = "name: t\nconfig: {b: 2}\n"
    top = topology(tmp_path, f"{own}includes: [{{resource: true, file: /more.yaml, override: false}}]\n{rest}")
    assert (dict(top.graph.node("split").config)["a"], dict(top.graph.node("split").config)["b"]) == (1, 2)
    assert ("a ",) in run_local(top)["out"]
    over = topology(tmp_path, f"{own}includes: [{{file: more.yaml, override: true}}]\n{rest}")
    assert dict(over.graph.node("split").config)["b"] == 1
    with pytest.raises(FlowError, match=r"line 3, column 19: there is no file 'gone.yaml' to include"):
        topology(
            tmp_path, f"{own}includes: [{{file: gone.yaml}}]\n{rest}".replace("includes: [{file", "includes: [{file")
        )


def test_properties_and_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORDS", "[x y]")
    text = f"name: ${{top.name}}\nspouts: [{{id: lines, className: {PARTS}.Sentences, parallelism: ${{many}}, constructorArgs: [${{ENV-WORDS}}]}}]\nbolts: [{OUT}]\nstreams: [{{from: lines, to: out, grouping: {{type: SHUFFLE}}}}]"
    filters = written(tmp_path, "# settings\ntop.name = named\nmany: 1\n", "dev.properties")
    made = load_flow(str(written(tmp_path, text)), properties_of(filters))
    assert made.graph.name == "named"
    assert run_local(made.flow)["out"] == [("x y",)]
    with pytest.raises(FlowError, match=r"line 2: expected name=value"):
        properties_of(written(tmp_path, "a=1\nb\n", "bad.properties"))


def test_a_component_may_have_settings_of_its_own(tmp_path: Path) -> None:
    own = SPLIT.replace("}", ", config: {own.setting: 2, topology.debug: false}}")
    text = f"name: t\nconfig: {{own.setting: 1, a: 1}}\n{SPOUT}\nbolts: [{own}, {TASKS}, {OUT}]\nstreams: [{{from: lines, to: split, grouping: {{type: SHUFFLE}}}}, {{from: split, to: tasks, grouping: {{type: SHUFFLE}}}}, {{from: tasks, to: out, grouping: {{type: SHUFFLE}}}}]"
    graph = topology(tmp_path, text).graph
    assert dict(graph.node("split").config) == {"own.setting": 2, "a": 1, "topology.debug": False}
    assert dict(graph.node("tasks").config) == {"own.setting": 1, "a": 1}
    with pytest.raises(
        FlowError, match=r"line 4, column 9: .*config 'topology.debug': expected true or false, got 'x'"
    ):
        topology(tmp_path, text.replace("topology.debug: false", "topology.debug: x"))
    with pytest.raises(FlowError, match="an endpoint has no settings"):
        topology(tmp_path, text.replace(OUT, OUT.replace("}", ", config: {a: 1}}")))


def test_a_topology_source(tmp_path: Path) -> None:
    top = topology(
        tmp_path, f"config: {{a: 1}}\ntopologySource: {{className: {PARTS}.Source, constructorArgs: [[x, y]]}}"
    )
    assert run_local(top)["out"] == [("x",), ("y",)]


def test_programs_by_the_names_of_flux(tmp_path: Path) -> None:
    (tmp_path / "resources").mkdir()
    programs = Path(__file__).parents[1] / "multilang" / "programs" / "words.py"
    (tmp_path / "resources" / "words.py").write_text(programs.read_text())
    shell = "org.apache.storm.flux.wrappers.bolts.FluxShellBolt"
    text = f"""
name: shell
{SPOUT}
bolts:
  - id: split
    className: {shell}
    constructorArgs: [["{sys.executable}", "words.py", "Split"], ["word"]]
  - id: count
    className: {shell}
    constructorArgs: [["{sys.executable}", "words.py", "Count"]]
    configMethods:
      - {{name: setDefaultStream, args: [[word, n bigint]]}}
      - {{name: addComponentConfig, args: [rate, 3]}}
  - {{id: log, className: org.apache.storm.flux.wrappers.bolts.LogInfoBolt}}
  - {OUT}
streams:
  - {{from: lines, to: split, grouping: {{type: SHUFFLE}}}}
  - {{from: split, to: count, grouping: {{type: FIELDS, args: [word]}}}}
  - {{from: count, to: log, grouping: {{type: SHUFFLE}}}}
  - {{from: count, to: out, grouping: {{type: SHUFFLE}}}}
"""
    assert sorted(run_local(topology(tmp_path, text))["out"]) == [("a", 1), ("a", 2), ("bb", 1), ("ccc", 1)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"name: t\n{SPOUT}\nbolts: [{{id: b, className: org.apache.storm.kafka.bolt.KafkaBolt}}]", r"line 3, column 28: 'org.apache.storm.kafka.bolt.KafkaBolt' is a class of Java"),
        (f"name: t\n{SPOUT}\nbolts: [{{id: b, className: {PARTS}.Splitt}}]", "did you mean 'Split'"),
        (f"name: t\n{SPOUT}\nbolts: [{{id: b, className: {PARTS}.Separator}}]", r"expected a ps.Bolt or an endpoint, got Separator"),
        (f"name: t\n{SPOUT}\nbolts: [{{id: b, className: {PARTS}.Split, constructorArgs: [{{ref: late}}]}}]", "no object 'late' above; what is referred to must be declared first"),
        (f"name: t\ncomponents: [{{id: a, className: {PARTS}.Split, constructorArgs: [{{ref: b}}]}}, {{id: b, className: {PARTS}.Separator}}]", "no object 'b' above"),
        (f"name: t\n{SPOUT}\nbolts: [{SPLIT}]\nstreams: [{{from: lines, to: splat, grouping: {{type: SHUFFLE}}}}]", "no bolt 'splat'; did you mean 'split'"),
        (f"name: t\n{SPOUT}\nbolts: [{SPLIT}]\nstreams: [{{from: line, to: split, grouping: {{type: SHUFFLE}}}}]", "no spout or bolt 'line'; did you mean 'lines'"),
        (f"name: t\n{SPOUT}\nbolts: [{SPLIT}]\nstreams: [{{from: lines, to: split, grouping: {{type: PARTIAL_KEY}}}}]", "no grouping 'PARTIAL_KEY'"),
        (f"name: t\n{SPOUT}\nbolts: [{SPLIT}]\nstreams: [{{from: lines, to: split, grouping: {{type: FIELDS}}}}]", "a FIELDS grouping needs args"),
        (f"name: t\n{SPOUT}\nbolt: []", "no key 'bolt' here; did you mean 'bolts'"),
        (f"name: t\n{SPOUT}\nbolts: [{SPLIT}, {SPLIT}]", "the id 'split' appears twice"),
        (f"name: t\n{SPOUT}\nbolts: [{{id: b, className: {PARTS}.Split, constructorArgs: [1, 2, 3]}}]", "cannot be made: TypeError"),
        ("bolts: []", "expected the key 'name'"),
        ("name: t\nbolts: []", "expected spouts"),
        ("a: 1", "expected a flow file, with the keys 'flow' and 'steps', or a Flux file"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(FlowError, match=message):
        topology(tmp_path, text)


EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.parametrize("file", ["word_count.yaml", "flux/topology.yaml"])
def test_the_examples_count_words(file: str) -> None:
    counts: dict[str, int] = {}
    for word, n in run_local(ps.flow_file(EXAMPLES / file))["out"]:
        counts[word] = max(n, counts.get(word, 0))
    assert (counts["to"], counts["be"], counts["question"]) == (2, 2, 1)
