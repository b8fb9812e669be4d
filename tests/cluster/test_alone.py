"""On a real cluster, a step that is alone has its executor for itself: of two tasks, which the executor has cores for, one waits."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cluster.conftest import Cluster, wait_for

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

FLOW = """
import os, time
from pathlib import Path
import penstock as ps

HERE = Path(__file__).parent
SHARED, ALONE = HERE / "shared-tasks", HERE / "alone-tasks"

def beside(folder, row, enough):
    # how many tasks of the step there are at once, as this one sees it; it looks until there are enough, but not for ever
    mine, most = folder / f"{row.id}", 0
    mine.touch()
    for _ in range(300):
        most = max(most, len(list(folder.iterdir())))
        if most >= enough:
            break
        time.sleep(0.1)
    time.sleep(1.0)
    mine.unlink()
    return row.id, most, os.getpid()

class Lonely(ps.Process):
    def on_event(self, row):
        yield beside(ALONE, row, 1)

flow = ps.Flow("alone")
rows = flow.source("rows", ps.items(range(8), "id bigint"))
SCHEMA = "id bigint, tasks int, pid int"
shared = rows.repartition("spread", 2).map("shared", lambda row: beside(SHARED, row, 2), SCHEMA)
shared.sink("first", ps.write_files(HERE / "first", "json"))
shared.key_by("id").process("lonely", Lonely, SCHEMA).sink("second", ps.write_files(HERE / "second", "json"))
"""


def rows(folder: Path) -> list[dict[str, int]]:
    return [json.loads(line) for file in folder.glob("*.json") for line in file.read_text().splitlines()]


def run(folder: Path, cluster: Cluster, *settings: str) -> subprocess.CompletedProcess[str]:
    conf = ("spark.executor.memory=512m", "spark.cores.max=2", *settings)
    words = [word for each in conf for word in ("--conf", each)]
    penstock = str(Path(sys.executable).with_name("penstock"))
    command = [penstock, "run", "flow.py", "--batch", "--master", cluster.url, "--parallelism", "2", *words]
    return subprocess.run(
        [*command, "--place", "alone=lonely"], capture_output=True, text=True, cwd=folder, check=False
    )


def test_a_step_that_is_alone_shares_no_executor(cluster: Cluster, tmp_path: Path) -> None:
    for name in ("shared-tasks", "alone-tasks"):
        (tmp_path / name).mkdir()
    (tmp_path / "flow.py").write_text(FLOW)
    worker = "org.apache.spark.deploy.worker.Worker"
    (cluster.folder / "wide").mkdir(exist_ok=True)
    own = ["--host", "127.0.0.1", "--webui-port", "0", "--work-dir", str(cluster.folder / "wide")]
    output = cluster.start("wide", worker, *own, "--cores", "2", "--memory", "1g", cluster.url)
    try:
        wait_for(output, r"(Successfully registered with master)")
        ended = run(tmp_path, cluster, "spark.executor.cores=2")
        assert ended.returncode == 0, ended.stdout + ended.stderr
        shared, lonely = rows(tmp_path / "first"), rows(tmp_path / "second")
        assert max(row["tasks"] for row in shared) == 2, "the executor runs two tasks at once"
        assert [row["tasks"] for row in lonely] == [1] * 8
        assert not {row["pid"] for row in shared} & {row["pid"] for row in lonely}
    finally:
        cluster.kill("wide")
    refused = run(tmp_path, cluster)
    assert refused.returncode != 0
    assert re.search(r"how many those are is not said.*spark\.executor\.cores=2", refused.stdout + refused.stderr)
