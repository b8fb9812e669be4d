"""Flow files: every step of the fluent API, errors with their place, limits, the schema for editors, export and back."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import penstock as ps
from penstock.compiler.describe import describe
from penstock.errors import ExpressionError, FlowError, NameTaken
from penstock.flowfiles import vocabulary as v
from penstock.flowfiles.json_schema import flow_schema
from penstock.flowfiles.reading import read_flow
from penstock.flowfiles.writing import write_flow
from penstock.flowfiles.yaml_text import MOST_BYTES, MOST_DEPTH, read_yaml
from penstock.frontends.streams.naming import is_step
from penstock.graph.spelling import spelling_of
from penstock.testing import run_local
from tests.compiler.flows import FLOWS
from tests.generated.flows import generate

SHIPPED = Path(__file__).parents[2] / "docs" / "reference" / "flow.schema.json"
WORDS = "{name: words, source: {items: {rows: [a, bb, bb], schema: word string}}}"


def upper(row: Any) -> str:
    return str(row.word).upper()


class Numbered(ps.Process):
    seen = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.seen += 1
        yield row.word, self.seen


@ps.function
def twice(n: int) -> int:
    return n * 2


def flow_of(*steps: str, top: str = "") -> ps.Flow:
    entries = "".join(f"  - {step}\n" for step in steps)
    return read_flow(read_yaml(f"flow: f\n{top}\nsteps:\n{entries}", "f.yaml"))


def refused(*steps: str, top: str = "") -> str:
    with pytest.raises(FlowError) as caught:
        flow_of(*steps, top=top)
    return str(caught.value)


def test_a_flow_file_runs() -> None:
    flow = flow_of(
        WORDS,
        "{name: big, from: words, map: tests.flowfiles.test_flow_files:upper}",
        "{name: size, from: big, branch: {long: length(word) > 1}}",
        "{name: n, from: size.long, key_by: word, count: }",
        "{name: nth, from: words, key_by: [word], process: {logic: 'tests.flowfiles.test_flow_files:Numbered', schema: 'word string, nth int'}}",
        "{name: more, from: nth, with_columns: {double: twice(nth)}}",
        "{name: out, from: n, sink: console}",
        "{name: rest, from: size.otherwise, sink: {console: {rows: 3}}}",
        "{name: numbered, from: more, sink: {endpoint: console}}",
        top="functions: ['tests.flowfiles.test_flow_files:twice']",
    )
    results = run_local(flow)
    assert results["out"] == [("BB", 2)]
    assert results["rest"] == [("A",)]
    assert results["numbered"] == [("a", 1, 2), ("bb", 1, 2), ("bb", 2, 4)]


def test_a_loop_and_a_bootstrap_in_a_file() -> None:
    flow = flow_of(
        "{name: again, feedback: n int}",
        "{name: start, source: {items: {rows: [3], schema: n int}}}",
        "{name: all, from: start, union: again}",
        "{name: less, from: all, with_columns: {n: n - 1}}",
        "{name: left, from: less, where: n > 0}",
        "feed: {loop: again, stream: left}",
        "{name: total, from: less, key_by: n, count: many}",
        "bootstrap: {step: total, records: {items: {rows: [2, 2], schema: n int}}}",
        "{name: out, from: less, sink: console}",
        "{name: totals, from: total, sink: console}",
    )
    assert run_local(flow)["out"] == [(2,), (1,), (0,)]
    assert run_local(flow).table("totals")[2] == (2, 3)


def test_every_step_of_the_fluent_api_can_stand_in_a_file() -> None:
    """A new step, parameter or kind of argument must be one that a file can spell."""
    for owner in v.OWNERS:
        public = {n for n in dir(owner) if not n.startswith("_") and is_step(inspect.getattr_static(owner, n))}
        assert public
        assert {n for n in public if owner in v.steps()[n]} == public
    known = [made for owners in v.steps().values() for made in owners.values()]
    known += [made for _, made in v.functions().values()] + [v.view(name) for name in v.VIEWS]
    strange = {(m.name, p.name, w) for m in known for p in m.parameters for w in p.words if w not in v.MEANINGS}
    assert not strange, "say in flowfiles/vocabulary.py what these words of annotations allow in a file"


def test_every_function_of_a_file_remembers_how_it_was_called() -> None:
    arguments: dict[str, Any] = {"expr": ["n + 1"]}
    for name in v.functions():
        function = getattr(ps, name)
        assert name in arguments or "Spelling" in inspect.getclosurevars(function).globals, f"{name} needs @spelled"
    assert spelling_of(ps.tumbling("10s")) is not None


def test_methods_that_make_no_step_are_known() -> None:
    """A method that a file does not know of must be a view, a setting, or one of these."""
    others = {"side", *v.VIEWS, "on_error", "parallelism", *v.UNNAMED}
    for owner in v.OWNERS:
        methods = {
            n for n in dir(owner) if not n.startswith("_") and inspect.isfunction(inspect.getattr_static(owner, n))
        }
        assert {n for n in methods if not is_step(inspect.getattr_static(owner, n))} <= others


@pytest.mark.parametrize(
    ("step", "message"),
    [
        ("{name: x, from: words, wher: n}", "f.yaml: line 5, column 28: no key 'wher' here; did you mean 'where'?"),
        ("{name: x, from: word, where: n}", "f.yaml: line 5, column 21: no stream 'word' above; did you mean 'words'?"),
        ("{name: x, from: words}", "line 5, column 5: expected one step here"),
        ("{name: x, from: words, where: n > 1, drop: n}", "expected one step here, such as 'where: n > 3', got where and drop"),
        ("{name: x, from: words, where: m > 3}", "step 'x' (f.yaml:5): no column 'm'"),
        ("{name: x, from: words, map: nowhere:f}", "column 33: 'nowhere:f': there is no module 'nowhere'"),
        ("{name: x, from: words, map: json:dump_}", "has no 'dump_'; did you mean 'dump' or"),
        ("{name: x, from: words, map: 7}", "needs a function, got 7"),
        ("{name: x, from: words, sink: konsole}", "expected one of callback"),
        ("{name: x, from: words, sink: {consol: {}}}", "sink has no 'consol'"),
        ("{name: x, from: words, sink: files}", "files needs 'path'"),
        ("{name: x, from: words, sink: {console: {row: 3}}}", "console has no 'row'; did you mean 'rows'?"),
        ("{name: x, from: words, count: }", "count keeps something per key: say key_by or window"),
        ("{name: x, from: words, key_by: word, where: 'true'}", "where reads a stream as it is: leave out 'key_by'"),
        ("{name: x, from: words, source: stdin}", "source reads no stream: leave out 'from'"),
        ("{name: x, key_by: a, count: }", "key_by needs the stream that is read"),
        ("{from: words, where: 'true'}", "a step needs a name"),
        ("{name: x, from: words, join: {on: word}}", "join needs 'other'"),
        ("{name: x, feed: {loop: words, stream: words}}", "feed makes no step: leave out 'name'"),
        ("{name: x, from: words, where: !!python/object:os.system x}", "objects cannot be made in a file"),
        ("{name: x, name: y, from: words, where: 'true'}", "the key 'name' appears twice"),
        ("[1]", "expected keys and values, got a list"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_place(step: str, message: str) -> None:
    assert message in refused(WORDS, step)


def test_a_name_that_means_a_step_and_an_output_is_refused() -> None:
    branch = "{name: size, from: words, branch: {long: length(word) > 1}}"
    step = "{name: size.long, from: words, where: length(word) > 2}"
    message = refused(WORDS, branch, step, "{name: out, from: size.long, sink: console}")
    assert "'size.long' is both a step and an output of 'size'; rename the step" in message


def sided(name: str, reads: str) -> ps.Flow:
    """A flow with side outputs, and one that reads a step of a given name or a side output."""
    flow = ps.Flow("f")
    times = flow.source("times", ps.items([], "word string, at timestamp"), event_time="at")
    minutes = times.key_by("word").window(ps.tumbling("1m")).count("minutes")
    words = times.flat_map("words", upper, "word string", side={"x.y": "word string"})
    sides = {"minutes.late": minutes.side("late"), "times.bad": times.side("bad"), "words.x.y": words.side("x.y")}
    step = times.where(name, "true")
    {"a step": step, **sides}[reads].sink("last", ps.console())
    return flow


@pytest.mark.parametrize("output", ["minutes.late", "times.bad", "words.x.y"])
def test_a_name_that_means_a_step_and_a_side_output_is_refused(output: str) -> None:
    message = f"'{output}' is both a step and an output of '{output.partition('.')[0]}'; rename the step"
    for reads in ("a step", output):
        text = write_flow(sided("fine", reads))
        assert write_flow(read_flow(read_yaml(text, "f.yaml"))) == text
        with pytest.raises(FlowError, match=f"export: line .*{message}"):
            write_flow(sided(output, reads))
    with pytest.raises(FlowError, match=f"f.yaml: line .*{message}"):
        read_flow(read_yaml(write_flow(sided("fine", "a step")).replace("fine", output), "f.yaml"))


def test_a_step_may_have_the_name_of_a_main_output() -> None:
    text = write_flow(sided("words.out", "a step"))
    assert write_flow(read_flow(read_yaml(text, "f.yaml"))) == text


def test_errors_keep_their_kind() -> None:
    with pytest.raises(NameTaken, match="line 5, column 12: the name 'words' appears twice"):
        flow_of(WORDS, WORDS)
    with pytest.raises(ExpressionError):
        flow_of(WORDS, "{name: x, from: words, where: 'n >'}")


def test_a_file_has_limits() -> None:
    with pytest.raises(FlowError, match="expected at most 64 levels"):
        read_yaml("[" * (MOST_DEPTH + 1) + "]" * (MOST_DEPTH + 1), "deep.yaml")
    with pytest.raises(FlowError, match="levels"):
        read_yaml("[" * 200_000, "deeper.yaml")
    with pytest.raises(FlowError, match="expected at most 4,194,304 bytes"):
        read_yaml("#" * (MOST_BYTES + 1), "large.yaml")
    laughs = "a0: &a0 [x]\n" + "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
    with pytest.raises(FlowError, match="with its aliases written out"):
        read_yaml(laughs, "laughs.yaml")
    with pytest.raises(FlowError, match="an alias of what it stands in"):
        read_yaml("a: &a [*a]", "own.yaml")
    with pytest.raises(FlowError, match="line 1, column 6: no YAML"):
        read_yaml("a: 'b", "open.yaml")
    with pytest.raises(FlowError, match="empty"):
        read_yaml("", "empty.yaml")


def test_words_and_times_stay_texts() -> None:
    plain = read_yaml("{a: no, b: true, c: 10:30, d: 2026-01-01, e: 1.5}", "f.yaml").plain()
    assert (plain["a"], plain["b"], plain["c"], plain["e"]) == ("no", True, "10:30", 1.5)
    assert read_yaml("{a: no}", "f.yaml", lenient=True).plain() == {"a": False}


def test_anchors_and_merge_keys_save_writing() -> None:
    plain = read_yaml("{a: &a {x: 1, y: 2}, b: {<<: *a, y: 3}}", "f.yaml").plain()
    assert plain["b"] == {"x": 1, "y": 3}


def test_the_schema_for_editors_is_fresh() -> None:
    assert json.loads(SHIPPED.read_text()) == flow_schema(), "penstock flow-schema > docs/reference/flow.schema.json"


def test_the_schema_takes_what_the_reader_takes_and_refuses_a_wrong_key() -> None:
    validator = jsonschema.Draft202012Validator(flow_schema())
    for name in ("word_count", "all_native", "tables", "join"):
        entries = yaml.safe_load(write_flow(FLOWS[name]()).replace(" on:", " 'on':"))
        assert not list(validator.iter_errors(entries)), name
    wrong = {"flow": "f", "steps": [{"name": "a", "form": "b", "where": "true"}]}
    assert list(validator.iter_errors(wrong))
    assert list(validator.iter_errors({"flow": "f", "steps": [{"name": "a", "from": "b", "where": "x", "drop": "y"}]}))


def plan_of(flow: ps.Flow) -> Any:
    described = [describe(flow.graph, live=live) for live in (True, False)]
    for each in described:
        for step in each["steps"]:
            step.pop("line")
    return json.loads(json.dumps(described, default=str).replace(" (export", " ("))


LAMBDAS = {"patterns", "windows"}
"""Golden flows that hold a lambda or a pattern of calls."""


@pytest.mark.parametrize("name", sorted(FLOWS))
def test_golden_flows_come_back_with_an_equal_plan(name: str) -> None:
    flow = FLOWS[name]()
    if name in LAMBDAS:
        with pytest.raises(FlowError, match="which no file can name"):
            write_flow(flow)
        return
    again = read_flow(read_yaml(write_flow(flow), "again.yaml"))
    one, other = plan_of(flow), plan_of(again)
    assert [(p["totals"], p["stages"], p["streams"]) for p in one] == [
        (p["totals"], p["stages"], p["streams"]) for p in other
    ]
    assert [p["steps"] for p in one] == [p["steps"] for p in other]


def test_generated_flows_come_back_with_an_equal_plan() -> None:
    written = 0
    for seed in range(50):
        flow = generate(seed, 2).flow
        try:
            text = write_flow(flow)
        except FlowError as error:
            assert "<lambda>" in str(error) or "<locals>" in str(error), error  # noqa: PT017 - the only reason there may be
            continue
        written += 1
        assert [p["steps"] for p in plan_of(read_flow(read_yaml(text, "again.yaml")))] == [
            p["steps"] for p in plan_of(flow)
        ]
    assert written > 5


def test_export_of_a_flow_of_sql_says_that_its_text_is_a_flow_file() -> None:
    flow = ps.sql_flow("SELECT word FROM words", {"words": ps.items(["a"], "word string")})
    with pytest.raises(FlowError, match="got a flow of SQL; its text is a flow file already"):
        write_flow(flow)
    mixed = ps.Flow("mixed")
    words = mixed.source("words", ps.items(["a"], "word string"))
    ps.sql_query("SELECT word, count(*) AS n FROM words GROUP BY word", {"words": words}, name="w").sink(
        "out", ps.console()
    )
    with pytest.raises(FlowError, match="a query of SQL makes has no entry"):
        write_flow(mixed)


def test_export_refuses_what_a_file_cannot_hold() -> None:
    flow = ps.Flow("f")
    rows = flow.source("rows", ps.items([1], "n int"))
    rows.map("m", lambda row: row.n)
    with pytest.raises(FlowError, match=r"export of 'f': step 'm' holds <function .*which no file can name"):
        write_flow(flow)
    secret = ps.Flow("g")
    secret.source("rows", ps.items([1], "n int")).sink("out", ps.write_postgres("postgresql://ada:hush@db/shop", "t"))
    with pytest.raises(FlowError, match="has an address with a password") as caught:
        write_flow(secret)
    assert "hush" not in str(caught.value)
    with pytest.raises(FlowError, match=r"export writes a ps\.Flow or a ps\.Topology, got TridentTopology"):
        write_flow(ps.TridentTopology("t"))


def test_export_keeps_settings_and_rows() -> None:
    flow = ps.Flow("f", on_error=ps.retry(3, "1s", then="skip"), delivery="at_least_once")
    rows = flow.source("rows", ps.items([("a", 1.5, None), ("no", 2.0, "x: y")], "k string, x double, t string"))
    rows.map("same", upper, "word string").on_error("dead_letter").sink("out", ps.console(rows=2))
    rows.key_by("k").over("x desc", rows=(1, 1)).aggregate("around", total="sum(x)").sink("seen", ps.console())
    rows.key_by("k", first="substring(k, 1, 1)").count("n").parallelism(8).sink("totals", ps.console())
    again = read_flow(read_yaml(write_flow(flow), "again.yaml"))
    assert again.graph.node("same").on_error == flow.graph.node("same").on_error
    assert again.graph.node("n").parallelism == 8
    assert run_local(again)["totals"] == run_local(flow)["totals"]


def test_a_flow_file_by_its_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "beside_the_flow.py").write_text("def loud(row):\n    return row.word + '!'\n")
    (tmp_path / "flow.yaml").write_text(
        f"flow: f\nsteps:\n  - {WORDS}\n  - {{name: m, from: words, map: beside_the_flow:loud}}\n  - {{name: out, from: m, sink: console}}\n"
    )
    assert run_local(ps.flow_file(tmp_path / "flow.yaml"))["out"][0] == ("a!",)
    with pytest.raises(FlowError, match="cannot be read"):
        ps.flow_file(tmp_path / "nothing.yaml")
