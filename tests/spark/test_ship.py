"""The user's own modules reach the workers."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.ship import LARGEST, Parcel, penstock_itself, ship, user_modules

PENSTOCK = str(Path(sys.executable).with_name("penstock"))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder with a package, a namespace package and a module of the user's, all of them loaded."""
    files = {
        "lager/__init__.py": "",
        "lager/text.py": "def shout(s):\n    from lager.late import mark\n    return s.upper() + mark()\n",
        "lager/late.py": "def mark():\n    return '!'\n",
        "lager/words.json": "[]",
        "lager/.hidden": "x",
        "bare_space/inner.py": "ONE = 1\n",
        "single_tool.py": "TWO = 2\n",
        "never_loaded.py": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "lager" / "big.bin").write_bytes(b"0" * (LARGEST + 1))
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    for name in ("lager.text", "bare_space.inner", "single_tool"):
        __import__(name)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


def names(parcel: Parcel, folder: Path) -> list[str]:
    with zipfile.ZipFile(parcel.write(folder / "code.zip")) as archive:
        return sorted(n for n in archive.namelist() if not n.endswith("/"))


def test_loaded_modules_travel_whole_and_others_do_not(project: Path) -> None:
    """A package travels with the parts that are imported late; caches, hidden and large files stay."""
    found = names(user_modules([project]), project)
    assert found == [
        "bare_space/inner.py",
        "lager/__init__.py",
        "lager/late.py",
        "lager/text.py",
        "lager/words.json",
        "single_tool.py",
    ]


def test_installed_and_built_in_modules_stay() -> None:
    root = Path(sys.prefix).resolve()
    assert not {"pytest", "pluggy", "json", "penstock"} & set(user_modules([root, Path("/")]).modules)


def test_what_travels_can_be_imported_from_the_zip(project: Path) -> None:
    code = user_modules([project]).write(project / "elsewhere.zip")
    program = "from lager.text import shout; from bare_space.inner import ONE; print(shout('a'), ONE)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(code)!r}); {program}"],
        capture_output=True,
        text=True,
        check=False,
        cwd="/",
    )
    assert done.stdout.strip() == "A! 1", done.stderr


def test_penstock_itself_can_travel(tmp_path: Path) -> None:
    found = names(penstock_itself(), tmp_path)
    assert "penstock/__init__.py" in found
    assert "penstock/spark/tasks/worker.py" in found
    assert not [n for n in found if "__pycache__" in n]


class Receiver:
    """Takes what is sent as Spark does: of one name, one file."""

    def __init__(self) -> None:
        self.sparkContext = self
        self.names: list[str] = []

    def addPyFile(self, path: str) -> None:  # noqa: N802  # the name that Spark has
        assert Path(path).name not in self.names, f"{path}: another file of this name is there"
        self.names.append(Path(path).name)


def test_flows_of_one_process_send_their_modules_one_after_the_other(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyspark.SparkFiles.getRootDirectory", lambda: str(tmp_path))
    spark: Any = Receiver()
    for folder in (project, project / "lager"):
        ship(spark, [user_modules([folder])])
    ship(spark, [Parcel({"single_tool": project / "single_tool.py"})])
    assert len(spark.names) >= 2


@pytest.mark.spark
def test_a_flow_with_helpers_runs_from_another_folder(tmp_path: Path) -> None:
    """Helpers beside the flow's file, one of them imported late in the worker, and a `--py-files` module."""
    flows, elsewhere, extra = tmp_path / "flows", tmp_path / "elsewhere", tmp_path / "extra"
    for folder in (flows / "helpers", elsewhere, extra):
        folder.mkdir(parents=True)
    (flows / "helpers" / "__init__.py").write_text("")
    (flows / "helpers" / "text.py").write_text(
        "def shout(s):\n    from helpers.late import mark\n    return s.upper() + mark()\n"
    )
    (flows / "helpers" / "late.py").write_text("def mark():\n    return '!'\n")
    (extra / "given.py").write_text("def both(s):\n    return s + s\n")
    (flows / "loud.py").write_text(
        "import penstock as ps\nfrom helpers import text\nimport given\n"
        "PREFIX = 'so '\n"
        "def loud(row):\n    return (PREFIX + given.both(text.shout(row.word)),)\n"
        "flow = ps.Flow('loud')\n"
        "flow.source('w', ps.items(['a'], 'word string')).map('loud', loud).sink('out', ps.console())\n"
    )
    command = [PENSTOCK, "run", "--batch", "-q", "--master", "local[1]", "--py-files", str(extra / "given.py")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("SPARK_", "PYSPARK_"))}
    done = subprocess.run(
        [*command, str(flows / "loud.py")], cwd=elsewhere, capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    assert "so A!A!" in done.stdout
