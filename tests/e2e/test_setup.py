"""The two commands and their scripts: what they refuse, what they skip, and what they hand on. Installs nothing."""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path for path in (ROOT / "scripts").iterdir() if path.suffix == "")


def run(*command: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command, cwd=cwd, env=os.environ | env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The parts of the project that the scripts read, in a folder of the test's own."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for name in ("pyproject.toml", "requirements.lock", "Makefile"):
        shutil.copy(ROOT / name, tmp_path)
    return tmp_path


def script(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def make_ready(folder: Path) -> None:
    """An environment that looks as a finished set-up leaves it."""
    (folder / ".venv" / "bin").mkdir(parents=True)
    (folder / ".venv" / "bin" / "python").symlink_to(sys.executable)
    script(folder / ".venv" / "bin" / "penstock", "exit 0")
    parts = "{ cat requirements.lock pyproject.toml scripts/setup && pwd; } | cksum > .venv/.penstock-setup"
    subprocess.run(["sh", "-c", parts], cwd=folder, check=True)


@pytest.mark.parametrize("path", [*SCRIPTS, ROOT / ".ci" / "run"], ids=lambda path: path.name)
def test_scripts_can_be_run_and_read_by_a_plain_shell(path: Path) -> None:
    assert os.access(path, os.X_OK)
    assert subprocess.run(["sh", "-n", str(path)], check=False).returncode == 0


def test_help_names_every_target() -> None:
    text = (ROOT / "Makefile").read_text()
    targets = set(re.findall(r"^\.PHONY: (.*)$", text, re.MULTILINE)[0].split())
    shown = set(re.findall(r"^  make (\S+)", run("make", "help", cwd=ROOT).stdout, re.MULTILINE))
    assert shown == targets
    assert {"run", "test"} <= shown


def test_a_finished_setup_is_not_done_again(copy: Path) -> None:
    make_ready(copy)
    done = run("scripts/setup", cwd=copy)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("changed", ["requirements.lock", "pyproject.toml"])
def test_a_change_of_the_lock_or_the_project_sets_up_again(copy: Path, changed: str) -> None:
    make_ready(copy)
    with (copy / changed).open("a") as file:
        file.write("# changed\n")
    done = run("scripts/setup", cwd=copy, PYTHON="/bin/false")  # stops it before it installs anything
    assert done.returncode == 1
    assert "PYTHON=/bin/false is not a Python 3.11, 3.12 or 3.13" in done.stderr


def test_another_python_than_the_environments_sets_up_again(copy: Path) -> None:
    make_ready(copy)
    assert run("scripts/setup", cwd=copy, PYTHON=sys.executable).returncode == 0
    assert run("scripts/setup", cwd=copy, PYTHON="/bin/false").returncode == 1


def test_the_lock_holds_every_package_with_hashes_and_names_no_host() -> None:
    text = (ROOT / "requirements.lock").read_text()
    assert "://" not in text
    entries = re.split(r"\n(?=\S)", text.strip())
    assert all("==" in entry and "--hash=sha256:" in entry for entry in entries)
    locked = {entry.split("==")[0] for entry in entries}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wanted = [
        *project["project"]["dependencies"],
        *(name for extra in project["project"]["optional-dependencies"].values() for name in extra),
        *project["dependency-groups"]["dev"],
    ]
    assert {re.split(r"[<>=!~\[ ]", name)[0] for name in wanted} <= locked


TOOLS = ("ruff", "mypy", "lint-imports")


def make_tools(folder: Path, pytest_code: int = 0, failing: str = "") -> None:
    """Stand-ins for the tools that write down how they were called."""
    bin_ = folder / ".venv" / "bin"
    for tool in TOOLS:
        script(bin_ / tool, f'echo "{tool} $*" >> called\nexit {int(tool == failing)}')
    script(bin_ / "python", f'echo "python $*" >> called\nexit {pytest_code}')


def called(folder: Path) -> list[str]:
    return (folder / "called").read_text().splitlines()


def test_every_part_runs_fastest_first(copy: Path) -> None:
    make_tools(copy)
    done = run("scripts/test", cwd=copy)
    assert done.returncode == 0, done.stderr
    assert [line.split()[0] for line in called(copy)] == ["ruff", "ruff", "mypy", "lint-imports", "python", "python"]
    assert "-m (spark or cluster) and not slow" in called(copy)[-1]
    assert re.findall(r"== (\w+) passed in \d+ s", done.stdout) == ["check", "fast", "jvm"]


def test_the_first_failing_part_is_the_last(copy: Path) -> None:
    make_tools(copy, failing="mypy")
    done = run("scripts/test", cwd=copy)
    assert done.returncode != 0
    assert "check FAILED" in done.stderr
    assert not any(line.startswith("python") for line in called(copy))


def test_failing_tests_keep_pytests_exit_code(copy: Path) -> None:
    make_tools(copy, pytest_code=1)
    done = run("scripts/test", "fast", "spark", cwd=copy)
    assert done.returncode == 1
    assert len(called(copy)) == 1


def test_a_part_without_tests_fails(copy: Path) -> None:
    make_tools(copy, pytest_code=5)
    done = run("scripts/test", "fast", cwd=copy)
    assert done.returncode == 5
    assert "no tests found" in done.stderr


def test_arguments_reach_pytest_and_may_leave_a_part_empty_but_not_all(copy: Path) -> None:
    make_tools(copy, pytest_code=5)
    done = run("scripts/test", "fast", "cluster", "-k", "two words", cwd=copy)
    assert done.returncode == 5
    assert len(called(copy)) == 2
    assert all(line.endswith("-k two words") for line in called(copy))


def test_slow_tests_run_only_when_asked_for(copy: Path) -> None:
    make_tools(copy)
    run("scripts/test", cwd=copy)
    assert all("not slow" in line for line in called(copy) if line.startswith("python"))
    run("scripts/test", "slow", cwd=copy)
    assert "-m slow" in called(copy)[-1]
