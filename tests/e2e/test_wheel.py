"""The wheel works alone: built, installed into an empty environment, it runs the demo. Also on other Sparks and Pythons."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.timeout(900)]


def uv() -> str:
    """The uv that set-up used: the one on PATH, or the project's own."""
    found = shutil.which("uv") or next((str(p) for p in (ROOT / ".tools").rglob("uv") if os.access(p, os.X_OK)), None)
    if found is None:
        pytest.skip("uv is not here; `make setup` brings it")
    return found


def call(*command: str | Path, cwd: Path) -> str:
    """The output of a command, which must succeed."""
    clean = {
        k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV", "SPARK_HOME", "PYSPARK_PYTHON")
    }
    done = subprocess.run(
        [str(c) for c in command], check=False, cwd=cwd, env=clean, capture_output=True, text=True, timeout=800
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this tree."""
    folder = tmp_path_factory.mktemp("wheel")
    call(uv(), "build", "--wheel", "--out-dir", folder, ROOT, cwd=folder)
    return next(folder.glob("*.whl"))


def environment(folder: Path, wheel: Path, python: str, *more: str) -> Path:
    """An environment with the wheel and its dependencies alone; gives its bin folder."""
    call(uv(), "venv", "--python", python, folder / "env", cwd=folder)
    interpreter = folder / "env" / "bin" / "python"
    call(uv(), "pip", "install", "--python", interpreter, f"{wheel}[java,metrics]", *more, cwd=folder)
    return folder / "env" / "bin"


def test_the_demo_runs_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    programs = environment(tmp_path, wheel, sys.executable)
    assert "#" in call(programs / "penstock", "demo", "--for", "20s", cwd=tmp_path)


FLOW = """
import penstock as ps
flow = ps.Flow("smoke")
lines = flow.source("lines", ps.items(["a b a", "c a", "b"], "value string", batches=3))
lines.flat_map("split", lambda row: row.value.split(), "word string").key_by("word").count("n").sink("out", ps.write_files("out", "json"))
"""


@pytest.mark.parametrize("spark", ["4.2.0"])
def test_an_older_spark_gives_the_same_answers(wheel: Path, tmp_path: Path, spark: str) -> None:
    programs = environment(tmp_path, wheel, sys.executable, f"pyspark=={spark}")
    check_flow(programs, tmp_path)
    assert spark in call(programs / "python", "-c", "import pyspark; print(pyspark.__version__)", cwd=tmp_path)


def python_of(version: str) -> str | None:
    """A Python of that version that runs, on PATH or where pyenv keeps its own."""
    kept = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    for candidate in (shutil.which(f"python{version}"), *map(str, kept)):
        if candidate and subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    return None


@pytest.mark.parametrize("version", ["3.12", "3.13"])
def test_newer_pythons_give_the_same_answers(wheel: Path, tmp_path: Path, version: str) -> None:
    found = python_of(version)
    if found is None:
        pytest.skip(f"Python {version} is not on this machine")
    check_flow(environment(tmp_path, wheel, found), tmp_path)


def check_flow(programs: Path, folder: Path) -> None:
    """A small flow, live and bounded."""
    (folder / "flow.py").write_text(FLOW)
    for mode in ("--once", "--batch"):
        call(programs / "penstock", "run", "flow.py", mode, cwd=folder)
        rows = [line for p in sorted((folder / "out").glob("*.json")) for line in p.read_text().splitlines()]
        last = dict(sorted((r.split('"')[3], r) for r in rows))
        assert last == {w: f'{{"word":"{w}","n":{n}}}' for w, n in {"a": 3, "b": 2, "c": 1}.items()}
        shutil.rmtree(folder / "out")
