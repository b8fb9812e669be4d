"""Flows as files of SQL, options that they set, and cells of a notebook. No JVM."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.flows.run import _with_own
from penstock.errors import FlowError, OptionError, SqlError
from penstock.graph.run import RunSpec
from penstock.jobs.load import load_flow
from penstock.jobs.sql.magic import CellRows
from penstock.jobs.sql.settings import run_options_of
from tests.command_line import make_app

TABLES = """
CREATE TABLE words (word STRING) WITH ('connector' = 'filesystem', 'path' = 'words', 'format' = 'json');
CREATE TABLE counts (word STRING, n BIGINT, PRIMARY KEY (word) NOT ENFORCED) WITH ('connector' = 'print');
"""
COUNT = f"{TABLES} INSERT INTO counts SELECT word, count(*) FROM words GROUP BY word;"


def written(tmp_path: Path, text: str, name: str = "count.sql") -> Path:
    file = tmp_path / name
    file.write_text(text)
    return file


def test_a_file_of_sql_is_a_flow_of_its_name(tmp_path: Path) -> None:
    found = load_flow(str(written(tmp_path, COUNT)))
    assert found.graph.name == "count"
    assert [s.name for s in found.graph.sources] == ["words"]
    assert len(found.graph.sinks) == 1
    assert found.folder == tmp_path


def test_set_names_the_flow_and_options_of_its_run(tmp_path: Path) -> None:
    sets = "SET 'pipeline.name' = 'shop'; SET 'execution.runtime-mode' = 'batch'; SET 'parallelism.default' = '3';"
    found = load_flow(str(written(tmp_path, sets + COUNT)))
    assert found.graph.name == "shop"
    assert found.options == {"mode": "batch", "parallelism": "3"}
    spec = RunSpec.of(**_with_own(found, {"once": False, "batch": False, "parallelism": None}))
    assert (spec.mode, spec.parallelism) == ("batch", 3)


def test_options_of_the_command_go_before_those_of_the_file(tmp_path: Path) -> None:
    found = load_flow(str(written(tmp_path, "SET 'execution.runtime-mode' = 'batch'; SET 'interval' = '5s';" + COUNT)))
    spec = RunSpec.of(**_with_own(found, {"once": True, "batch": False, "interval": "1s"}))
    assert (spec.mode, spec.interval) == ("once", 1.0)


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"intervall": "5s"}, "did you mean 'interval'"),
        ({"execution.runtime-mode": "sometimes"}, "'streaming', 'batch' or 'automatic'"),
        ({"interval": "5s", "execution.checkpointing.interval": "6s"}, "another SET gives interval"),
    ],
)
def test_options_that_are_none_are_refused(settings: dict[str, str], says: str) -> None:
    with pytest.raises(OptionError, match=says):
        run_options_of(settings)


def test_flinks_names_mean_the_same() -> None:
    given = {"state.checkpoints.dir": "kept", "execution.checkpointing.interval": "5s", "table.exec.state.ttl": "1 h"}
    assert run_options_of(given) == {"checkpoint": "kept", "interval": "5s"}


def test_errors_point_into_the_file(tmp_path: Path) -> None:
    with pytest.raises(SqlError, match=r"count\.sql:3:"):
        load_flow(str(written(tmp_path, f"{TABLES.strip()}\nINSERT INTO counts SELECT wrod, 1 FROM words;")))
    with pytest.raises(FlowError, match=r"did you mean 'count.sql'"):
        load_flow(str(tmp_path / "cuont.sql"))
    with pytest.raises(FlowError, match=r"give .*count\.sql alone"):
        load_flow(f"{tmp_path / 'count.sql'}:flow")
    (tmp_path / "bad.sql").write_bytes(b"\xff\xfe")
    with pytest.raises(FlowError, match="UTF-8"):
        load_flow(str(tmp_path / "bad.sql"))


def test_describe_shows_a_file_of_sql(tmp_path: Path) -> None:
    done = CliRunner().invoke(make_app(["describe"]), ["describe", str(written(tmp_path, COUNT)), "--json"])
    assert done.exit_code == 0, done.output
    described = json.loads(done.output)
    assert described["flow"] == "count"
    assert [s["keeps"] for s in described["steps"] if s["keeps"]] == ["one row per word, for ever"]


@pytest.fixture
def notebook() -> Any:
    """A shell of IPython with `%%penstock`, and `words` to ask."""
    shell = InteractiveShell()  # type: ignore[no-untyped-call]  # IPython is typed in part
    shell.run_line_magic("load_ext", "penstock")
    shell.user_ns["words"] = ps.items(["a", "b", "a"], "word string")
    return shell


def ran(notebook: Any, cell: str) -> Any:
    done = notebook.run_cell(cell)
    done.raise_error()
    return done.result


def test_a_cell_answers_from_endpoints_of_the_notebook(notebook: Any) -> None:
    found = ran(notebook, "%%penstock\nSELECT word, count(*) AS n FROM words GROUP BY word")
    assert isinstance(found, CellRows)
    assert sorted(map(tuple, found)) == [("a", 2), ("b", 1)]
    assert "<th>word</th>" in found._repr_html_()
    assert list(found.frame().columns) == ["word", "n"]


def test_cells_share_what_they_define(notebook: Any) -> None:
    assert "defined" in repr(
        ran(notebook, "%%penstock\nCREATE VIEW twice AS SELECT concat(word, word) AS w FROM words")
    )
    assert sorted(map(tuple, ran(notebook, "%penstock SELECT w FROM twice"))) == [("aa",), ("aa",), ("bb",)]
    explained = repr(ran(notebook, "%%penstock\nEXPLAIN SELECT w FROM twice"))
    assert "append-only" in explained
    assert "1  source" in explained.splitlines()[2]


def test_a_cell_with_a_wrong_name_says_where(notebook: Any) -> None:
    wrong = notebook.run_cell("%%penstock\nSELECT wrod FROM words").error_in_exec
    assert wrong._render_traceback_()[0].startswith("SqlError: cell:1:8: no column 'wrod'")


def test_what_a_cell_shows_is_escaped() -> None:
    assert "<script>" not in CellRows(("<script>",), [("<script>",)])._repr_html_()
