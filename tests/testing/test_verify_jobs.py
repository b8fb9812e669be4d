"""Servers, supervisors and drivers are killed at random: no job is lost, none runs twice at once, what they write is there once."""

from __future__ import annotations

import json
import os
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import Impossible, RunError
from penstock.testing.servers import postgres_server
from penstock.testing.verify import JobsPlan, verify_jobs
from penstock.testing.verify.job_driver import WRITTEN
from penstock.testing.verify.job_kinds import LocalJob
from penstock.testing.verify.job_patience import LABOUR, STEP, STILL, Patience, labour_of, processes
from penstock.testing.verify.job_tally import counted
from penstock.testing.verify.local_flow import RECORDS, LocalFlow


class BrokenOff(Exception):
    """Somebody ends a verification."""


def break_off(text: str) -> None:
    raise BrokenOff(text)


def test_jobs_come_through_ten_kills_of_a_verification_that_was_broken_off(tmp_path: Path) -> None:
    plan = JobsPlan(kills=10, jobs=3, spark=0, seed=3, at_once=5, folder=tmp_path)
    with pytest.raises(BrokenOff, match="kills: as wanted after"):
        verify_jobs(replace(plan, say=break_off))
    before = json.loads((tmp_path / "verification.json").read_text())
    assert 0 < sum(before["kills"].values()) < 10
    assert not processes(tmp_path / "data")
    with pytest.raises(Impossible, match=r"has a verification of .*'seed': 3"):
        verify_jobs(replace(plan, seed=4))
    found = verify_jobs(plan)
    assert found.wrong == {"gone": 0, "lost": 0, "duplicate": 0, "strange": 0, "reordered": 0, "twice": 0}
    assert sum(found.kills.values()) == 10
    assert set(found.kills) == {"server", "supervisor", "driver"}
    assert all(found.kills[kind] >= many for kind, many in before["kills"].items())
    assert found.seconds > before["seconds"]
    assert found.records > 100
    assert found.ok
    assert "exactly once, one at a time: yes" in str(found)


@pytest.mark.slow
def test_jobs_of_two_servers_come_through_fifty_kills() -> None:
    with postgres_server() as server:
        found = verify_jobs(JobsPlan(kills=50, jobs=5, spark=0, seed=1, url=server.url))
    assert found.ok, str(found)
    assert found.kills["asleep"] > 0


@pytest.mark.slow
@pytest.mark.spark
def test_jobs_come_through_two_hundred_kills() -> None:
    found = verify_jobs(JobsPlan(kills=200, at_once=8))
    assert found.ok, str(found)


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(Impossible, match="1 or more jobs"):
        JobsPlan(jobs=2, spark=3)
    with pytest.raises(Impossible, match="1 or more kills at once"):
        JobsPlan(at_once=0)


def test_a_local_flow_goes_on_after_its_last_whole_line(tmp_path: Path) -> None:
    path, job = tmp_path / WRITTEN, LocalJob("local", tmp_path)
    for torn in (b"", b'{"upto": 9', b""):
        flow = LocalFlow(path)
        with path.open("ab") as file:
            file.write(flow.batch() + flow.batch() + torn)
    sent, keys = job.found()
    assert sent == list(range(6 * RECORDS))
    assert counted(sent, keys) == {"lost": 0, "duplicate": 0, "strange": 0, "reordered": 0}


def test_a_local_flow_that_has_lost_its_state_is_seen(tmp_path: Path) -> None:
    path, job = tmp_path / WRITTEN, LocalJob("local", tmp_path)
    line = json.loads(LocalFlow(path).batch())
    path.write_bytes(json.dumps({**line, "states": {}}).encode() + b"\n")
    with path.open("ab") as file:
        file.write(LocalFlow(path).batch())
    assert counted(*job.found())["strange"] > 0


class Waiting:
    """A wait whose clock, signs and work are moved by hand."""

    def __init__(self) -> None:
        self.now = self.worked = 0.0
        self.sign = 0
        self.patience = Patience(lambda: "it", lambda: self.sign, clock=lambda: self.now, labour=self.labour)

    def labour(self, pids: Collection[int]) -> float:
        return self.worked

    def pass_by(self, seconds: float, worked: float = 0.0) -> None:
        self.now, self.worked = self.now + seconds, self.worked + worked
        self.patience.look()


@pytest.fixture
def waiting() -> Waiting:
    made = Waiting()
    made.pass_by(1.0)
    return made


def test_who_gets_on_is_waited_for_however_long_it_takes(waiting: Waiting) -> None:
    for _ in range(20):
        waiting.sign += 1
        waiting.pass_by(STILL)
        waiting.pass_by(STILL, worked=STEP)
    assert waiting.patience.worked == 20 * STEP


def test_who_stands_still_is_not_waited_for(waiting: Waiting) -> None:
    waiting.pass_by(STILL, worked=STEP - 1)
    with pytest.raises(RunError, match="it: no progress for 300 s"):
        waiting.pass_by(1.0)


def test_who_works_and_gets_nowhere_is_not_waited_for(waiting: Waiting) -> None:
    waiting.pass_by(2.0, worked=LABOUR)
    with pytest.raises(RunError, match="it: no progress in 900 s of processor time"):
        waiting.pass_by(2.0, worked=STEP)


def test_the_work_of_a_process_is_that_of_its_children_too() -> None:
    own = os.times()
    assert 0 < own.user + own.system <= labour_of([os.getpid()]) + 0.1
    assert labour_of([]) == 0
