"""Jobs outlive what watches them: managers, supervisors and drivers are killed, and what is wanted runs, once."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from penstock.errors import NameTaken, OptionError, SetupError, UnknownName
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.course import Course
from penstock.jobs.manager.processes.directory import DRIVER, SUPERVISOR, JobDirectory
from penstock.jobs.manager.processes.supervisor import Supervisor
from penstock.jobs.manager.store.lease import Lease
from tests.jobs.manager.conftest import children_of, kill, supervisors_of
from tests.waiting import wait_until


def becomes(manager: Manager, name: str, phase: str) -> None:
    def holds() -> bool:
        manager.reconcile()
        return manager.state(name).phase == phase

    wait_until(holds)


def starts(manager: Manager, name: str) -> list[str]:
    file = manager.directory(name).path / "starts.txt"
    return file.read_text().split() if file.exists() else []


def driver_pid(manager: Manager, name: str) -> int:
    """The child of the supervisor."""
    (supervisor,) = supervisors_of(manager)
    return children_of(supervisor)[0]


def test_a_job_that_is_submitted_runs_and_one_that_is_stopped_does_not(manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    becomes(manager, "count", "running")
    assert manager.directory("count").is_held(DRIVER)
    manager.wish("count", "stopped", "ada")
    becomes(manager, "count", "stopped")
    assert not manager.directory("count").is_held(DRIVER)
    wait_until(lambda: not manager.directory("count").is_held(SUPERVISOR))
    assert starts(manager, "count") == ["start"]
    assert "driver says hello" in manager.directory("count").log.read_text()


def test_a_paused_job_runs_again_when_it_is_resumed(manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    becomes(manager, "count", "running")
    manager.wish("count", "paused", "ada")
    becomes(manager, "count", "paused")
    manager.wish("count", "running", "ada")
    becomes(manager, "count", "running")
    assert starts(manager, "count") == ["start"] * 2


def test_a_driver_that_is_killed_is_started_again_and_counted(manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    becomes(manager, "count", "running")
    os.kill(driver_pid(manager, "count"), signal.SIGKILL)
    wait_until(lambda: len(starts(manager, "count")) == 2)
    becomes(manager, "count", "running")
    assert manager.state("count").course.restarts == 1
    assert manager.state("count").course.reason == "ended by signal 9"


def test_the_driver_ends_with_a_supervisor_that_is_killed_and_both_come_back(manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    becomes(manager, "count", "running")
    (pid,) = supervisors_of(manager)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not manager.directory("count").is_held(DRIVER))
    manager.reconcile()
    wait_until(lambda: len(starts(manager, "count")) == 2)
    becomes(manager, "count", "running")
    assert manager.state("count").course.failures == 0


def test_a_manager_that_comes_back_adopts_what_runs(tmp_path: Path, manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    becomes(manager, "count", "running")
    before = supervisors_of(manager)
    later = Manager(manager.root, manager.driver)
    later.lease.seize()
    later.reconcile()
    assert later.state("count").phase == "running"
    assert not later.supervisors
    assert supervisors_of(manager) == before
    assert starts(manager, "count") == ["start"]


def test_a_second_manager_of_a_directory_is_refused(manager: Manager) -> None:
    with pytest.raises(SetupError, match="another manager has"), Manager(manager.root).opened():
        pass


def test_a_flow_that_is_wrong_is_held_at_once_and_runs_when_it_is_restarted(manager: Manager, job: Job) -> None:
    directory = manager.directory("count")
    directory.make()
    (directory.path / "plan.txt").write_text("2")
    manager.submit(job, "ada")
    becomes(manager, "count", "held")
    assert "the flow or an option is wrong" in manager.state("count").course.reason
    assert starts(manager, "count") == ["start"]
    (directory.path / "plan.txt").unlink()
    manager.restart("count", "ada")
    becomes(manager, "count", "running")


def test_a_flow_that_ends_by_itself_is_finished(manager: Manager, job: Job) -> None:
    directory = manager.directory("count")
    directory.make()
    (directory.path / "plan.txt").write_text("0")
    manager.submit(job, "ada")
    becomes(manager, "count", "finished")
    wait_until(lambda: not directory.is_held(SUPERVISOR))
    manager.reconcile()
    assert starts(manager, "count") == ["start"]


def test_names_and_bundles_are_checked(manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    with pytest.raises(NameTaken, match="there is a job 'count' already"):
        manager.submit(job, "ada")
    with pytest.raises(OptionError, match="there is no bundle"):
        manager.submit(Job("other", "ada", "0" * 64, "x.py"), "ada")
    with pytest.raises(UnknownName, match="count"):
        manager.state("cuont")
    with pytest.raises(OptionError, match="the manager of jobs sets checkpoint itself"):
        Job("x", "ada", "0" * 64, "x.py", {"checkpoint": "/elsewhere"})
    for name in ("../up", "a/b", "", "A", "x" * 64, "a\nb", "-rf"):
        with pytest.raises(OptionError, match="the name of a job"):
            Job(name, "ada", "0" * 64, "x.py")


def test_a_job_that_runs_is_not_removed_and_one_that_is_stopped_leaves_nothing(manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    becomes(manager, "count", "running")
    with pytest.raises(OptionError, match="stop it first"):
        manager.remove("count", "ada")
    manager.wish("count", "stopped", "ada")
    becomes(manager, "count", "stopped")
    wait_until(lambda: not manager.state("count").is_supervised)
    manager.remove("count", "ada")
    assert not manager.directory("count").path.exists()
    assert [entry.action for entry in manager.records.audit()] == ["remove", "stopped", "submit"]


def test_what_is_killed_at_random_comes_back_and_no_job_runs_twice_at_once(manager: Manager, job: Job) -> None:
    """Managers are dropped, supervisors and drivers killed, wishes changed in between."""
    chance = random.Random(7)
    manager.submit(job, "ada")
    managers = [manager]
    for _ in range(25):
        current = managers[-1]
        match chance.choice(("manager", "supervisor", "driver", "wish")):
            case "manager":
                managers.append(Manager(manager.root, manager.driver))
                managers[-1].lease.seize()
            case "supervisor":
                for pid in supervisors_of(manager):
                    kill(pid)
            case "driver":
                for pid in supervisors_of(manager):
                    for child in children_of(pid):
                        kill(child)
            case "wish":
                current.wish("count", chance.choice(("paused", "running")), "ada")
        managers[-1].reconcile()
    managers[-1].restart("count", "ada")
    becomes(managers[-1], "count", "running")
    assert set(starts(manager, "count")) == {"start"}
    managers[-1].wish("count", "stopped", "ada")
    manager.lease.seize()
    for each in managers:
        for process in each.supervisors.values():
            process.wait(300)


def test_a_bundle_that_cannot_be_unpacked_holds_the_job_with_the_reason(manager: Manager, job: Job) -> None:
    (manager.root / "bundles" / f"{job.bundle}.zip").write_bytes(b"nonsense")
    manager.submit(job, "ada")
    wait_until(lambda: "is damaged" in manager.state("count").course.reason)
    assert manager.state("count").phase == "waiting"
    assert starts(manager, "count") == []


def test_a_job_that_cannot_be_followed_hinders_no_other(manager: Manager, job: Job, tmp_path: Path) -> None:
    (manager.root / "jobs").mkdir()
    (manager.root / "jobs" / "broken").write_text("a file where a directory should be")
    with pytest.raises(Exception, match=r"broken|Not a directory"):
        manager.submit(replace(job, name="broken"), "ada")
    manager.records.add(job, "ada")
    becomes(manager, "count", "running")
    (manager.root / "jobs" / "broken").unlink()


def test_damaged_files_of_a_job_say_nothing_and_are_written_anew(manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    becomes(manager, "count", "running")
    manager.wish("count", "stopped", "ada")
    becomes(manager, "count", "stopped")
    wait_until(lambda: not manager.directory("count").is_held(SUPERVISOR))
    path = manager.directory("count").path
    (wanted,) = path.glob("wanted-*.json")
    for name in ("status.json", "progress.json", wanted.name):
        (path / name).write_text('{"phase": ')
    assert manager.state("count").progress == {}
    manager.wish("count", "running", "ada")
    becomes(manager, "count", "running")


def test_a_full_disk_ends_no_driver(manager: Manager, job: Job) -> None:
    """What a supervisor cannot write it writes later; the driver that runs is not touched."""

    class FullDirectory(JobDirectory):
        is_full = False

        def write_course(self, course: Course) -> None:
            if FullDirectory.is_full:
                raise OSError(28, "No space left on device")
            super().write_course(course)

    manager.directory("count").make()
    directory = FullDirectory(manager.directory("count").path)
    directory.write_wanted(job)
    supervisor = Supervisor(directory, manager.bundles, manager.driver)
    assert supervisor.step(time.time())
    assert supervisor.driver is not None
    FullDirectory.is_full = True
    directory.write_wanted(job.wished("stopped"))
    supervisor.step(time.time())
    assert directory.course().phase == "running"
    supervisor.driver.wait(300)
    supervisor.step(time.time())
    FullDirectory.is_full = False
    supervisor.step(time.time())
    assert directory.course().phase == "stopped"
    full = Supervisor(directory, manager.bundles, manager.driver)
    directory.write_wanted(job)
    FullDirectory.is_full = True
    full.step(time.time())
    assert full.course.phase == "waiting"
    assert "No space left" in full.course.reason


def test_whatever_goes_wrong_at_a_look_the_next_one_comes(manager: Manager, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[float] = []
    left = manager.root / "removed" / "count.0"
    left.mkdir(parents=True)

    def fail(now: float, epoch: int) -> None:
        looks.append(now)
        raise RuntimeError("dictionary changed size during iteration")

    monkeypatch.setattr("penstock.jobs.manager.manager.LOOK", 0.01)
    monkeypatch.setattr(manager.history, "flush", fail)
    stopping = threading.Event()
    watching = threading.Thread(target=manager.watch, args=(stopping,))
    watching.start()
    try:
        wait_until(lambda: len(looks) >= 3)
    finally:
        stopping.set()
        watching.join()
    assert not left.exists(), "what a manager that was killed had put aside is gone"


def test_what_is_refused_under_an_earlier_lead_does_not_end_the_lead_that_was_taken_since(manager: Manager) -> None:
    before = manager.lease.epoch
    with manager._leading():
        manager.lease.seize()
        manager.records.happened("count", "running", "", before)
    assert manager.leads
    other = Lease(manager.database, manager.root)
    with manager._leading():
        other.seize()
        manager.records.happened("count", "running", "", manager.lease.epoch)
    assert not manager.leads
