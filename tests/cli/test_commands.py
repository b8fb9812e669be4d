"""The commands, as far as they need no JVM: help, usage errors, listings."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from penstock.cli.main import COMMANDS, PANELS
from penstock.version import __version__
from tests.command_line import make_app

ROOT = Path(__file__).resolve().parents[2]
WORD_COUNT = str(ROOT / "examples" / "word_count.py")
runner = CliRunner()


def test_the_help_lists_every_command() -> None:
    out = runner.invoke(make_app(), ["--help"]).output
    for command in COMMANDS:
        assert f" {command} " in out
    assert [title for title in PANELS if f" {title} " not in out] == []
    assert "PENSTOCK__VERSION" not in out


@pytest.mark.parametrize("command", ["run", "describe", "submit"])
def test_the_help_says_which_files_hold_a_flow(command: str) -> None:
    out = " ".join(runner.invoke(make_app(), [command, "--help"]).output.replace("│", " ").split())
    assert "FILE.py[:flow], package.module[:flow], FILE.sql or FILE.yaml" in out


def test_a_command_imports_no_other() -> None:
    program = "import sys\nfrom penstock.cli import main\nsys.argv = ['penstock', 'version']\n"
    program += "try:\n    main.main()\nfinally:\n    print([m for m in sys.modules if m.startswith('penstock.cli.')])"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "penstock.cli.tools.version" in out
    assert "penstock.cli.flows" not in out
    assert "penstock.cli.jobs" not in out


def test_a_misspelt_command_is_refused_beside_all_the_others() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "penstock.cli.main", "rnu"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "No such command 'rnu'" in done.stderr


@pytest.mark.parametrize("command", list(COMMANDS))
def test_every_command_has_help(command: str) -> None:
    done = runner.invoke(make_app(), [command, "--help"])
    assert done.exit_code == 0
    assert "Usage" in done.output


def test_the_version_is_told() -> None:
    assert runner.invoke(make_app(), ["--version"]).output.strip() == f"penstock {__version__}"
    assert f"penstock {__version__}" in runner.invoke(make_app(), ["version"]).output


@pytest.mark.parametrize(
    "arguments, says",
    [
        (["run"], "Missing argument"),
        (["run", WORD_COUNT, "--batch", "--once"], "exclude each other"),
        (["run", WORD_COUNT, "--batch", "--for", "2s"], "leave out --for"),
        (["run", WORD_COUNT, "--for", "soon"], "such as 500ms, 20s, 5m, 1h or 1d, got 'soon'"),
        (["run", WORD_COUNT, "--conf", "spark.x"], "KEY=VALUE"),
        (["run", WORD_COUNT, "--progress", "loud"], "auto, plain or none"),
        (["run", WORD_COUNT, "--log-level", "all"], "debug, info, warning, error"),
        (["run", WORD_COUNT, "--py-files", "gone.zip"], "there is no gone.zip"),
        (["run", WORD_COUNT, "--parallelism", "0"], "parallelism"),
        (["run", WORD_COUNT, "--no-such-flag"], "No such option"),
        (["run", "gone.py"], "there is no file gone.py"),
        (["run", f"{WORD_COUNT}:count"], "has no 'count'"),
        (["describe", "gone.py"], "there is no file gone.py"),
        (["bench", "gone"], "there is no bench 'gone'"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_is_wrong(
    arguments: list[str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    done = runner.invoke(make_app(), arguments)
    assert done.exit_code == 2, done.output
    assert says in " ".join(done.output.split())
    assert "Traceback" not in done.output


@pytest.mark.parametrize("name", ["PENSTOCK_RUN_FOR", "PENSTOCK_RUN_DURATION"])
def test_an_option_can_come_from_the_environment(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "soon")
    done = runner.invoke(make_app(), ["run", WORD_COUNT])
    assert done.exit_code == 2
    assert "such as 500ms, 20s, 5m, 1h or 1d, got 'soon'" in done.output


def test_an_option_is_named_in_the_environment_as_on_the_command_line() -> None:
    """Only `--json`, `--open`, `--log` and `--server` are not: many commands share them."""
    odd = {wanted for wanted, name in _environment(typer.main.get_command(make_app()), "PENSTOCK") if name != wanted}
    assert {name.rsplit("_", 1)[-1] for name in odd} == {"JSON", "LOG", "OPEN", "SERVER", "VERSION"}


def _environment(command: Any, path: str) -> Iterator[tuple[str, str]]:
    """The name that every option should have in the environment, and the one it has."""
    for each in command.params:
        flags = [f[2:].replace("-", "_").upper() for f in each.opts if f.startswith("--")]
        if flags:
            own = each.envvar[0] if isinstance(each.envvar, list) else each.envvar
            yield f"{path}_{flags[-1]}", own or f"{path}_{each.name.upper()}"
    for name, inner in getattr(command, "commands", {}).items():
        yield from _environment(inner, f"{path}_{name.upper()}")


def test_a_wrong_flow_ends_with_2_and_the_users_own_traceback(tmp_path: Path) -> None:
    file = tmp_path / "wrong.py"
    file.write_text("import penstock as ps\nboom = [][1]\n")
    done = runner.invoke(make_app(), ["run", str(file)])
    assert done.exit_code == 2
    assert "This flow cannot run" in done.output
    assert "IndexError: list index out of range" in done.output
    assert "penstock/cli" not in done.output


def test_with_json_logs_an_error_is_an_event(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "penstock.cli.main", "run", str(tmp_path / "gone.py"), "--json-logs"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    said = [json.loads(line) for line in done.stderr.splitlines()]
    assert [(s["event"], s["level"], s["error"]) for s in said] == [("failed", "error", "FlowError")]


def test_describe_shows_the_stages_and_starts_no_spark() -> None:
    program = "import sys\nfrom penstock.cli.main import make_app\n"
    program += f"make_app()(['describe', {WORD_COUNT!r}], standalone_mode=False)\nprint('pyspark' in sys.modules)"
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "split" in out
    assert out.rstrip().endswith("False")


def test_bench_lists_what_there_is() -> None:
    out = runner.invoke(make_app(), ["bench"]).output
    for name in ("native", "python", "overhead", "build", "fan-out"):
        assert name in out
