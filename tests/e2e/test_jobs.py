"""A flow as a job, on Spark: it comes back after its driver was killed, and its output is whole."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from penstock.jobs.manager.bundle import pack
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager, Upgrade
from penstock.jobs.manager.processes.course import Course
from tests.jobs.manager.conftest import ending
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

COUNT = """
import penstock as ps

class Count(ps.Process):
    n = ps.value(int, default=0)

    def on_event(self, row):
        self.n += 1
        yield self.key, self.n {change}

flow = ps.Flow("count", delivery="exactly_once")
counted = flow.source("in", ps.files({source!r})).key_by("value").process("count", Count, schema="value string, n bigint")
counted.sink("out", ps.write_files({target!r}, "json"))
"""


@dataclass
class Counting:
    """A job that numbers lines, and writes each number once."""

    folder: Path
    manager: Manager

    def __post_init__(self) -> None:
        self.source.mkdir()

    @property
    def source(self) -> Path:
        return self.folder / "in"

    @property
    def log(self) -> str:
        return self.manager.directory("count").log.read_text()

    @property
    def course(self) -> Course:
        return self.manager.state("count").course

    def bundle(self, change: str, first: str = "") -> str:
        """The version that does something with each number."""
        flow = self.folder / "count.py"
        target = str(self.folder / "out")
        flow.write_text(first + COUNT.format(change=change, source=f"{self.source}/*.txt", target=target))
        return self.manager.bundles.put(pack([("count.py", flow)]))

    def submit(self) -> None:
        self.manager.submit(Job("count", "ada", self.bundle(""), "count.py"), "ada")

    def written(self) -> list[int]:
        files = (self.folder / "out").glob("*.json") if (self.folder / "out").exists() else []
        return sorted(json.loads(line)["n"] for file in files for line in file.read_text().splitlines())

    def counts(self, number: int) -> list[int]:
        """One more line, and all that was written then."""
        (self.source / f"{number}.txt").write_text("a\n")
        wait_until(lambda: len(self.written()) > number or self.manager.state("count").phase == "held", 600)
        return self.written()

    def upgrade(self, change: str, first: str = "") -> None:
        """Returns when the driver of the version before has gone: until then it takes what comes."""
        wanted = self.manager.upgrade("count", Upgrade(self.bundle(change, first)), "ada").job.checkpoint
        wait_until(lambda: self.manager.directory("count").progress().get("checkpoint") == wanted, 600)

    def stop(self) -> None:
        self.manager.wish("count", "stopped", "ada")
        wait_until(lambda: not self.manager.state("count").is_supervised, 120)
        self.manager.reconcile()
        assert self.manager.state("count").phase == "stopped"


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[Counting]:
    manager = Manager(tmp_path / "data")
    with manager.opened(), ending(manager):
        yield Counting(tmp_path, manager)


def test_a_job_whose_driver_is_killed_goes_on_and_is_upgraded_with_its_state_or_goes_back(counting: Counting) -> None:
    counting.submit()
    assert counting.counts(0) == [1], counting.log
    os.kill(int(str(counting.manager.directory("count").progress()["pid"])), signal.SIGKILL)
    assert counting.counts(1) == [1, 2], counting.log
    assert counting.course.restarts == 1
    counting.upgrade("* 10")
    assert counting.counts(2) == [1, 2, 30], counting.log
    wait_until(lambda: counting.course.settled == "checkpoint-2", 600)
    counting.upgrade("// 0")
    assert counting.counts(3) == [1, 2, 30, 40], counting.log
    counting.manager.reconcile()
    state = counting.manager.state("count")
    assert (state.course.gone_back, state.job.checkpoint) == ("checkpoint-3", "checkpoint-2")
    counting.stop()


@pytest.mark.slow  # three drivers more, for a batch of a version that goes back
def test_a_version_that_dies_with_a_batch_in_the_sink_goes_back_and_doubles_nothing(counting: Counting) -> None:
    counting.submit()
    assert counting.counts(0) == [1], counting.log
    counting.upgrade("* 100", "import os; os.environ['PENSTOCK_CRASH'] = 'sink written'")
    assert counting.counts(1) == [1, 200], "the batch reached the sink, and its driver died"
    wait_until(lambda: counting.course.gone_back == "checkpoint-2", 600)
    assert counting.counts(2) == [1, 3, 200], counting.log
    counting.stop()
