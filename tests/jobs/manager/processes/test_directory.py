"""The directory of a job: its locks, by those who hold them and those who only ask."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest

from penstock.jobs.manager.bundle import BundleStore
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes.course import Course
from penstock.jobs.manager.processes.directory import SUPERVISOR, JobDirectory
from penstock.jobs.manager.processes.supervisor import Supervisor
from penstock.storage import StorageError


@pytest.fixture
def directory(tmp_path: Path) -> JobDirectory:
    made = JobDirectory(tmp_path / "count")
    made.make()
    return made


def test_those_who_ask_at_once_do_not_take_each_other_for_the_holder(directory: JobDirectory) -> None:
    assert not directory.is_held(SUPERVISOR)
    (directory.path / SUPERVISOR).touch()
    with (directory.path / SUPERVISOR).open("rb") as asking:
        fcntl.flock(asking, fcntl.LOCK_SH | fcntl.LOCK_NB)
        assert not directory.is_held(SUPERVISOR)
    held = directory.lock(SUPERVISOR)
    assert held is not None
    with held:
        assert directory.is_held(SUPERVISOR)
    assert not directory.is_held(SUPERVISOR)


def test_a_supervisor_that_cannot_say_where_the_job_is_goes_on(
    directory: JobDirectory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    supervisor = Supervisor(directory, BundleStore(tmp_path / "bundles"))
    directory.write_wanted(Job("count", "ada", "0" * 64, "count.py").wished("stopped"))

    def full(_: JobDirectory, __: Course) -> None:
        raise StorageError("'status.json' cannot be read or written: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(JobDirectory, "write_course", full)
        supervisor.step(1.0)
    assert directory.course().phase == "new"
    supervisor.step(2.0)
    assert directory.course().phase == "stopped"
