"""The description of a flow: golden text of whole plans, and what the JSON holds."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from typer import Typer
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.flows.describe import coloured
from penstock.cli.flows.describe import describe as describe_command
from penstock.compiler.describe import describe
from penstock.errors import CaptureError
from penstock.graph.picture.describe import describe_graph
from penstock.graph.picture.text import as_text
from tests.compiler.flows import FLOWS, positive, same, start

GOLDEN = Path(__file__).parents[1] / "golden"


def check_golden(name: str, text: str) -> None:
    """Compares with the text that is kept; PENSTOCK_UPDATE_GOLDEN=1 keeps the new one instead."""
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("PENSTOCK_UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8"), "if this is meant, run again with PENSTOCK_UPDATE_GOLDEN=1"


def plain(text: str) -> str:
    """A text without the module name of the flows, so that the file may move."""
    return text.replace("tests.compiler.flows:", "flows:")


def without_lines(described: Any) -> Any:
    if isinstance(described, dict):
        return {k: "" if k == "line" else without_lines(v) for k, v in described.items()}
    return [without_lines(v) for v in described] if isinstance(described, list) else described


@pytest.mark.parametrize("name", FLOWS)
def test_the_text_of_a_plan_is_the_golden_one(name: str) -> None:
    graph = FLOWS[name]().graph
    live, bounded = (as_text(without_lines(describe(graph, live=live))) for live in (True, False))
    check_golden(name, plain(live + "\n" + bounded))


@pytest.mark.parametrize("name", FLOWS)
def test_a_description_survives_json(name: str) -> None:
    made = describe(FLOWS[name]().graph)
    assert json.loads(json.dumps(made)) == made


@pytest.mark.parametrize("name", FLOWS)
def test_no_line_of_the_text_is_wider_than_asked(name: str) -> None:
    text = as_text(describe(FLOWS[name]().graph), width=80)
    assert max(map(len, text.splitlines())) <= 80


def test_every_golden_text_belongs_to_a_test() -> None:
    from tests.compiler.test_compile import RULES
    from tests.sql.test_plans import PLANS

    known = {
        *FLOWS,
        "placed",
        *(f"rewrite-{rule.__name__}" for rule in RULES),
        "sql",
        *(f"sql-{name}" for name in PLANS),
    }
    assert {p.stem for p in GOLDEN.glob("*.txt")} == known


def step(made: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(s for s in made["steps"] if s["name"] == name)
    return found


def test_a_step_says_all_that_is_known_of_it() -> None:
    made = step(describe(FLOWS["word_count"]().graph), "count")
    assert made.pop("line").startswith("flows.py:")
    assert made == {
        "name": "count",
        "kind": "aggregate",
        "runs": "native+state",
        "settings": {"key": "word", "count": "count(*)"},
        "inputs": [{"step": "count@parts", "port": "out"}],
        "outputs": [
            {
                "port": "out",
                "schema": "word string, count bigint",
                "fields": [
                    {"name": "word", "type": "string", "nullable": True},
                    {"name": "count", "type": "bigint", "nullable": True},
                ],
                "mode": "changing",
                "updates": ["word"],
                "changes": {"key": ["word"], "deletes": False},
            }
        ],
        "parallelism": None,
        "keyed": True,
        "keys": ["word"],
        "keeps": "one row per word, for ever",
        "kept_for_ever": True,
        "approximate": "",
        "varying": [],
        "made_by": None,
        "stage": 4,
    }


@pytest.mark.parametrize(
    "flow, name, live, runs",
    [
        ("word_count", "lines", True, "source"),
        ("word_count", "split", True, "python"),
        ("word_count", "count@parts", True, "native"),
        ("word_count", "count", True, "native+state"),
        ("word_count", "count", False, "native"),
        ("word_count", "out", True, "sink"),
        ("native_apart", "big", True, "native"),
        ("native_between", "big", True, "python"),
        ("process_then_map", "meter", True, "python+state"),
        ("process_then_map", "meter", False, "python"),
        ("generated", "made", True, "source+python"),
        ("loop", "again", True, "source"),
        ("left_out", "useless", True, "python"),
    ],
)
def test_a_step_says_where_it_runs(flow: str, name: str, live: bool, runs: str) -> None:
    assert step(describe(FLOWS[flow]().graph, live=live), name)["runs"] == runs


@pytest.mark.parametrize(
    "flow, made, by",
    [
        ("word_count", "count@parts", "count"),
        ("reduce_early", "fold@combine", "fold"),
        ("generated", "made@numbers", "made"),
    ],
)
def test_steps_of_the_compiler_name_the_step_they_serve(flow: str, made: str, by: str) -> None:
    described = describe(FLOWS[flow]().graph)
    assert step(described, made)["made_by"] == by
    assert step(described, by)["made_by"] is None


def test_a_user_step_with_a_dotted_name_is_the_users_own() -> None:
    flow, numbers = start("dots")
    numbers.map("a.parts", same).sink("out", ps.console())
    assert step(describe(flow.graph), "a.parts")["made_by"] is None


def test_a_generated_source_is_told_as_the_user_wrote_it() -> None:
    made = step(describe(FLOWS["generated"]().graph), "made")
    assert made["kind"] == "source"
    assert made["settings"] == {"from": "generate", "function": "tests.compiler.flows:same", "rows_per_second": 100}


def stream(made: dict[str, Any], start: str, end: str) -> dict[str, Any]:
    found = [s for s in made["streams"] if s["from"]["step"] == start and s["to"] == end]
    assert len(found) == 1
    return dict(found[0])


def test_a_stream_says_whence_whereto_and_how() -> None:
    made = describe(FLOWS["shared_streams"]().graph)
    assert stream(made, "clean", "total@parts") == {
        "from": {"step": "clean", "port": "out"},
        "to": "total@parts",
        "schema": "k string, n bigint",
        "grouping": "",
        "feedback": False,
        "shuffle": "by k",
        "shared": True,
    }
    assert stream(made, "numbers", "clean")["shared"] is False
    assert stream(made, "numbers", "clean")["shuffle"] == ""


def test_a_loop_has_a_stream_that_goes_back() -> None:
    made = describe(FLOWS["loop"]().graph)
    back = stream(made, "test", "again")
    assert back["feedback"]
    assert back["from"]["port"] == "otherwise"
    assert sum(s["feedback"] for s in made["streams"]) == 1


def test_a_stage_says_what_it_is() -> None:
    stages = describe(FLOWS["reduce_early"]().graph)["stages"]
    assert [(s["host"], s["python_pass"], s["steps"]) for s in stages] == [
        ("source", None, ["numbers"]),
        ("python", 1, ["clean", "fold@combine"]),
        ("python", 2, ["fold", "after"]),
        ("sink", None, ["out"]),
    ]
    assert stages[2] == {
        "number": 3,
        "host": "python",
        "steps": ["fold", "after"],
        "shuffle": "by k",
        "combined_first": True,
        "state": True,
        "python_pass": 2,
        "placed": "",
        "reads": [{"step": "fold@combine", "port": "out"}],
        "outputs": [{"step": "after", "port": "out"}],
    }


@pytest.mark.parametrize(
    ("flow", "combined"), [("process_then_map", False), ("all_native", True), ("own_aggregate", True)]
)
def test_a_stage_says_whether_less_is_moved(flow: str, combined: bool) -> None:
    for live in (True, False):
        moved = [s for s in describe(FLOWS[flow]().graph, live=live)["stages"] if s["shuffle"]]
        assert [s["combined_first"] for s in moved] == [combined]


def test_the_totals_sum_up_the_plan() -> None:
    assert describe(FLOWS["shared_streams"]().graph)["totals"] == {
        "steps": 8,
        "stages": 10,
        "shuffles": 2,
        "python_passes": 3,
        "shared_streams": 1,
        "state": True,
    }


def test_a_bounded_run_keeps_no_state() -> None:
    made = describe(FLOWS["process_then_map"]().graph, live=False)
    assert made["mode"] == "bounded"
    assert made["totals"]["state"] is False
    assert not any(s["state"] for s in made["stages"])


def test_a_bounded_loop_keeps_state_between_its_rounds_and_is_still_bounded() -> None:
    made = describe(FLOWS["loop"]().graph, live=False)
    assert made["mode"] == "bounded"
    assert made["totals"]["stages"] == describe(FLOWS["loop"]().graph)["totals"]["stages"]


def test_steps_that_reach_no_sink_are_told() -> None:
    made = describe(FLOWS["left_out"]().graph)
    assert [w["step"] for w in made["warnings"]] == ["useless", "lost"]
    assert step(made, "lost")["stage"] is None
    assert "! step 'lost' reaches no sink, so it is left out of the run" in as_text(made)


def test_a_flow_without_sinks_is_told() -> None:
    flow, numbers = start("nowhere")
    numbers.where("some", "n > 1")
    made = describe(flow.graph)
    assert [w["step"] for w in made["warnings"]] == [None]
    assert "has no sink" in as_text(made)


def test_a_flow_that_is_fine_has_no_warnings() -> None:
    assert describe(FLOWS["word_count"]().graph)["warnings"] == []


def test_a_graph_describes_itself_without_stages() -> None:
    made = describe_graph(FLOWS["word_count"]().graph)
    assert [s["name"] for s in made["steps"]] == ["lines", "split", "count", "out"]
    assert "stages" not in made
    assert as_text(made).startswith("word-count: 4 steps\n")


def keys_of(described: Any) -> set[str]:
    if isinstance(described, list):
        return {k for each in described for k in keys_of(each)}
    if not isinstance(described, dict):
        return set()
    return {*described, *(k for name, each in described.items() if name != "settings" for k in keys_of(each))}


def test_every_field_of_the_json_is_documented() -> None:
    page = (GOLDEN.parents[1] / "docs" / "reference" / "describe-json.md").read_text()
    keys = {k for make in FLOWS.values() for k in keys_of(describe(make().graph))}
    assert {k for k in keys if f"`{k}`" not in page} == set()


def test_every_kind_of_step_is_documented() -> None:
    page = (GOLDEN.parents[1] / "docs" / "reference" / "describe-json.md").read_text()
    kinds = {s["kind"] for make in FLOWS.values() for s in describe(make().graph)["steps"]}
    assert {k for k in kinds if f"`{k}`" not in page} == set()


def test_secrets_are_not_shown() -> None:
    flow, numbers = start("secret")
    numbers.sink("out", ps.connector(object(), password="hunter2", host="db"))
    text = json.dumps(describe(flow.graph)) + as_text(describe(flow.graph))
    assert "hunter2" not in text
    assert "db" in text


def test_a_flow_shows_itself_in_a_notebook() -> None:
    shown = FLOWS["word_count"]()._repr_mimebundle_()
    assert shown["text/plain"] == "Flow('word-count', 4 steps)"
    assert shown["image/svg+xml"].startswith("<svg")


def test_a_flow_that_is_not_whole_shows_one_line() -> None:
    assert ps.Flow("empty")._repr_mimebundle_() == {"text/plain": "Flow('empty', 0 steps)"}
    flow = ps.Flow("open")
    flow.feedback("again", "n bigint").filter("some", positive)
    assert flow._repr_svg_() is None


FILE = """
import penstock as ps
flow = ps.Flow("hello")
flow.source("names", ps.items(["ada"], "name string")).where("some", "name <> 'bob'").sink("out", ps.console())
"""


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "hello_flow.py"
    path.write_text(FILE)
    return str(path)


def command(*arguments: str) -> Any:
    app = Typer()
    app.command()(describe_command)
    return CliRunner().invoke(app, list(arguments))


def test_the_command_prints_text(file: str) -> None:
    done = command(file)
    assert done.exit_code == 0
    assert done.stdout.startswith("hello (live): 3 steps in 3 stages; 0 shuffles, 0 Python passes, no state\n")


def test_the_command_prints_json(file: str) -> None:
    made = json.loads(command(file, "--json", "--batch").stdout)
    assert (made["version"], made["flow"], made["mode"]) == (1, "hello", "bounded")


def test_the_command_draws_into_a_file_or_to_the_standard_output(file: str, tmp_path: Path) -> None:
    path = tmp_path / "flow.svg"
    assert command(file, "--svg", str(path)).exit_code == 0
    assert path.read_text() == command(file, "--svg", "-").stdout
    assert path.read_text().startswith("<svg")


def test_the_command_says_what_is_wrong(file: str, tmp_path: Path) -> None:
    missing = command(str(tmp_path / "hello_flo.py"))
    assert missing.exit_code == 2
    assert "hello_flow.py" in missing.stderr
    unwritable = command(file, "--svg", str(tmp_path / "no" / "flow.svg"))
    assert unwritable.exit_code == 1
    assert "cannot be written" in unwritable.stderr


def test_colours_change_no_letter() -> None:
    text = as_text(describe(FLOWS["shared_streams"]().graph))
    assert coloured(text).plain == text
    assert len(coloured(text).spans) > 10


def test_a_function_that_cannot_travel_is_refused() -> None:
    class Stuck:
        def __init__(self) -> None:
            self.letters = (letter for letter in "abc")

        def __call__(self, row: Any) -> Any:
            return row

    flow = ps.Flow("stuck")
    flow.source("words", ps.items([], "word string")).map("up", Stuck()).sink("out", ps.console())
    with pytest.raises(CaptureError, match="step 'up'"):
        describe(flow.graph)
