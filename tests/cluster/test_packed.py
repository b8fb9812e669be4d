"""A flow on a cluster whose workers have nothing but Python: its packages come in an archive."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, distribution, files, requires
from pathlib import Path

import pytest

import penstock
from penstock.spark.jvm.java import find_java
from tests.cluster.conftest import Cluster
from tests.cluster.test_cluster import rows

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

FLOW = """
from pathlib import Path
import penstock as ps
import only_packed
from penstock.connectors.base import SourceConnector
from pyspark.sql.datasource import DataSource, DataSourceReader

class Reader(DataSourceReader):
    def read(self, partition):
        yield (only_packed.shout("planned by the driver"),)

class InPython(DataSource):
    @classmethod
    def name(cls): return "in_python"
    def schema(self): return "value string"
    def reader(self, schema): return Reader()

class Own(SourceConnector):
    def bounded(self, spark, context):
        spark.dataSource.register(InPython)
        return spark.read.format("in_python").load()

def look(row):
    import pyarrow
    return only_packed.shout(row.value), only_packed.__file__, pyarrow.__file__

flow = ps.Flow("packed")
lines = flow.source("lines", ps.files("in", "text"))
planned = flow.source("planned", ps.connector(Own(), schema="value string"))
lines.union("all", planned).map("look", look, "said string, own string, arrow string").sink("out", ps.write_files(Path.cwd() / "out", "json"))
"""
NEEDED = ("pyspark", "pyarrow", "pandas", "numpy", "typer", "rich")


def with_requirements(names: Iterable[str]) -> set[str]:
    """The packages and all that they need."""
    found, open_names = set[str](), list(names)
    while open_names:
        name = open_names.pop()
        if name not in found:
            found.add(name)
            needed = [text for text in requires(name) or () if "extra ==" not in text]
            open_names += [
                match[0] for text in needed if (match := re.match(r"[\w.-]+", text)) and _is_installed(match[0])
            ]
    return found


def _is_installed(name: str) -> bool:
    try:
        return bool(distribution(name))
    except PackageNotFoundError:
        return False


def make_environment(folder: Path) -> Path:
    """An environment of its own with what Penstock needs, by links, and a package that no other has; returns its Python."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    here = Path(sysconfig.get_path("purelib"))
    tops = {file.parts[0] for name in with_requirements(NEEDED) for file in files(name) or () if file.parts[0] != ".."}
    for link in (
        *(here / top for top in sorted(tops) if not top.endswith(".dist-info")),
        Path(penstock.__file__).parent,
    ):
        if link.exists() and link.name != "__pycache__":
            (packages / link.name).symlink_to(link)
    (packages / "only_packed").mkdir()
    (packages / "only_packed" / "__init__.py").write_text("def shout(text):\n    return text.upper()\n")
    return folder / "bin" / "python"


def test_workers_take_their_python_and_packages_from_the_archive(cluster: Cluster, tmp_path: Path) -> None:
    python = make_environment(tmp_path / "env")
    job = tmp_path / "job"
    (job / "in").mkdir(parents=True)
    (job / "in" / "a.txt").write_text("one\ntwo\n")
    (job / "flow.py").write_text(FLOW)
    environment = os.environ | {"JAVA_HOME": str(find_java().home)}
    command = [str(python), "-m", "penstock.cli.main"]
    done = subprocess.run(
        [*command, "pack", "flow.py", "-o", "e.tar.gz"],
        cwd=job,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    settings = ["--conf", "spark.executor.memory=512m", "--master", cluster.url]
    command += ["run", "flow.py", "--batch", *settings, "--archives", "e.tar.gz"]
    done = subprocess.run(command, cwd=job, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    found = rows(job / "out")
    assert sorted(row["said"] for row in found) == ["ONE", "PLANNED BY THE DRIVER", "TWO"]
    assert all("/environment/lib/python" in row["own"] for row in found), found
    assert all("/environment/lib/python" in row["arrow"] for row in found), found


def examine(cluster: Cluster, *more: str) -> tuple[int, dict[str, dict[str, str]]]:
    """`penstock doctor --json` on the cluster: its exit code, and the checks by name without the address of the worker."""
    command = [sys.executable, "-m", "penstock.cli.main", "doctor", "--json", "--master", cluster.url]
    command += ["--conf", "spark.executor.memory=512m", *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    checks = json.loads(done.stdout)["checks"]
    return done.returncode, {re.sub(r" \d[\d.]+:\d+$", " at worker", check["name"]): check for check in checks}


def test_the_doctor_asks_every_worker(cluster: Cluster, tmp_path: Path) -> None:
    code, found = examine(cluster, "--checkpoint", str(tmp_path / "checkpoint"))
    failed = [check for check in found.values() if check["status"] == "fail"]
    assert (code, failed) == (0, [])
    assert found["executors"]["found"].startswith("2 on 1 hosts, 2 cores")
    per_worker = ("Python", "Spark", "Java", "imports", "clock", "checkpoint")
    assert {found[f"{name} at worker"]["status"] for name in per_worker} == {"ok"}
    assert list(tmp_path.glob("checkpoint*")) == [], "nothing is left"


@pytest.mark.slow  # what is said of each answer stands in tests/jobs/test_cluster_doctor.py
def test_the_doctor_names_what_fails(cluster: Cluster, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    code, found = examine(cluster, "--checkpoint", str(tmp_path / "file" / "below"))
    assert code == 1
    assert found["checkpoint"]["status"] == "fail"
    assert str(tmp_path / "file") in found["checkpoint"]["found"]
    assert found["imports at worker"]["status"] == "ok"
