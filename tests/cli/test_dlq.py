"""`penstock dlq` over a letter box; no JVM."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
from typer.testing import CliRunner

from penstock.cli.main import app
from penstock.kernels.errors.dead_letters import letter_rows
from penstock.kernels.errors.guard import Letter
from penstock.spark.dead_letters.store import LetterBox

runner = CliRunner()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """What a bounded run leaves: letters, and no note that a live flow has begun."""
    letter = Letter("number", "ValueError: no number", "the traceback", "Row(text='x')", pickle.dumps(("x",), 5))
    LetterBox(tmp_path / "run").stage(letter_rows([letter], "parse", "bounded", 0, 0), 0).commit()
    LetterBox(tmp_path / "run").hand_over(tmp_path / "place" / "dead-letters")
    return tmp_path / "place"


def test_letters_of_a_bounded_run_are_listed_shown_and_sent_back(folder: Path) -> None:
    listed = runner.invoke(app, ["dlq", "list", str(folder), "--json"])
    (letter,) = json.loads(listed.stdout)
    assert (letter["step"], letter["record"], letter["replayed"]) == ("number", "Row(text='x')", False)
    shown = runner.invoke(app, ["dlq", "show", str(folder), letter["id"]])
    assert "the traceback" in shown.stdout
    asked = runner.invoke(app, ["dlq", "replay", str(folder)])
    assert "1 dead letters go back" in asked.stdout


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["list", "{}", "--step", "numbr"], "did you mean 'number'"),
        (["show", "{}", "run-1"], "no dead letter 'run-1'"),
        (["replay", "{}", "run-1"], "no dead letter 'run-1'"),
    ],
)
def test_a_wrong_name_is_told_with_the_nearest(folder: Path, given: list[str], said: str) -> None:
    done = runner.invoke(app, ["dlq", *(word.format(folder) for word in given)], env={"COLUMNS": "300"})
    assert done.exit_code != 0
    assert said in done.output


def test_a_folder_without_letters_and_flow_is_told(tmp_path: Path) -> None:
    done = runner.invoke(app, ["dlq", "list", str(tmp_path)], env={"COLUMNS": "300"})
    assert done.exit_code == 1
    assert "is no checkpoint folder" in done.output
