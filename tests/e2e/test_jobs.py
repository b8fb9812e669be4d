"""A flow as a job, on Spark: it comes back after its driver was killed, and its output is whole."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

import pytest

from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from tests.jobs.manager.conftest import ending
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

FLOW = """
import penstock as ps
flow = ps.Flow("copy", delivery="exactly_once")
flow.source("in", ps.files({source!r})).sink("out", ps.write_files({target!r}, "json"))
"""


def test_a_job_whose_driver_is_killed_goes_on_and_writes_each_line_once(tmp_path: Path) -> None:
    source, target = tmp_path / "in", tmp_path / "out"
    source.mkdir()
    (source / "a.txt").write_text("a\n")
    flow = tmp_path / "copy.py"
    flow.write_text(FLOW.format(source=f"{source}/*.txt", target=str(target)))
    manager = Manager(tmp_path / "data")

    def lines() -> list[str]:
        written = target.glob("*.json") if target.exists() else []
        return sorted(json.loads(line)["value"] for file in written for line in file.read_text().splitlines())

    with manager.opened(), ending(manager):
        manager.submit(Job("copy", "ada", manager.bundles.put(pack([("copy.py", flow)])), "copy.py"), "ada")
        wait_until(lambda: lines() == ["a"] or manager.state("copy").phase == "held", 300)
        assert lines() == ["a"], manager.directory("copy").log.read_text()
        pid = manager.directory("copy").progress()["pid"]
        os.kill(int(str(pid)), signal.SIGKILL)
        (source / "b.txt").write_text("b\n")
        wait_until(lambda: lines() == ["a", "b"], 300)
        assert manager.state("copy").course.restarts == 1
        manager.wish("copy", "stopped", "ada")
        wait_until(lambda: not manager.state("copy").is_supervised, 120)
        manager.reconcile()
        assert manager.state("copy").phase == "stopped"
