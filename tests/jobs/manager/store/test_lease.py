"""One manager leads, and what one does that leads no more has no effect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from penstock.jobs.manager.job import Job
from penstock.jobs.manager.manager import Manager
from penstock.jobs.manager.processes.directory import SUPERVISOR, JobDirectory
from penstock.jobs.manager.store import lease as leases
from penstock.jobs.manager.store.database import LeadLost, SqliteDatabase
from penstock.jobs.manager.store.lease import HOLDS, Lease, declare_epoch, highest_epoch
from tests.jobs.manager.conftest import supervisors_of
from tests.jobs.manager.test_manager import becomes, starts
from tests.waiting import wait_until


@pytest.fixture
def database(tmp_path: Path) -> SqliteDatabase:
    made = SqliteDatabase(tmp_path / "manager.db")
    made.make()
    return made


def expire(database: SqliteDatabase) -> None:
    """As if the lease had not been renewed for long."""
    with database.changes() as found:
        found.execute("update lead set until = 1")


def test_one_of_two_leads_and_the_other_takes_over_when_nobody_renews(tmp_path: Path, database: SqliteDatabase) -> None:
    first, second = Lease(database, tmp_path), Lease(database, tmp_path)
    first.look()
    second.look()
    assert (first.is_held, second.is_held) == (True, False)
    expire(database)
    first.look()
    second.look()
    assert (first.is_held, second.is_held) == (True, False)
    expire(database)
    second.look()
    assert (first.epoch, second.epoch) == (1, 2)
    first.look()
    assert (first.is_held, second.is_held) == (False, True)


def test_a_manager_that_slept_leads_no_more_before_it_has_asked(
    tmp_path: Path, database: SqliteDatabase, monkeypatch: pytest.MonkeyPatch
) -> None:
    lease = Lease(database, tmp_path)
    lease.look()
    now = leases.clock()
    monkeypatch.setattr(leases, "clock", lambda: now + HOLDS + 0.01)
    assert not lease.is_held


def test_a_lease_that_is_given_up_is_taken_at_once(tmp_path: Path, database: SqliteDatabase) -> None:
    first, second = Lease(database, tmp_path), Lease(database, tmp_path)
    first.look()
    first.release()
    second.look()
    assert (first.is_held, second.is_held) == (False, True)


def test_epochs_grow_beyond_those_that_the_directory_has_seen(tmp_path: Path, database: SqliteDatabase) -> None:
    declare_epoch(tmp_path, 41)
    lease = Lease(database, tmp_path)
    lease.look()
    assert lease.epoch == 42
    assert highest_epoch(tmp_path) == 42
    assert [path.name for path in tmp_path.glob("epoch-*")] == ["epoch-42"]


def test_changes_of_a_manager_that_led_before_are_refused(tmp_path: Path, database: SqliteDatabase) -> None:
    first, second = Lease(database, tmp_path), Lease(database, tmp_path)
    first.seize()
    with database.changes(first.epoch) as found:
        found.execute("insert into removals values ('a')")
    second.seize()
    with pytest.raises(LeadLost), database.changes(first.epoch) as found:
        found.execute("insert into removals values ('b')")
    with database.reads() as found:
        assert found.execute("select name from removals").fetchall() == [("a",)]


def test_the_wish_of_the_highest_epoch_counts_whoever_writes_last(tmp_path: Path) -> None:
    directory, job = JobDirectory(tmp_path / "count"), Job("count", "ada", "0" * 64, "count.py")
    directory.make()
    directory.write_wanted(job.wished("stopped"), 2)
    directory.write_wanted(job, 1)
    assert directory.wanted_of() == (2, job.wished("stopped"))
    directory.write_wanted(job, 3)
    assert [path.name for path in directory.path.glob("wanted*")] == ["wanted-3.json"]


def test_what_a_job_kept_is_not_moved_by_a_manager_that_led_before_nor_while_it_runs(tmp_path: Path) -> None:
    directory, job = JobDirectory(tmp_path / "count"), Job("count", "ada", "0" * 64, "count.py")
    directory.make()
    directory.write_wanted(job, 2)
    assert not directory.put_aside(tmp_path / "removed" / "a", 1)
    lock = directory.lock(SUPERVISOR)
    assert lock is not None
    with lock:
        assert not directory.put_aside(tmp_path / "removed" / "a", 2)
    assert directory.put_aside(tmp_path / "removed" / "a", 2)
    assert not directory.path.exists()
    assert directory.put_aside(tmp_path / "removed" / "b", 2)


def test_a_supervisor_of_an_earlier_epoch_starts_no_driver(manager: Manager, job: Job) -> None:
    directory = manager.directory("count")
    directory.make()
    directory.write_wanted(job, manager.lease.epoch)
    stale = str(manager.lease.epoch - 1)
    command = [sys.executable, "-m", "penstock.jobs.manager.processes.supervisor", str(manager.root), "count", stale]
    assert subprocess.run([*command, *manager.driver], check=True, timeout=300).returncode == 0
    assert starts(manager, "count") == []


def test_a_manager_that_goes_on_after_another_took_over_changes_nothing(manager: Manager, job: Job) -> None:
    """It believes that it leads, as one that was stopped in the middle of a look does."""
    manager.submit(job, "ada")
    becomes(manager, "count", "running")
    later = Manager(manager.root, manager.driver)
    later.lease.seize()
    later.wish("count", "stopped", "ada")
    wait_until(lambda: not later.state("count").is_supervised)
    assert (manager.leads, later.leads) == (True, True)
    manager.supervisors["count"].wait(300)
    old = manager.records.get("count").wished("running")
    manager.directory("count").write_wanted(old, manager.lease.epoch)
    manager.supervisors["count"] = manager._start(manager.directory("count"))
    manager.supervisors["count"].wait(300)
    assert starts(manager, "count") == ["start"]
    assert later.state("count").phase == "stopped"
    manager.phases["count"] = "running"
    manager.reconcile()
    assert not manager.leads
    assert not supervisors_of(manager)


def test_a_job_that_was_removed_is_not_made_again_by_an_older_look(manager: Manager, job: Job) -> None:
    manager.submit(job.wished("stopped"), "ada")
    becomes(manager, "count", "stopped")
    wait_until(lambda: not manager.state("count").is_supervised)
    seen = manager.records.get("count")
    manager.remove("count", "ada")
    manager._follow(seen)
    assert not manager.directory("count").path.exists()
    assert manager.records.removals() == []
    manager.submit(job, "ada")
    becomes(manager, "count", "running")


def test_an_older_look_does_not_undo_a_change(manager: Manager, job: Job) -> None:
    manager.submit(job, "ada")
    seen = manager.records.get("count")
    manager.wish("count", "paused", "ada")
    manager._follow(seen)
    assert manager.directory("count").wanted() == manager.records.get("count")
